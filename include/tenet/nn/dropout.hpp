// Dropout. Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", 2014.
#pragma once

#include <tenet/nn/module.hpp>
#include <tenet/ops/dropout.hpp>

namespace tenet::nn {

/// In training, zeroes each element with probability `p` and scales the others by 1 / (1 - p); in evaluation, its
/// input. Throws Error unless p is in [0, 1]. See torch.nn.Dropout.
struct Dropout : Module<Dropout> {
  double p;
  TENET_MODULE()

  TENET_TAG explicit Dropout(double probability = 0.5) : p(probability) {
    if (!(p >= 0 && p <= 1)) throw Error(text({"Dropout: expected a probability in [0, 1], got ", p}));
  }
  template <class X>
  TENET_TAG auto forward(X&& x) const -> decltype(dropout(std::forward<X>(x), p, true)) {
    return dropout(std::forward<X>(x), p, is_training());
  }
};

}  // namespace tenet::nn
