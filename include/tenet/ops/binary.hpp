// Powers, extrema and angles of two tensors, elementwise with broadcasting.
//
// Both operands have one element type; a number takes the tensor's. Each throws ShapeError if the shapes do not
// broadcast.
#pragma once

#include <tenet/ops/unary.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

// ---- powers

namespace op {

/// b * a^(b - 1), the slope of a power in its base: 0 where b is 0, for every a.
struct PowBaseSlope : BinaryOp<PowBaseSlope> {
  static constexpr const char* name = "pow_base_slope";
  static constexpr bool vectorize = false;
  TENET_ALWAYS_INLINE auto f(auto a, auto b) const { return b == 0 ? b : b * cpu::math::pow(a, b - 1); }
  static void keep(Context& ctx, const AnyTensor& a, const AnyTensor& b) {
    ctx.keep(a);
    ctx.keep(b);
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g);
};

/// a^b * log(a), the slope in the exponent: 0 where a is 0 and b >= 0, as the power itself is constant there.
struct PowExponentSlope : BinaryOp<PowExponentSlope> {
  static constexpr const char* name = "pow_exponent_slope";
  static constexpr bool vectorize = false;
  template <class T>
  TENET_ALWAYS_INLINE T f(T a, T b) const {
    return a == 0 && b >= 0 ? T(0) : cpu::math::pow(a, b) * cpu::math::log(a);
  }
  static void keep(Context& ctx, const AnyTensor& a, const AnyTensor& b) { PowBaseSlope::keep(ctx, a, b); }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g);
};

struct Pow : BinaryOp<Pow> {
  static constexpr const char* name = "pow";
  static constexpr bool vectorize = false;
  TENET_ALWAYS_INLINE auto f(auto a, auto b) const { return cpu::math::pow(a, b); }
  static void keep(Context& ctx, const AnyTensor& a, const AnyTensor& b) { PowBaseSlope::keep(ctx, a, b); }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const Tensor<T> a = grad.kept<T>(0), b = grad.kept<T>(1);
    if (grad.wants(0)) grad[0] = mul(g, apply<PowBaseSlope>(a, b));
    if (grad.wants(1)) grad[1] = mul(g, apply<PowExponentSlope>(a, b));
  }
};

}  // namespace op

namespace detail {
/// The derivative of a^b by both: a^(b - 1) * (1 + b log(a)).
template <class T>
Tensor<T> pow_mixed_slope(const Tensor<T>& a, const Tensor<T>& b) {
  const Tensor<T> less = b - 1;
  return add(apply<op::Pow>(a, less), mul(b, apply<op::PowExponentSlope>(a, less)));
}
}  // namespace detail

namespace op {

template <class T>
void PowBaseSlope::backward(Grad grad, const Tensor<T>& g) {
  const Tensor<T> a = grad.kept<T>(0), b = grad.kept<T>(1);
  if (grad.wants(0)) grad[0] = mul(mul(g, b), apply<PowBaseSlope>(a, b - 1));
  if (grad.wants(1)) grad[1] = mul(g, detail::pow_mixed_slope(a, b));
}
template <class T>
void PowExponentSlope::backward(Grad grad, const Tensor<T>& g) {
  const Tensor<T> a = grad.kept<T>(0), b = grad.kept<T>(1);
  if (grad.wants(0)) grad[0] = mul(g, detail::pow_mixed_slope(a, b));
  if (grad.wants(1)) grad[1] = mul(g, mul(apply<PowExponentSlope>(a, b), log(a)));
}

struct PowScalar : UnaryOp<PowScalar> {
  static constexpr const char* name = "pow";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool vectorize = false;
  double exponent;
  template <class T>
  TENET_ALWAYS_INLINE T f(T x) const {
    if constexpr (std::is_floating_point_v<T>) return cpu::math::pow(x, T(exponent));
    else return cpu::power(x, std::int64_t(exponent));
  }
  template <class T>
  TENET_ALWAYS_INLINE T df(T x, T) const {
    return exponent == 0 ? T(0) : T(exponent) * cpu::math::pow(x, T(exponent - 1));
  }
  template <class T>
  T ddf(T x) const {
    if (exponent == 0 || exponent == 1) return T(0);
    return T(exponent * (exponent - 1)) * cpu::math::pow(x, T(exponent - 2));
  }
};

}  // namespace op

/// a^b, of floating types. The gradient of `a` is 0 where b is 0; that of `b` is 0 where a is 0 and b >= 0.
template <TensorLike A, TensorLike B>
tensor_t<A> pow(A&& a, B&& b) {
  static_assert(FloatElement<element_t<A>>, "pow of two tensors: convert to a floating type first");
  return apply<op::Pow>(as_tensor(std::forward<A>(a)), as_tensor(std::forward<B>(b)));
}
/// x^exponent. Throws Error if x is of integers and the exponent is negative.
template <TensorLike X, ScalarFor<element_t<X>> V>
tensor_t<X> pow(X&& x, V exponent) {
  if constexpr (FloatElement<element_t<X>>) {
    if (exponent == V(2)) return square(std::forward<X>(x));
    if (double(exponent) == 0.5) return sqrt(std::forward<X>(x));
  } else {
    if (exponent < V(0)) throw Error(text({"pow: integers to a negative power, ", exponent}));
  }
  return apply<op::PowScalar>(as_tensor(std::forward<X>(x)), op::PowScalar{{}, double(exponent)});
}
/// base^x, of floating types; gradient 0 where the base is 0 and x >= 0.
template <TensorLike X, ScalarFor<element_t<X>> V>
tensor_t<X> pow(V base, X&& x) {
  return pow(scalar(element_t<X>(base)), std::forward<X>(x));
}
/// x <- x^exponent; see pow. Throws as every change in place (ops/inplace.hpp).
template <TensorLike X, ScalarFor<element_t<X>> V>
const X& pow_(const X& x, V exponent) {
  if (!FloatElement<element_t<X>> && exponent < V(0)) {
    throw Error(text({"pow_: integers to a negative power, ", exponent}));
  }
  apply_inplace(static_cast<const tensor_t<X>&>(x), op::PowScalar{{}, double(exponent)});
  return x;
}

// ---- extrema

namespace op {

/// The part of gradient `g` that goes to `a` where the larger of a and b was taken: half of it between equals. NaN
/// was taken too, from either side.
struct LargerShare {
  static constexpr const char* name = "larger_share";
  template <class T>
  TENET_ALWAYS_INLINE T operator()(T g, T a, T b) const {
    return a == b ? g / 2 : a < b ? T(0) : g;
  }
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& g, const Tensor<T>& a, const Tensor<T>& b) {
    ctx.keep(a);
    ctx.keep(b);
    Tensor<T> out = empty<T>(g.shape());
    detail::run_ternary(LargerShare{}, out, g, a, b);
    return out;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& gg) {
    if (grad.wants(0)) grad[0] = apply<LargerShare>(gg, grad.kept<T>(0), grad.kept<T>(1));
  }
};

struct Maximum : BinaryOp<Maximum> {
  static constexpr const char* name = "maximum";
  TENET_ALWAYS_INLINE auto f(auto a, auto b) const { return ((a > b) | (a != a)) ? a : b; }
  static void keep(Context& ctx, const AnyTensor& a, const AnyTensor& b) {
    ctx.keep(a);
    ctx.keep(b);
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const Tensor<T> a = grad.kept<T>(0), b = grad.kept<T>(1);
    if (grad.wants(0)) grad[0] = apply<LargerShare>(g, a, b);
    if (grad.wants(1)) grad[1] = apply<LargerShare>(g, b, a);
  }
};

struct Minimum : BinaryOp<Minimum> {
  static constexpr const char* name = "minimum";
  TENET_ALWAYS_INLINE auto f(auto a, auto b) const { return ((a < b) | (a != a)) ? a : b; }
  static void keep(Context& ctx, const AnyTensor& a, const AnyTensor& b) { Maximum::keep(ctx, a, b); }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const Tensor<T> a = grad.kept<T>(0), b = grad.kept<T>(1);
    if (grad.wants(0)) grad[0] = apply<LargerShare>(g, b, a);
    if (grad.wants(1)) grad[1] = apply<LargerShare>(g, a, b);
  }
};

}  // namespace op

/// The larger of a and b; NaN if one of them is. Equals share the gradient.
template <TensorLike A, TensorLike B>
tensor_t<A> maximum(A&& a, B&& b) {
  return apply<op::Maximum>(as_tensor(std::forward<A>(a)), as_tensor(std::forward<B>(b)));
}
/// The smaller of a and b; NaN if one of them is. Equals share the gradient.
template <TensorLike A, TensorLike B>
tensor_t<A> minimum(A&& a, B&& b) {
  return apply<op::Minimum>(as_tensor(std::forward<A>(a)), as_tensor(std::forward<B>(b)));
}

// ---- angles

namespace op {

struct Atan2 : BinaryOp<Atan2> {
  static constexpr const char* name = "atan2";
  static constexpr bool vectorize = false;
  TENET_ALWAYS_INLINE auto f(auto y, auto x) const { return std::atan2(y, x); }
  static void keep(Context& ctx, const AnyTensor& y, const AnyTensor& x) {
    ctx.keep(y);
    ctx.keep(x);
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const Tensor<T> y = grad.kept<T>(0), x = grad.kept<T>(1);
    const Tensor<T> scaled = div(g, add(square(y), square(x)));
    if (grad.wants(0)) grad[0] = mul(scaled, x);
    if (grad.wants(1)) grad[1] = neg(mul(scaled, y));
  }
};

}  // namespace op

/// The angle of the point (x, y), in [-pi, pi], of floating types. Its gradient at (0, 0) is NaN.
template <TensorLike Y, TensorLike X>
tensor_t<Y> atan2(Y&& y, X&& x) {
  static_assert(FloatElement<element_t<Y>>, "atan2: convert to a floating type first");
  return apply<op::Atan2>(as_tensor(std::forward<Y>(y)), as_tensor(std::forward<X>(x)));
}

}  // namespace TENET_CONFIG
}  // namespace tenet
