// Exponentials, logarithms, powers and signs of each element.
//
// All but abs, sign, square and neg_ are of floating types only. Half precision is computed in float.
#pragma once

#include <tenet/kernels/cpu/integer.hpp>
#include <tenet/kernels/cpu/math.hpp>
#include <tenet/ops/inplace.hpp>
#include <tenet/ops/pointwise.hpp>

#include <numbers>

namespace tenet {
inline namespace TENET_CONFIG {

namespace op {

struct Exp : UnaryOp<Exp> {
  static constexpr const char* name = "exp";
  static constexpr Keeps keeps = Keeps::output;
  static constexpr bool fused = true;
  TENET_ALWAYS_INLINE auto f(auto x) const { return cpu::math::exp(x); }
  TENET_ALWAYS_INLINE auto df(auto, auto y) const { return y; }
  auto ddf(auto y) const { return decltype(y)(1); }
};

struct Expm1 : UnaryOp<Expm1> {
  static constexpr const char* name = "expm1";
  static constexpr Keeps keeps = Keeps::output;
  static constexpr bool fused = true;
  TENET_ALWAYS_INLINE auto f(auto x) const { return cpu::math::expm1(x); }
  TENET_ALWAYS_INLINE auto df(auto, auto y) const { return y + 1; }
  auto ddf(auto y) const { return decltype(y)(1); }
};

struct Log : UnaryOp<Log> {
  static constexpr const char* name = "log";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool fused = true;
  TENET_ALWAYS_INLINE auto f(auto x) const { return cpu::math::log(x); }
  TENET_ALWAYS_INLINE auto df(auto x, auto) const { return 1 / x; }
  auto ddf(auto x) const { return -1 / (x * x); }
};

struct Log1p : UnaryOp<Log1p> {
  static constexpr const char* name = "log1p";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool fused = true;
  TENET_ALWAYS_INLINE auto f(auto x) const { return cpu::math::log1p(x); }
  TENET_ALWAYS_INLINE auto df(auto x, auto) const { return 1 / (1 + x); }
  auto ddf(auto x) const { return -1 / ((1 + x) * (1 + x)); }
};

struct Log2 : UnaryOp<Log2> {
  static constexpr const char* name = "log2";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool vectorize = false;
  TENET_ALWAYS_INLINE auto f(auto x) const { return std::log2(x); }
  TENET_ALWAYS_INLINE auto df(auto x, auto) const { return std::numbers::log2e_v<decltype(x)> / x; }
  auto ddf(auto x) const { return -std::numbers::log2e_v<decltype(x)> / (x * x); }
};

struct Log10 : UnaryOp<Log10> {
  static constexpr const char* name = "log10";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool vectorize = false;
  TENET_ALWAYS_INLINE auto f(auto x) const { return std::log10(x); }
  TENET_ALWAYS_INLINE auto df(auto x, auto) const { return std::numbers::log10e_v<decltype(x)> / x; }
  auto ddf(auto x) const { return -std::numbers::log10e_v<decltype(x)> / (x * x); }
};

struct Sqrt : UnaryOp<Sqrt> {
  static constexpr const char* name = "sqrt";
  static constexpr Keeps keeps = Keeps::output;
  TENET_ALWAYS_INLINE auto f(auto x) const { return cpu::math::sqrt(x); }
  TENET_ALWAYS_INLINE auto df(auto, auto y) const { return 1 / (2 * y); }
  auto ddf(auto y) const { return -1 / (2 * y * y); }
};

struct Rsqrt : UnaryOp<Rsqrt> {
  static constexpr const char* name = "rsqrt";
  static constexpr Keeps keeps = Keeps::output;
  TENET_ALWAYS_INLINE auto f(auto x) const { return 1 / cpu::math::sqrt(x); }
  TENET_ALWAYS_INLINE auto df(auto, auto y) const { return y * y * y / -2; }
  auto ddf(auto y) const { return y * y * -3 / 2; }
};

struct Reciprocal : UnaryOp<Reciprocal> {
  static constexpr const char* name = "reciprocal";
  static constexpr Keeps keeps = Keeps::output;
  TENET_ALWAYS_INLINE auto f(auto x) const { return 1 / x; }
  TENET_ALWAYS_INLINE auto df(auto, auto y) const { return -y * y; }
  auto ddf(auto y) const { return -2 * y; }
};

struct Square : UnaryOp<Square> {
  static constexpr const char* name = "square";
  static constexpr Keeps keeps = Keeps::input;
  TENET_ALWAYS_INLINE auto f(auto x) const { return cpu::wrapping_mul(x, x); }
  TENET_ALWAYS_INLINE auto df(auto x, auto) const { return 2 * x; }
  auto ddf(auto x) const { return decltype(x)(2); }
};

struct Erf : UnaryOp<Erf> {
  static constexpr const char* name = "erf";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool fused = true;
  TENET_ALWAYS_INLINE auto f(auto x) const { return cpu::math::erf(x); }
  TENET_ALWAYS_INLINE auto df(auto x, auto) const {
    return 2 * std::numbers::inv_sqrtpi_v<decltype(x)> * cpu::math::exp(-x * x);
  }
  auto ddf(auto x) const { return -2 * x * df(x, x); }
};

struct Abs : UnaryOp<Abs> {
  static constexpr const char* name = "abs";
  static constexpr Keeps keeps = Keeps::input;
  template <class T>
  TENET_ALWAYS_INLINE T f(T x) const {
    if constexpr (std::is_floating_point_v<T>) return x > 0 ? x : 0 - x;
    else return x < T(0) ? cpu::wrapping_neg(x) : x;
  }
  TENET_ALWAYS_INLINE auto df(auto x, auto) const { return decltype(x)(0 < x) - decltype(x)(x < 0); }
  auto ddf(auto x) const { return decltype(x)(0); }
};

}  // namespace op

/// Base of functions made of steps: their gradient is 0.
template <class Self>
struct StepOp : UnaryOp<Self> {
  static constexpr Keeps keeps = Keeps::nothing;
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = zeros<T>(g.shape());
  }
};

namespace op {

struct Sign : StepOp<Sign> {
  static constexpr const char* name = "sign";
  TENET_ALWAYS_INLINE auto f(auto x) const { return decltype(x)(decltype(x)(0) < x) - decltype(x)(x < decltype(x)(0)); }
};

}  // namespace op

/// e^x.
template <TensorLike X>
tensor_t<X> exp(X&& x) {
  return apply_float<op::Exp>(std::forward<X>(x));
}
/// e^x - 1, exact near 0.
template <TensorLike X>
tensor_t<X> expm1(X&& x) {
  return apply_float<op::Expm1>(std::forward<X>(x));
}
/// Natural logarithm; -inf at 0, NaN below.
template <TensorLike X>
tensor_t<X> log(X&& x) {
  return apply_float<op::Log>(std::forward<X>(x));
}
/// log(1 + x), exact near 0.
template <TensorLike X>
tensor_t<X> log1p(X&& x) {
  return apply_float<op::Log1p>(std::forward<X>(x));
}
/// Logarithm to base 2.
template <TensorLike X>
tensor_t<X> log2(X&& x) {
  return apply_float<op::Log2>(std::forward<X>(x));
}
/// Logarithm to base 10.
template <TensorLike X>
tensor_t<X> log10(X&& x) {
  return apply_float<op::Log10>(std::forward<X>(x));
}
/// Square root; NaN below 0. Its gradient at 0 is infinite.
template <TensorLike X>
tensor_t<X> sqrt(X&& x) {
  return apply_float<op::Sqrt>(std::forward<X>(x));
}
/// 1 / sqrt(x).
template <TensorLike X>
tensor_t<X> rsqrt(X&& x) {
  return apply_float<op::Rsqrt>(std::forward<X>(x));
}
/// 1 / x.
template <TensorLike X>
tensor_t<X> reciprocal(X&& x) {
  return apply_float<op::Reciprocal>(std::forward<X>(x));
}
/// x * x, of any numbers.
template <TensorLike X>
tensor_t<X> square(X&& x) {
  return apply<op::Square>(as_tensor(std::forward<X>(x)), op::Square{});
}
/// Error function.
template <TensorLike X>
tensor_t<X> erf(X&& x) {
  return apply_float<op::Erf>(std::forward<X>(x));
}
/// Absolute value, of any numbers; gradient 0 at 0.
template <TensorLike X>
tensor_t<X> abs(X&& x) {
  return apply<op::Abs>(as_tensor(std::forward<X>(x)), op::Abs{});
}
/// -1, 0 or 1, of any numbers; 0 for NaN, as in PyTorch. Gradient 0.
template <TensorLike X>
tensor_t<X> sign(X&& x) {
  return apply<op::Sign>(as_tensor(std::forward<X>(x)), op::Sign{});
}

/// x <- e^x; see exp. Throws as every change in place (ops/inplace.hpp).
template <TensorLike X>
const X& exp_(const X& x) {
  apply_inplace(static_cast<const tensor_t<X>&>(x), op::Exp{});
  return x;
}
/// x <- sqrt(x); see sqrt.
template <TensorLike X>
const X& sqrt_(const X& x) {
  apply_inplace(static_cast<const tensor_t<X>&>(x), op::Sqrt{});
  return x;
}
/// x <- -x.
template <TensorLike X>
const X& neg_(const X& x) {
  apply_inplace(static_cast<const tensor_t<X>&>(x), op::Neg{});
  return x;
}

}  // namespace TENET_CONFIG
}  // namespace tenet
