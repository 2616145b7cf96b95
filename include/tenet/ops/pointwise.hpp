// Pointwise operations: what every unary and binary function of elements has in common.
//
// A unary operation gives f(x), its derivative df(x, y) with y = f(x), and, to be differentiable twice, the
// derivative ddf(k) of df by what it keeps. One loop computes all of them. Its parameters are its members:
//   struct Tanh : UnaryOp<Tanh> {
//     static constexpr const char* name = "tanh";
//     static constexpr Keeps keeps = Keeps::output;
//     TENET_ALWAYS_INLINE auto f(auto x) const { return cpu::math::tanh(x); }
//     TENET_ALWAYS_INLINE auto df(auto, auto y) const { return 1 - y * y; }
//     auto ddf(auto y) const { return -2 * y; }
//   };
// f, df and what they call are always inlined, or the loop is not vectorized. `static constexpr bool fused = true`
// lets products and sums be fused where the processor can: worth it for long polynomials.
// Where the product g * df would turn an infinite gradient into NaN (df = 0), it gives chain(g, k) in its place.
// A binary operation gives f(a, b), what to keep, and a backward written with operations.
#pragma once

#include <tenet/ops/apply.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

/// What a unary operation's derivative is computed from.
enum class Keeps { nothing, input, output };

namespace detail {

template <class Op>
constexpr bool vectorizes = [] {
  if constexpr (requires { Op::vectorize; }) return bool(Op::vectorize);
  else return true;
}();

template <class Op>
struct Function {
  static constexpr bool vectorize = vectorizes<Op>, fused = cpu::detail::Fused<Op>;
  Op op;
  TENET_ALWAYS_INLINE auto operator()(auto... x) const { return op.f(x...); }
};

/// g * df, from the kept x or y; or the operation's own chain(g, k).
template <class Op>
struct Derivative {
  static constexpr bool vectorize = vectorizes<Op>, fused = cpu::detail::Fused<Op>;
  Op op;
  template <class T>
  TENET_ALWAYS_INLINE T operator()(T g, T k) const {
    if constexpr (requires { op.chain(g, k); }) return op.chain(g, k);
    else if constexpr (Op::keeps == Keeps::output) return g * op.df(T(0), k);
    else return g * op.df(k, op.f(k));
  }
};

/// g * ddf.
template <class Op>
struct SecondDerivative {
  static constexpr bool vectorize = false;  // rare: one loop is enough
  Op op;
  template <class T>
  TENET_ALWAYS_INLINE T operator()(T g, T k) const {
    return g * op.ddf(k);
  }
};

/// out = f(a, b), broadcast to the shape of `out`.
template <class F, class Out, class T>
void run_binary(F f, const Tensor<Out>& out, const Tensor<T>& a, const Tensor<T>& b) {
  if (a.shape() == b.shape() && out.is_contiguous() && a.is_contiguous() && b.is_contiguous()) {
    return cpu::map_contiguous<F, Out, T, T>(f, out.numel(), out.data(), a.data(), b.data());
  }
  Strides sa, sb;
  cpu::map<F, Out, T, T>(f, out.dim(), out.shape().data(), target(out), broadcast(a, out.shape(), sa),
                         broadcast(b, out.shape(), sb));
}

/// out = f(a, b, c), of any element types, broadcast to the shape of `out`.
template <class F, class Out, class A, class B, class C>
void run_ternary(F f, const Tensor<Out>& out, const Tensor<A>& a, const Tensor<B>& b, const Tensor<C>& c) {
  Strides sa, sb, sc;
  cpu::map<F, Out, A, B, C>(f, out.dim(), out.shape().data(), target(out), broadcast(a, out.shape(), sa),
                            broadcast(b, out.shape(), sb), broadcast(c, out.shape(), sc));
}

template <class F, class Out, class T>
void run_unary(F f, const Tensor<Out>& out, const Tensor<T>& x) {
  if (out.is_contiguous() && x.is_contiguous()) {
    return cpu::map_contiguous<F, Out, T>(f, out.numel(), out.data(), x.data());
  }
  cpu::map<F, Out, T>(f, out.dim(), out.shape().data(), target(out), source(x));
}

}  // namespace detail

/// `x` as operations see it: a const Tensor<T>&, or a Tensor<T>&& for a temporary, whose memory may be reused.
template <TensorLike X>
decltype(auto) as_tensor(X&& x) {
  using Plain = tensor_t<X>;
  if constexpr (std::is_lvalue_reference_v<X> || std::is_const_v<std::remove_reference_t<X>>) {
    return static_cast<const Plain&>(x);
  } else {
    return static_cast<Plain&&>(x);
  }
}

/// Runs a unary operation that only floating types have.
template <class Op, TensorLike X>
tensor_t<X> apply_float(X&& x, Op op = {}) {
  static_assert(FloatElement<element_t<X>>, "expected elements of a floating type: convert with to<float>() first");
  return apply<Op>(as_tensor(std::forward<X>(x)), op);
}

/// g * ddf(k): the gradient of a PointwiseGrad by what was kept.
template <class Op>
struct PointwiseGrad2 {
  static constexpr const char* name = "pointwise_grad2";
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& g, const Tensor<T>& k, Op op) {
    if constexpr (requires { op.ddf(1.0f); }) {
      Tensor<T> out = empty<T>(k.shape());
      detail::run_binary(detail::SecondDerivative<Op>{op}, out, g, k);
      return out;
    } else {
      throw NotImplemented(text({Op::name, ": has no second derivative here"}));
    }
  }
  template <class T>
  static void backward(Grad, const Tensor<T>&) {
    throw NotImplemented(text({Op::name, ": cannot be differentiated a third time"}));
  }
};

/// g * df: the gradient of a unary operation, fused into one loop.
template <class Op>
struct PointwiseGrad {
  static constexpr const char* name = "pointwise_grad";
  static constexpr bool reuses = true;
  template <class G, class T>
  static Tensor<T> forward(Context& ctx, G&& g, const Tensor<T>& k, Op op) {
    ctx.keep(g, ctx.wants(1));
    ctx.keep(k);
    Tensor<T> out = reuse_or_empty(std::forward<G>(g), k.shape());
    detail::run_binary(detail::Derivative<Op>{op}, out, static_cast<const Tensor<T>&>(g), k);
    return out;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& gg) {
    const Op& op = grad.options<Op>();
    const Tensor<T> k = grad.kept<T>(1);
    if (grad.wants(0)) grad[0] = apply<PointwiseGrad<Op>>(gg, k, op);
    if (grad.wants(1)) grad[1] = apply<PointwiseGrad2<Op>>(mul(gg, grad.kept<T>(0)), k, op);
  }
};

/// Base of unary operations; see the top of this file.
template <class Self>
struct UnaryOp {
  static constexpr bool reuses = true;
  template <class X>
  static void keep(Context& ctx, const X& x) {
    if constexpr (Self::keeps == Keeps::input) ctx.keep(x);
    if constexpr (Self::keeps == Keeps::output) ctx.keep_output();
  }
  template <class T>
  static void run(const Tensor<T>& out, const Tensor<T>& x, Self op) {
    detail::run_unary(detail::Function<Self>{op}, out, x);
  }
  template <class X>
  static tensor_t<X> forward(Context& ctx, X&& x, Self op) {
    keep(ctx, x);
    tensor_t<X> out = reuse_or_empty(std::forward<X>(x), x.shape());
    run(out, static_cast<const tensor_t<X>&>(x), op);
    return out;
  }
  template <class T>
  static void backward(Grad grad, Tensor<T>&& g) {  // a gradient that nobody else holds lends its memory
    if constexpr (Self::keeps == Keeps::output) {
      grad[0] = apply<PointwiseGrad<Self>>(std::move(g), grad.output<T>(), grad.options<Self>());
    } else {
      grad[0] = apply<PointwiseGrad<Self>>(std::move(g), grad.kept<T>(0), grad.options<Self>());
    }
  }
};

/// Base of binary operations. `Result<T>` is the output's element type: T, or bool for comparisons.
template <class Self>
struct BinaryOp {
  static constexpr bool reuses = true;
  template <class T>
  using Result = T;

  template <class T, class Out>
  static void run(const Tensor<Out>& out, const Tensor<T>& a, const Tensor<T>& b) {
    detail::run_binary(detail::Function<Self>{}, out, a, b);
  }
  template <class A, class B>
  static auto forward(Context& ctx, A&& a, B&& b) {
    using T = element_t<A>;
    static_assert(std::is_same_v<T, element_t<B>>, "operands of different element types: convert one with to<T>()");
    Self::keep(ctx, a, b);
    if (a.shape() == b.shape()) return compute(std::forward<A>(a), std::forward<B>(b), a.shape());
    return compute(std::forward<A>(a), std::forward<B>(b), broadcast_shapes(Self::name, a.shape(), b.shape()));
  }

 private:
  template <class A, class B>
  static auto compute(A&& a, B&& b, const Shape& shape) {
    using T = element_t<A>;
    using R = typename Self::template Result<T>;
    if constexpr (std::is_same_v<R, T>) {
      // Whichever of the two is a temporary of the right shape lends its memory.
      Tensor<T> out = a.shape() == shape && !std::is_lvalue_reference_v<A> ? reuse_or_empty(std::forward<A>(a), shape)
                                                                           : reuse_or_empty(std::forward<B>(b), shape);
      run<T, R>(out, a, b);
      return out;
    } else {
      Tensor<R> out = empty<R>(shape);
      run<T, R>(out, a, b);
      return out;
    }
  }
};

}  // namespace TENET_CONFIG
}  // namespace tenet
