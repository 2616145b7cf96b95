// dropout: leaves out elements at random while training.
#pragma once

#include <tenet/core/random.hpp>
#include <tenet/ops/pointwise.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace op {

/// x * scale where the mask is true, 0 elsewhere.
struct MaskScale {
  static constexpr const char* name = "dropout";
  static constexpr bool reuses = true;
  double scale;
  template <class T>
  TENET_ALWAYS_INLINE T operator()(T x, bool keep) const {
    return keep ? x * T(scale) : T(0);
  }
  template <class X>
  static tensor_t<X> forward(Context& ctx, X&& x, const Tensor<bool>& mask, MaskScale op) {
    using T = element_t<X>;
    ctx.keep(mask);
    Tensor<T> out = reuse_or_empty(std::forward<X>(x), x.shape());
    cpu::map<MaskScale, T, T, bool>(op, out.dim(), out.shape().data(), target(out),
                                    source(static_cast<const Tensor<T>&>(x)), source(mask));
    return out;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<MaskScale>(g, grad.kept<bool>(0), grad.options<MaskScale>());
  }
};

}  // namespace op

/// While training, each element is 0 with probability p, else scaled by 1 / (1 - p), so that the mean stays; otherwise
/// `x` itself. Throws Error unless p is in [0, 1]. (Srivastava et al., Dropout: a simple way to prevent neural networks
/// from overfitting, 2014.)
template <TensorLike X>
tensor_t<X> dropout(X&& x, double p = 0.5, bool training = true, Generator& generator = default_generator()) {
  if (!(p >= 0 && p <= 1)) throw Error(text({"dropout: expected p in [0, 1], got ", p}));
  if (!training || p == 0) return x;
  const Tensor<bool> mask = bernoulli<bool>(1 - p, x.shape(), generator);
  const double scale = p < 1 ? 1 / (1 - p) : 0;  // with p = 1 nothing is left to scale
  return apply<op::MaskScale>(as_tensor(std::forward<X>(x)), mask, op::MaskScale{scale});
}

}  // namespace TENET_CONFIG
}  // namespace tenet

#include <tenet/ops/grad_math.hpp>  // for backward(); needs the operations above
