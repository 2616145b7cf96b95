// add, sub, mul, div, neg and their operators, broadcasting as NumPy does.
//
// Both operands have one element type (to<U>() converts); a number takes the tensor's. Each throws ShapeError
// if the shapes do not broadcast. Integers wrap around.
#pragma once

#include <tenet/kernels/cpu/integer.hpp>
#include <tenet/ops/pointwise.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace op {

struct Neg : UnaryOp<Neg> {
  static constexpr const char* name = "neg";
  static constexpr Keeps keeps = Keeps::nothing;
  template <class T>
  TENET_ALWAYS_INLINE T f(T x) const {
    return cpu::wrapping_neg(x);
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<Neg>(g, Neg{});
  }
};

struct Add : BinaryOp<Add> {
  static constexpr const char* name = "add";
  template <class T>
  TENET_ALWAYS_INLINE T f(T a, T b) const {
    return cpu::wrapping_add(a, b);
  }
  static void keep(Context&, const AnyTensor&, const AnyTensor&) {}
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    if (grad.wants(0)) grad[0] = g;
    if (grad.wants(1)) grad[1] = g;
  }
};

struct Sub : BinaryOp<Sub> {
  static constexpr const char* name = "sub";
  template <class T>
  TENET_ALWAYS_INLINE T f(T a, T b) const {
    return cpu::wrapping_sub(a, b);
  }
  static void keep(Context&, const AnyTensor&, const AnyTensor&) {}
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    if (grad.wants(0)) grad[0] = g;
    if (grad.wants(1)) grad[1] = neg(g);
  }
};

struct Mul : BinaryOp<Mul> {
  static constexpr const char* name = "mul";
  template <class T>
  TENET_ALWAYS_INLINE T f(T a, T b) const {
    return cpu::wrapping_mul(a, b);
  }
  static void keep(Context& ctx, const AnyTensor& a, const AnyTensor& b) {
    ctx.keep(a, ctx.wants(1));
    ctx.keep(b, ctx.wants(0));
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    if (grad.wants(0)) grad[0] = mul(g, grad.kept<T>(1));
    if (grad.wants(1)) grad[1] = mul(g, grad.kept<T>(0));
  }
};

struct Div : BinaryOp<Div> {
  static constexpr const char* name = "div";
  template <class T>
  TENET_ALWAYS_INLINE T f(T a, T b) const {
    static_assert(!std::is_integral_v<T>, "div of integers: convert to a floating type first, or use floor_divide");
    return a / b;
  }
  static void keep(Context& ctx, const AnyTensor& a, const AnyTensor& b) {
    ctx.keep(a, ctx.wants(1));
    ctx.keep(b);
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const Tensor<T> b = grad.kept<T>(1);
    if (grad.wants(0)) grad[0] = div(g, b);
    if (grad.wants(1)) grad[1] = neg(div(mul(g, grad.kept<T>(0)), mul(b, b)));
  }
};

}  // namespace op

/// A number that may stand beside a tensor of T: a T or any other, but no fraction beside integers.
template <class V, class T>
concept ScalarFor = std::is_same_v<V, T> ||
    (std::is_arithmetic_v<V> && (FloatElement<T> || !std::is_floating_point_v<V>));

/// -x, elementwise.
template <TensorLike X>
tensor_t<X> neg(X&& x) {
  return apply<op::Neg>(std::forward<X>(x), op::Neg{});
}
/// a + b, elementwise.
template <TensorLike A, TensorLike B>
tensor_t<A> add(A&& a, B&& b) {
  return apply<op::Add>(std::forward<A>(a), std::forward<B>(b));
}
/// a - b, elementwise.
template <TensorLike A, TensorLike B>
tensor_t<A> sub(A&& a, B&& b) {
  return apply<op::Sub>(std::forward<A>(a), std::forward<B>(b));
}
/// a * b, elementwise.
template <TensorLike A, TensorLike B>
tensor_t<A> mul(A&& a, B&& b) {
  return apply<op::Mul>(std::forward<A>(a), std::forward<B>(b));
}
/// a / b, elementwise, of floating types.
template <TensorLike A, TensorLike B>
tensor_t<A> div(A&& a, B&& b) {
  return apply<op::Div>(std::forward<A>(a), std::forward<B>(b));
}

/// to += from, unrecorded: one shape, both contiguous. For gradients that nobody else can see.
template <class T>
void add_into(const Tensor<T>& to, const Tensor<T>& from) {
  op::Add::run<T, T>(to, to, from);
}

template <TensorLike X>
tensor_t<X> operator-(X&& x) {
  return neg(std::forward<X>(x));
}

template <TensorLike A, TensorLike B>
tensor_t<A> operator+(A&& a, B&& b) {
  return add(std::forward<A>(a), std::forward<B>(b));
}
template <TensorLike A, ScalarFor<element_t<A>> V>
tensor_t<A> operator+(A&& a, V v) {
  return add(std::forward<A>(a), scalar(element_t<A>(v)));
}
template <TensorLike B, ScalarFor<element_t<B>> V>
tensor_t<B> operator+(V v, B&& b) {
  return add(scalar(element_t<B>(v)), std::forward<B>(b));
}

template <TensorLike A, TensorLike B>
tensor_t<A> operator-(A&& a, B&& b) {
  return sub(std::forward<A>(a), std::forward<B>(b));
}
template <TensorLike A, ScalarFor<element_t<A>> V>
tensor_t<A> operator-(A&& a, V v) {
  return sub(std::forward<A>(a), scalar(element_t<A>(v)));
}
template <TensorLike B, ScalarFor<element_t<B>> V>
tensor_t<B> operator-(V v, B&& b) {
  return sub(scalar(element_t<B>(v)), std::forward<B>(b));
}

template <TensorLike A, TensorLike B>
tensor_t<A> operator*(A&& a, B&& b) {
  return mul(std::forward<A>(a), std::forward<B>(b));
}
template <TensorLike A, ScalarFor<element_t<A>> V>
tensor_t<A> operator*(A&& a, V v) {
  return mul(std::forward<A>(a), scalar(element_t<A>(v)));
}
template <TensorLike B, ScalarFor<element_t<B>> V>
tensor_t<B> operator*(V v, B&& b) {
  return mul(scalar(element_t<B>(v)), std::forward<B>(b));
}

template <TensorLike A, TensorLike B>
tensor_t<A> operator/(A&& a, B&& b) {
  return div(std::forward<A>(a), std::forward<B>(b));
}
template <TensorLike A, ScalarFor<element_t<A>> V>
tensor_t<A> operator/(A&& a, V v) {
  return div(std::forward<A>(a), scalar(element_t<A>(v)));
}
template <TensorLike B, ScalarFor<element_t<B>> V>
tensor_t<B> operator/(V v, B&& b) {
  return div(scalar(element_t<B>(v)), std::forward<B>(b));
}

}  // namespace TENET_CONFIG
}  // namespace tenet

#include <tenet/ops/grad_math.hpp>  // for backward(); needs the operations above
