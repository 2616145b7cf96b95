// Variances, standard deviations and norms.
//
// `dims`, `keepdim` and errors are those of ops/reduce.hpp. All are of floating types; half and bfloat16 are
// accumulated in float.
#pragma once

#include <tenet/ops/extremes.hpp>
#include <tenet/ops/unary.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace op {

/// a / b, 0 where b is 0: where a norm has no derivative, 0 is taken.
struct DivOrZero : BinaryOp<DivOrZero> {
  static constexpr const char* name = "div_or_zero";
  template <class T>
  TENET_ALWAYS_INLINE T f(T a, T b) const {
    return b == 0 ? T(0) : a / b;
  }
  static void keep(Context& ctx, const AnyTensor& a, const AnyTensor& b) {
    ctx.keep(a, ctx.wants(1));
    ctx.keep(b);
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const Tensor<T> b = grad.kept<T>(1), q = apply<DivOrZero>(g, b);
    if (grad.wants(0)) grad[0] = q;
    if (grad.wants(1)) grad[1] = neg(apply<DivOrZero>(mul(q, grad.kept<T>(0)), b));
  }
};

}  // namespace op

namespace detail {

struct VarianceOf {
  Reduced reduced;
  double correction;
};

/// The gradient of a variance: x - mean(x), times g * 2 / (count - correction).
template <class T>
Tensor<T> var_gradient(const Tensor<T>& g, const Tensor<T>& x, const VarianceOf& v) {
  Reduced kept = v.reduced;
  kept.keepdim = true;
  const double count = double(reduced_count(x.shape(), v.reduced)), over = std::max(count - v.correction, 0.0);
  const Tensor<T> deviations = sub(x, apply<op::Mean>(x, op::Mean::Options{kept, count}));
  return mul(deviations, spread(apply<op::DivideBy>(g, op::DivideBy(over / 2)), x.shape(), v.reduced));
}

struct Deviation : cpu::Var {
  template <class S>
  auto finish(const S& s, std::int64_t count) const {
    return std::sqrt(cpu::Var::finish(s, count));
  }
};

struct EuclideanNorm : cpu::SumSquares {
  template <class S>
  S finish(S s, std::int64_t) const {
    return std::sqrt(s);
  }
};

}  // namespace detail

namespace op {

struct Var {
  static constexpr const char* name = "var";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, detail::VarianceOf v) {
    ctx.keep(x);
    return reduce<T>(cpu::Var{v.correction}, x, v.reduced);
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = detail::var_gradient(g, grad.kept<T>(0), grad.options<detail::VarianceOf>());
  }
};

struct Std {
  static constexpr const char* name = "std";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, detail::VarianceOf v) {
    ctx.keep(x);
    ctx.keep_output();
    return reduce<T>(detail::Deviation{{v.correction}}, x, v.reduced);
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const Tensor<T> of_variance = apply<DivOrZero>(g, 2 * grad.output<T>());
    grad[0] = detail::var_gradient(of_variance, grad.kept<T>(0), grad.options<detail::VarianceOf>());
  }
};

struct Norm2 {
  static constexpr const char* name = "norm";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, Reduced r) {
    ctx.keep(x);
    ctx.keep_output();
    return reduce<T>(detail::EuclideanNorm{}, x, r);
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const Tensor<T> x = grad.kept<T>(0);
    grad[0] = mul(x, spread(apply<DivOrZero>(g, grad.output<T>()), x.shape(), grad.options<Reduced>()));
  }
};

/// |x|^p, whose derivatives at 0 are taken as 0 where there are none.
struct AbsPow : UnaryOp<AbsPow> {
  static constexpr const char* name = "abs_pow";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool vectorize = false;
  double p;
  explicit AbsPow(double power) : p(power) {}
  template <class T>
  T f(T x) const {
    return std::pow(std::abs(x), T(p));
  }
  template <class T>
  T df(T x, T) const {
    return x == 0 ? T(0) : T(p) * std::copysign(std::pow(std::abs(x), T(p - 1)), x);
  }
  template <class T>
  T ddf(T x) const {
    return x == 0 ? T(0) : T(p * (p - 1)) * std::pow(std::abs(x), T(p - 2));
  }
};

}  // namespace op

namespace detail {

template <class Op, TensorLike X>
tensor_t<X> variance(const X& x, const Dims& dims, bool keepdim, double correction) {
  static_assert(FloatElement<element_t<X>>, "var and std of integers: convert with to<float>() first");
  return apply<Op>(static_cast<const tensor_t<X>&>(x),
                   VarianceOf{reduced_dims(Op::name, dims, keepdim, x.dim()), correction});
}

/// The norm of any other order, through powers.
template <class T>
Tensor<T> power_norm(const Tensor<T>& x, double p, Reduced r) {
  const auto powers = apply<op::AbsPow>(to<cpu::compute_t<T>>(x), op::AbsPow(p));
  return to<T>(apply<op::AbsPow>(apply<op::Sum>(powers, r), op::AbsPow(1 / p)));
}

}  // namespace detail

/// Variances: sums of squared deviations from the mean over max(0, count - correction). See torch.var.
template <TensorLike X>
tensor_t<X> var(const X& x, const Dims& dims = {}, bool keepdim = false, double correction = 1) {
  return detail::variance<op::Var>(x, dims, keepdim, correction);
}

/// Standard deviations, the square roots of var; where one is 0, so is the gradient. Its name needs its namespace,
/// `tenet::std(x)`, where that is imported beside the standard library's. See torch.std.
template <TensorLike X>
tensor_t<X> std(const X& x, const Dims& dims = {}, bool keepdim = false, double correction = 1) {
  return detail::variance<op::Std>(x, dims, keepdim, correction);
}

/// Norms of vectors, (sum of |x|^p)^(1/p); for p = 0 the number of elements that are not 0, outside the graph, for p =
/// infinity (-infinity) the greatest (least) of |x|. Where a norm has no derivative, as at 0, the gradient is 0. Throws
/// ShapeError for infinite p without elements, Error for p = NaN. See torch.linalg.vector_norm.
template <TensorLike X>
tensor_t<X> norm(const X& x, double p = 2, const Dims& dims = {}, bool keepdim = false) {
  using T = element_t<X>;
  static_assert(FloatElement<T>, "norm of integers: convert to a floating type first, as to<float>(x)");
  if (std::isnan(p)) throw Error("norm: expected an order p that is a number, got NaN");
  const Reduced r = reduced_dims("norm", dims, keepdim, x.dim());
  const auto& in = static_cast<const Tensor<T>&>(x);
  if (p == 2) return apply<op::Norm2>(in, r);
  if (p == 1) return apply<op::Sum>(abs(in), r);
  if (p == 0) return to<T>(count_nonzero(in, dims, keepdim));
  if (std::isinf(p)) return p > 0 ? amax(abs(in), dims, keepdim) : amin(abs(in), dims, keepdim);
  return detail::power_norm(in, p, r);
}

}  // namespace TENET_CONFIG
}  // namespace tenet
