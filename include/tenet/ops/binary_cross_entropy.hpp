// Cross-entropy of yes and no: of probabilities, and of logits.
//
// Both tensors have one shape, else ShapeError. Reduction::none gives that shape, the others a scalar. Gradients flow
// into both. Weights broadcast to that shape, and are of the same element type, else DTypeError.
#pragma once

#include <tenet/kernels/cpu/math.hpp>
#include <tenet/ops/reduction.hpp>

namespace tenet {

struct BinaryCrossEntropyOptions {
  AnyTensor weight = {};  ///< of each loss; undefined: 1
  Reduction reduction = Reduction::mean;
};

struct BinaryCrossEntropyWithLogitsOptions {
  AnyTensor weight = {};  ///< of each loss; undefined: 1
  Reduction reduction = Reduction::mean;
  AnyTensor pos_weight = {};  ///< of the part of the loss that `target` multiplies; undefined: 1
};

inline namespace TENET_CONFIG {

namespace detail {

/// Any element outside of [0, 1], or NaN.
struct AnyOutsideUnit : cpu::Any {
  template <class T>
  bool step(bool s, T x, std::int64_t) const {
    return s | !((x >= 0) & (x <= 1));
  }
};

/// `losses` times `weight`, which broadcasts to them.
template <class T>
Tensor<T> weighted(const char* op, const Tensor<T>& losses, const AnyTensor& weight) {
  if (!weight) return losses;
  if (weight.dtype() != dtype_of<T>) {
    throw DTypeError(
        text({op, ": expected weights of ", tenet::name(dtype_of<T>), ", got ", tenet::name(weight.dtype())}));
  }
  if (!(broadcast_shapes(op, losses.shape(), weight.shape()) == losses.shape())) {
    throw ShapeError(text({op, ": expected weights that broadcast to ", losses.shape(), ", got ", weight.shape()}));
  }
  return mul(losses, Tensor<T>(weight));
}

}  // namespace detail

namespace op {

/// log(x), or log(1 - x) of the complement, clamped at -100; the derivative as if x (1 - x) were at least 1e-12.
struct ClampedLog : UnaryOp<ClampedLog> {
  static constexpr const char* name = "binary_cross_entropy";
  static constexpr Keeps keeps = Keeps::input;
  bool complement;
  explicit ClampedLog(bool of_complement) : complement(of_complement) {}
  template <class T>
  TENET_ALWAYS_INLINE T f(T x) const {
    const T y = complement ? cpu::math::log1p(-x) : cpu::math::log(x);
    return y < -100 ? T(-100) : y;
  }
  template <class T>
  TENET_ALWAYS_INLINE T df(T x, T) const {
    const T p = x * (1 - x);
    return (complement ? -x : 1 - x) / (p < T(1e-12) ? T(1e-12) : p);
  }
  template <class T>
  T ddf(T x) const {
    const T d = df(x, T());
    return -d * d;
  }
};

/// log(1 / (1 + e^-x)).
struct LogSigmoid : UnaryOp<LogSigmoid> {
  static constexpr const char* name = "log_sigmoid";
  static constexpr Keeps keeps = Keeps::input;
  template <class T>
  TENET_ALWAYS_INLINE T f(T x) const {
    const T low = x < 0 ? x : T(0), a = x < 0 ? x : -x;
    return low - cpu::math::log1p(cpu::math::exp(a));
  }
  template <class T>
  TENET_ALWAYS_INLINE T df(T x, T) const {
    return cpu::math::sigmoid(-x);
  }
  template <class T>
  T ddf(T x) const {
    return -cpu::math::sigmoid(x) * cpu::math::sigmoid(-x);
  }
};

}  // namespace op

/// -(target * log(p) + (1 - target) * log(1 - p)), the logarithms clamped at -100 so that certain errors stay finite.
/// Throws Error unless all of p are in [0, 1]. binary_cross_entropy_with_logits is more exact. See
/// torch.nn.functional.binary_cross_entropy.
template <TensorLike X>
tensor_t<X> binary_cross_entropy(const X& p, const tensor_t<X>& target, const BinaryCrossEntropyOptions& o = {}) {
  using T = element_t<X>;
  constexpr const char* op = "binary_cross_entropy";
  detail::check_same_shape(op, p.shape(), target.shape());
  if (reduce<bool>(detail::AnyOutsideUnit{}, static_cast<const Tensor<T>&>(p), reduced_dims(op, {}, false, p.dim()))
          .item()) {
    throw Error("binary_cross_entropy: expected probabilities in [0, 1], got others; are these logits?");
  }
  const Tensor<T> yes = mul(target, apply_float<op::ClampedLog>(p, op::ClampedLog(false)));
  const Tensor<T> no = mul(1 - target, apply_float<op::ClampedLog>(p, op::ClampedLog(true)));
  return reduce_losses(detail::weighted(op, neg(yes + no), o.weight), o.reduction);
}

/// binary_cross_entropy of sigmoid(x), computed without overflow. See
/// torch.nn.functional.binary_cross_entropy_with_logits.
template <TensorLike X>
tensor_t<X> binary_cross_entropy_with_logits(const X& x, const tensor_t<X>& target,
                                             const BinaryCrossEntropyWithLogitsOptions& o = {}) {
  using T = element_t<X>;
  constexpr const char* op = "binary_cross_entropy_with_logits";
  detail::check_same_shape(op, x.shape(), target.shape());
  Tensor<T> log_p = apply_float<op::LogSigmoid>(x, op::LogSigmoid{});
  const Tensor<T> no = 1 - target;
  if (o.pos_weight) log_p = mul(log_p, no + detail::weighted(op, target, o.pos_weight));
  const Tensor<T> losses = sub(mul(no, x), log_p);
  return reduce_losses(detail::weighted(op, losses, o.weight), o.reduction);
}

}  // namespace TENET_CONFIG
}  // namespace tenet
