// Scaled dot-product attention. Vaswani et al., "Attention is all you need", 2017.
#pragma once

#include <tenet/ops/compare.hpp>
#include <tenet/ops/dropout.hpp>
#include <tenet/ops/matmul.hpp>
#include <tenet/ops/rearrange.hpp>
#include <tenet/ops/select.hpp>
#include <tenet/ops/softmax.hpp>

#include <cmath>
#include <optional>

namespace tenet {

struct AttentionOptions {
  bool is_causal = false;            ///< query i attends to keys 0 to i only
  std::optional<double> scale = {};  ///< of the products; 1 / sqrt(E) if it is not given
  double dropout_p = 0;              ///< of the weights, whether training or not
};

inline namespace TENET_CONFIG {

/// For each query the mean of the values, weighted by softmax(scale q k^T): queries [..., L, E], keys [..., S, E],
/// values [..., S, V] -> [..., L, V]; leading dimensions broadcast, as in matmul. `mask`, if given, broadcasts to
/// [..., L, S]: of bool, it is true where a query attends to a key; of the element type, it is added to the scaled
/// products. It and is_causal may come together. Of a query that attends to no key the result is 0, and so are its
/// gradients. The products run in low precision under amp::autocast, the softmax does not. Throws ShapeError where
/// sizes do not fit, Error unless dropout_p is in [0, 1].
/// See torch.nn.functional.scaled_dot_product_attention.
template <TensorLike Q, TensorLike K, TensorLike V, TensorLike M = Tensor<bool>>
tensor_t<Q> scaled_dot_product_attention(const Q& query, const K& key, const V& value, const M& mask = {},
                                         const AttentionOptions& options = {}) {
  using T = element_t<Q>;
  static_assert(std::is_same_v<element_t<M>, bool> || std::is_same_v<element_t<M>, T>,
                "scaled_dot_product_attention: expected a mask of bool or of the element type of the queries");
  const Tensor<T>&q = query, &k = key, &v = value;
  if (q.dim() < 2 || k.dim() < 2 || v.dim() < 2 || k.size(-1) != q.size(-1) || v.size(-2) != k.size(-2)) {
    throw ShapeError(
        text({"scaled_dot_product_attention: expected queries [..., L, E], keys [..., S, E] and values [..., S, V], "
              "got ",
              q.shape(), ", ", k.shape(), " and ", v.shape()}));
  }
  const double scale = options.scale.value_or(1 / std::sqrt(double(q.size(-1))));
  Tensor<T> scores = matmul(q * T(scale), transpose(k, -2, -1));

  Tensor<bool> open;  // where queries attend to keys; undefined: everywhere
  if (mask.defined()) {
    detail::check_mask("scaled_dot_product_attention", scores.shape(), mask.shape());
    if constexpr (std::is_same_v<element_t<M>, bool>) {
      open = mask;
    } else {
      open = detach(mask) > -std::numeric_limits<T>::infinity();
      scores = add(scores, static_cast<const Tensor<T>&>(mask));
    }
  }
  if (options.is_causal) {
    const Tensor<bool> causal = tril(ones<bool>({q.size(-2), k.size(-2)}));
    open = open.defined() ? logical_and(open, causal) : causal;
  }
  // The least number instead of -inf: a row without any key is finite, until it is set to 0.
  if (open.defined()) scores = where(open, scores, std::numeric_limits<T>::lowest());
  Tensor<T> weights = softmax(scores, -1);
  if (open.defined()) weights = where(open, weights, T(0));
  return matmul(dropout(std::move(weights), options.dropout_p), v);
}

}  // namespace TENET_CONFIG
}  // namespace tenet

#include <tenet/ops/grad_math.hpp>  // for backward(); needs the operations above
