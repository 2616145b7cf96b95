// Lookup tables.
#pragma once

#include <tenet/core/random.hpp>
#include <tenet/nn/module.hpp>
#include <tenet/ops/index.hpp>

namespace tenet::nn {

struct EmbeddingOptions {
  std::optional<std::int64_t> padding_idx = {};  ///< a row that starts at 0 and does not train
};

/// A row of `weight` [n, d] for each index: int64 [...] -> [..., d]. The rows start standard normal. Throws
/// IndexError for an index that is no row. See torch.nn.Embedding.
template <class T = float>
struct Embedding : Module<Embedding<T>> {
  Parameter<T> weight;
  EmbeddingOptions options;
  TENET_MODULE(weight)

  TENET_TAG Embedding(std::int64_t n, std::int64_t d, EmbeddingOptions o = {}) : weight(randn<T>({n, d})), options(o) {
    if (!o.padding_idx) return;
    const no_grad guard;
    weight.select(0, *o.padding_idx).zero_();
  }
  TENET_TAG Tensor<T> forward(const Tensor<std::int64_t>& index) const {
    return embedding(index, weight, options.padding_idx);
  }
};

}  // namespace tenet::nn
