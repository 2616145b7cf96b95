// Division with rounding, and what it leaves; of any numbers, elementwise with broadcasting.
//
// Each throws ShapeError if the shapes do not broadcast, and Error if integers are divided by 0.
#pragma once

#include <tenet/kernels/cpu/integer.hpp>
#include <tenet/ops/rounding.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace op {

struct Fmod : BinaryOp<Fmod> {
  static constexpr const char* name = "fmod";
  static constexpr bool vectorize = false;
  template <class T>
  T f(T a, T b) const {
    if constexpr (std::is_integral_v<T>) return cpu::truncated_remainder(a, b);
    else return std::fmod(a, b);
  }
  static void keep(Context& ctx, const AnyTensor& a, const AnyTensor& b) {
    ctx.keep(a, ctx.wants(1));
    ctx.keep(b, ctx.wants(1));
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    if (grad.wants(0)) grad[0] = g;
    if (grad.wants(1)) grad[1] = neg(mul(g, trunc(div(grad.kept<T>(0), grad.kept<T>(1)))));
  }
};

struct Remainder : BinaryOp<Remainder> {
  static constexpr const char* name = "remainder";
  static constexpr bool vectorize = false;
  template <class T>
  T f(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return cpu::floored_remainder(a, b);
    } else {
      const T r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
  }
  static void keep(Context& ctx, const AnyTensor& a, const AnyTensor& b) { Fmod::keep(ctx, a, b); }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    if (grad.wants(0)) grad[0] = g;
    if (grad.wants(1)) grad[1] = neg(mul(g, floor(div(grad.kept<T>(0), grad.kept<T>(1)))));
  }
};

struct FloorDivide : BinaryOp<FloorDivide> {
  static constexpr const char* name = "floor_divide";
  static constexpr bool vectorize = false;
  template <class T>
  T f(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return cpu::floored_quotient(a, b);
    } else {
      if (b == 0) return a / b;
      // a / b may round up to an integer that the quotient does not reach: what divides evenly is certain.
      const T r = std::fmod(a, b), q = (a - r) / b;
      return std::nearbyint(r != 0 && (r < 0) != (b < 0) ? q - 1 : q);
    }
  }
  static void keep(Context&, const AnyTensor&, const AnyTensor&) {}
};

}  // namespace op

namespace detail {

template <class Op, class A, class B>
tensor_t<A> divide(A&& a, B&& b) {
  using T = element_t<A>;
  static_assert(!std::is_same_v<T, bool>, "division of truth values: convert to numbers first");
  if constexpr (std::is_integral_v<T>) {
    for (const T v : b.to_vector()) {
      if (v == 0) throw Error(text({Op::name, ": an integer is divided by 0"}));
    }
  }
  return apply<Op>(as_tensor(std::forward<A>(a)), as_tensor(std::forward<B>(b)));
}

}  // namespace detail

/// a - trunc(a / b) * b: what is left, with the sign of a, as C's.
template <TensorLike A, TensorLike B>
tensor_t<A> fmod(A&& a, B&& b) {
  return detail::divide<op::Fmod>(std::forward<A>(a), std::forward<B>(b));
}
/// a - floor(a / b) * b: what is left, with the sign of b, as Python's %.
template <TensorLike A, TensorLike B>
tensor_t<A> remainder(A&& a, B&& b) {
  return detail::divide<op::Remainder>(std::forward<A>(a), std::forward<B>(b));
}
/// a / b rounded down, as Python's //. Has no gradient.
template <TensorLike A, TensorLike B>
tensor_t<A> floor_divide(A&& a, B&& b) {
  return detail::divide<op::FloorDivide>(std::forward<A>(a), std::forward<B>(b));
}

template <TensorLike X, ScalarFor<element_t<X>> V>
tensor_t<X> fmod(X&& x, V divisor) {
  return fmod(std::forward<X>(x), scalar(element_t<X>(divisor)));
}
template <TensorLike X, ScalarFor<element_t<X>> V>
tensor_t<X> remainder(X&& x, V divisor) {
  return remainder(std::forward<X>(x), scalar(element_t<X>(divisor)));
}
template <TensorLike X, ScalarFor<element_t<X>> V>
tensor_t<X> floor_divide(X&& x, V divisor) {
  return floor_divide(std::forward<X>(x), scalar(element_t<X>(divisor)));
}

}  // namespace TENET_CONFIG
}  // namespace tenet
