// Trigonometric and hyperbolic functions of each element, of floating types; angles are in radians. tanh stands
// in ops/activation.hpp, atan2 in ops/binary.hpp.
#pragma once

#include <tenet/kernels/cpu/math.hpp>
#include <tenet/ops/pointwise.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace op {

struct Sin : UnaryOp<Sin> {
  static constexpr const char* name = "sin";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool vectorize = false;
  auto f(auto x) const { return cpu::math::sin(x); }
  auto df(auto x, auto) const { return cpu::math::cos(x); }
  auto ddf(auto x) const { return -cpu::math::sin(x); }
};

struct Cos : UnaryOp<Cos> {
  static constexpr const char* name = "cos";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool vectorize = false;
  auto f(auto x) const { return cpu::math::cos(x); }
  auto df(auto x, auto) const { return -cpu::math::sin(x); }
  auto ddf(auto x) const { return -cpu::math::cos(x); }
};

struct Tan : UnaryOp<Tan> {
  static constexpr const char* name = "tan";
  static constexpr Keeps keeps = Keeps::output;
  static constexpr bool vectorize = false;
  auto f(auto x) const { return std::tan(x); }
  auto df(auto, auto y) const { return 1 + y * y; }
  auto ddf(auto y) const { return 2 * y; }
};

struct Asin : UnaryOp<Asin> {
  static constexpr const char* name = "asin";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool vectorize = false;
  auto f(auto x) const { return std::asin(x); }
  auto df(auto x, auto) const { return 1 / cpu::math::sqrt(1 - x * x); }
  auto ddf(auto x) const { return x * df(x, x) / (1 - x * x); }
};

struct Acos : UnaryOp<Acos> {
  static constexpr const char* name = "acos";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool vectorize = false;
  auto f(auto x) const { return std::acos(x); }
  auto df(auto x, auto) const { return -1 / cpu::math::sqrt(1 - x * x); }
  auto ddf(auto x) const { return x * df(x, x) / (1 - x * x); }
};

struct Atan : UnaryOp<Atan> {
  static constexpr const char* name = "atan";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool vectorize = false;
  auto f(auto x) const { return std::atan(x); }
  auto df(auto x, auto) const { return 1 / (1 + x * x); }
  auto ddf(auto x) const { return -2 * x / ((1 + x * x) * (1 + x * x)); }
};

struct Sinh : UnaryOp<Sinh> {
  static constexpr const char* name = "sinh";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool vectorize = false;
  auto f(auto x) const { return std::sinh(x); }
  auto df(auto x, auto) const { return std::cosh(x); }
  auto ddf(auto x) const { return std::sinh(x); }
};

struct Cosh : UnaryOp<Cosh> {
  static constexpr const char* name = "cosh";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool vectorize = false;
  auto f(auto x) const { return std::cosh(x); }
  auto df(auto x, auto) const { return std::sinh(x); }
  auto ddf(auto x) const { return std::cosh(x); }
};

}  // namespace op

/// Sine.
template <TensorLike X>
tensor_t<X> sin(X&& x) {
  return apply_float<op::Sin>(std::forward<X>(x));
}
/// Cosine.
template <TensorLike X>
tensor_t<X> cos(X&& x) {
  return apply_float<op::Cos>(std::forward<X>(x));
}
/// Tangent.
template <TensorLike X>
tensor_t<X> tan(X&& x) {
  return apply_float<op::Tan>(std::forward<X>(x));
}
/// Arc sine, in [-pi/2, pi/2]; NaN outside [-1, 1].
template <TensorLike X>
tensor_t<X> asin(X&& x) {
  return apply_float<op::Asin>(std::forward<X>(x));
}
/// Arc cosine, in [0, pi]; NaN outside [-1, 1].
template <TensorLike X>
tensor_t<X> acos(X&& x) {
  return apply_float<op::Acos>(std::forward<X>(x));
}
/// Arc tangent, in [-pi/2, pi/2].
template <TensorLike X>
tensor_t<X> atan(X&& x) {
  return apply_float<op::Atan>(std::forward<X>(x));
}
/// Hyperbolic sine.
template <TensorLike X>
tensor_t<X> sinh(X&& x) {
  return apply_float<op::Sinh>(std::forward<X>(x));
}
/// Hyperbolic cosine.
template <TensorLike X>
tensor_t<X> cosh(X&& x) {
  return apply_float<op::Cosh>(std::forward<X>(x));
}

}  // namespace TENET_CONFIG
}  // namespace tenet
