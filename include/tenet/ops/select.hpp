// where, masked_fill, clamp, nan_to_num: choosing between elements.
//
// The gradient goes to the elements chosen, and is exactly 0 for the others. Still, by the chain rule, a branch
// that is not chosen has a say: in where(x != 0, 1 / x, x) the gradient 0 meets the infinite slope of 1 / x at 0
// and becomes NaN. Make the branch safe before, not after: where(x != 0, 1 / where(x != 0, x, 1), x).
#pragma once

#include <tenet/ops/compare.hpp>
#include <tenet/ops/inplace.hpp>

#include <limits>
#include <optional>

namespace tenet {
inline namespace TENET_CONFIG {

namespace op {

struct Where {
  static constexpr const char* name = "where";
  template <class T>
  TENET_ALWAYS_INLINE T operator()(bool c, T a, T b) const {
    return c ? a : b;
  }
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<bool>& c, const Tensor<T>& a, const Tensor<T>& b) {
    ctx.keep(c);
    Tensor<T> out = empty<T>(broadcast_shapes(name, c.shape(), broadcast_shapes(name, a.shape(), b.shape())));
    detail::run_ternary(Where{}, out, c, a, b);
    return out;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const Tensor<bool> c = grad.kept<bool>(0);
    const Tensor<T> zero = scalar(T(0));
    if (grad.wants(1)) grad[1] = apply<Where>(c, g, zero);
    if (grad.wants(2)) grad[2] = apply<Where>(c, zero, g);
  }
};

}  // namespace op

/// The elements of `a` where the condition holds, those of `b` elsewhere; the three broadcast. Throws ShapeError if
/// they do not.
template <TensorLike A, TensorLike B>
tensor_t<A> where(const Tensor<bool>& condition, const A& a, const B& b) {
  static_assert(std::is_same_v<element_t<A>, element_t<B>>, "where: operands of different element types");
  return apply<op::Where>(condition, static_cast<const tensor_t<A>&>(a), static_cast<const tensor_t<B>&>(b));
}
template <TensorLike A, ScalarFor<element_t<A>> V>
tensor_t<A> where(const Tensor<bool>& condition, const A& a, V b) {
  return where(condition, a, scalar(element_t<A>(b)));
}
template <TensorLike B, ScalarFor<element_t<B>> V>
tensor_t<B> where(const Tensor<bool>& condition, V a, const B& b) {
  return where(condition, scalar(element_t<B>(a)), b);
}

namespace detail {
inline void check_mask(const char* op, const Shape& x, const Shape& mask) {
  if (!(broadcast_shapes(op, x, mask) == x)) {
    throw ShapeError(text({op, ": a mask of shape ", mask, " does not broadcast to ", x}));
  }
}
}  // namespace detail

/// `x` with `value` where the mask is true. Throws ShapeError unless the mask broadcasts to x's shape.
template <TensorLike X, ScalarFor<element_t<X>> V>
tensor_t<X> masked_fill(const X& x, const Tensor<bool>& mask, V value) {
  detail::check_mask("masked_fill", x.shape(), mask.shape());
  return where(mask, value, x);
}
/// The same, in place. Throws as every change in place (ops/inplace.hpp).
template <TensorLike X, ScalarFor<element_t<X>> V>
const X& masked_fill_(const X& x, const Tensor<bool>& mask, V value) {
  x.copy_(masked_fill(x, mask, value));
  return x;
}

// ---- bounds

namespace op {

template <class T>
struct Clamp : UnaryOp<Clamp<T>> {
  static constexpr const char* name = "clamp";
  static constexpr Keeps keeps = Keeps::input;
  T low, high;
  template <class C>
  TENET_ALWAYS_INLINE C f(C x) const {
    const C y = x < C(low) ? C(low) : x;
    return y > C(high) ? C(high) : y;
  }
  template <class C>
  TENET_ALWAYS_INLINE C chain(C g, C x) const {
    return ((x < C(low)) | (x > C(high))) ? C(0) : g;
  }
  auto ddf(auto x) const { return decltype(x)(0); }
};

struct NanToNum : UnaryOp<NanToNum> {
  static constexpr const char* name = "nan_to_num";
  static constexpr Keeps keeps = Keeps::input;
  double nan, positive, negative;
  template <class T>
  TENET_ALWAYS_INLINE T f(T x) const {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    return x != x ? T(nan) : x == infinity ? T(positive) : x == -infinity ? T(negative) : x;
  }
  template <class T>
  TENET_ALWAYS_INLINE T chain(T g, T x) const {
    return x - x == 0 ? g : T(0);
  }
  auto ddf(auto x) const { return decltype(x)(0); }
};

}  // namespace op

namespace detail {

template <class T>
using Bound = std::optional<std::type_identity_t<T>>;

template <class T>
op::Clamp<T> clamp_to(const char* op, const Bound<T>& min, const Bound<T>& max) {
  using Limits = std::numeric_limits<T>;
  if (!min && !max) throw Error(text({op, ": expected a lower or an upper bound"}));
  constexpr bool endless = FloatElement<T>;
  return {{},
          min.value_or(endless ? -Limits::infinity() : Limits::lowest()),
          max.value_or(endless ? Limits::infinity() : Limits::max())};
}

/// `x` where it is at least `bound`, else the bound; a NaN in either stays.
template <class T>
Tensor<T> at_least(const Tensor<T>& x, const Tensor<T>& bound) {
  return where(logical_or(lt(x, bound), isnan(bound)), bound, x);
}
template <class T>
Tensor<T> at_most(const Tensor<T>& x, const Tensor<T>& bound) {
  return where(logical_or(gt(x, bound), isnan(bound)), bound, x);
}

}  // namespace detail

/// `x` within [min, max], of any numbers; an absent bound (std::nullopt) does not bind. If min > max, every element
/// is max. NaN stays, and passes its gradient on, as do elements on a bound. Throws Error without any bound.
template <TensorLike X>
tensor_t<X> clamp(X&& x, detail::Bound<element_t<X>> min, detail::Bound<element_t<X>> max = std::nullopt) {
  return apply<op::Clamp<element_t<X>>>(as_tensor(std::forward<X>(x)),
                                        detail::clamp_to<element_t<X>>("clamp", min, max));
}
/// `x`, but no less than `min`.
template <TensorLike X>
tensor_t<X> clamp_min(X&& x, element_t<X> min) {
  return clamp(std::forward<X>(x), min);
}
/// `x`, but no more than `max`.
template <TensorLike X>
tensor_t<X> clamp_max(X&& x, element_t<X> max) {
  return clamp(std::forward<X>(x), std::nullopt, max);
}
/// `x` within bounds of its own for each element; the three broadcast. An undefined bound does not bind. The gradient
/// goes to what was taken, to `x` between equals. Throws ShapeError if the shapes do not broadcast, Error without any
/// bound.
template <TensorLike X>
tensor_t<X> clamp(const X& x, const tensor_t<X>& min, const tensor_t<X>& max) {
  if (!min && !max) throw Error("clamp: expected a lower or an upper bound");
  tensor_t<X> y = x;
  if (min) y = detail::at_least(y, min);
  if (max) y = detail::at_most(y, max);
  return y;
}
/// x <- clamp(x, min, max). Throws as every change in place (ops/inplace.hpp).
template <TensorLike X>
const X& clamp_(const X& x, detail::Bound<element_t<X>> min, detail::Bound<element_t<X>> max = std::nullopt) {
  apply_inplace(static_cast<const tensor_t<X>&>(x), detail::clamp_to<element_t<X>>("clamp_", min, max));
  return x;
}

/// `x` with NaN replaced by `nan`, and the infinities by `posinf` and `neginf`, the largest and the lowest finite
/// number if absent. Gradient 0 for what was replaced.
template <TensorLike X>
tensor_t<X> nan_to_num(X&& x, double nan = 0, std::optional<double> posinf = std::nullopt,
                       std::optional<double> neginf = std::nullopt) {
  using Limits = std::numeric_limits<element_t<X>>;
  return apply_float<op::NanToNum>(
      std::forward<X>(x),
      op::NanToNum{{}, nan, posinf.value_or(double(Limits::max())), neginf.value_or(double(Limits::lowest()))});
}

}  // namespace TENET_CONFIG
}  // namespace tenet
