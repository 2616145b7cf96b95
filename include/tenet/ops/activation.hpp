// Activation functions of each element, of floating types; relu of any numbers. softmax stands in ops/softmax.hpp.
//
// A NaN gives NaN, and where a function is constant its gradient is exactly 0, also for an infinite one behind it.
#pragma once

#include <tenet/kernels/cpu/math.hpp>
#include <tenet/ops/inplace.hpp>
#include <tenet/ops/pointwise.hpp>

#include <numbers>

namespace tenet {

/// How gelu computes the normal distribution: by erf, or by the faster approximation with tanh.
enum class GeluApproximate { none, tanh };

inline namespace TENET_CONFIG {

namespace op {

struct Relu : UnaryOp<Relu> {
  static constexpr const char* name = "relu";
  static constexpr Keeps keeps = Keeps::output;
  template <class T>
  TENET_ALWAYS_INLINE T f(T x) const {
    return x < T(0) ? T(0) : x;
  }
  template <class T>
  TENET_ALWAYS_INLINE T chain(T g, T y) const {
    return y <= 0 ? T(0) : g;
  }
  auto ddf(auto y) const { return decltype(y)(0); }
};

struct LeakyRelu : UnaryOp<LeakyRelu> {
  static constexpr const char* name = "leaky_relu";
  static constexpr Keeps keeps = Keeps::input;
  double slope;
  template <class T>
  TENET_ALWAYS_INLINE T f(T x) const {
    return x > 0 ? x : x * T(slope);
  }
  template <class T>
  TENET_ALWAYS_INLINE T chain(T g, T x) const {
    return x > 0 ? g : g * T(slope);
  }
  auto ddf(auto x) const { return decltype(x)(0); }
};

struct Sigmoid : UnaryOp<Sigmoid> {
  static constexpr const char* name = "sigmoid";
  static constexpr Keeps keeps = Keeps::output;
  static constexpr bool fused = true;
  TENET_ALWAYS_INLINE auto f(auto x) const { return cpu::math::sigmoid(x); }
  TENET_ALWAYS_INLINE auto df(auto, auto y) const { return y * (1 - y); }
  auto ddf(auto y) const { return 1 - 2 * y; }
};

struct Tanh : UnaryOp<Tanh> {
  static constexpr const char* name = "tanh";
  static constexpr Keeps keeps = Keeps::output;
  static constexpr bool fused = true;
  TENET_ALWAYS_INLINE auto f(auto x) const { return cpu::math::tanh(x); }
  TENET_ALWAYS_INLINE auto df(auto, auto y) const { return 1 - y * y; }
  auto ddf(auto y) const { return -2 * y; }
};

struct Gelu : UnaryOp<Gelu> {
  static constexpr const char* name = "gelu";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool fused = true;
  template <class T>
  TENET_ALWAYS_INLINE static T cdf(T x) {
    return cpu::math::normal_cdf(x);
  }
  template <class T>
  TENET_ALWAYS_INLINE static T pdf(T x) {
    return cpu::math::exp(x * x / -2) * T(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  }
  TENET_ALWAYS_INLINE auto f(auto x) const { return x * cdf(x); }
  TENET_ALWAYS_INLINE auto df(auto x, auto) const { return cdf(x) + x * pdf(x); }
  auto ddf(auto x) const { return pdf(x) * (2 - x * x); }
};

struct GeluTanh : UnaryOp<GeluTanh> {
  static constexpr const char* name = "gelu";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool fused = true;
  static constexpr double cubic = 0.044715, factor = 2 * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  template <class T>
  TENET_ALWAYS_INLINE static T inner(T x) {
    return T(factor) * (x + T(cubic) * x * x * x);
  }
  template <class T>
  TENET_ALWAYS_INLINE static T inner_slope(T x) {
    return T(factor) * (1 + T(3 * cubic) * x * x);
  }
  TENET_ALWAYS_INLINE auto f(auto x) const { return x / 2 * (1 + cpu::math::tanh(inner(x))); }
  TENET_ALWAYS_INLINE auto df(auto x, auto) const {
    const auto t = cpu::math::tanh(inner(x));
    return (1 + t) / 2 + x / 2 * (1 - t * t) * inner_slope(x);
  }
  template <class T>
  T ddf(T x) const {
    const T t = cpu::math::tanh(inner(x)), u = inner_slope(x), s = 1 - t * t;
    return s * u + x / 2 * s * (T(6 * factor * cubic) * x - 2 * t * u * u);
  }
};

struct Silu : UnaryOp<Silu> {
  static constexpr const char* name = "silu";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool fused = true;
  TENET_ALWAYS_INLINE auto f(auto x) const { return x * cpu::math::sigmoid(x); }
  TENET_ALWAYS_INLINE auto df(auto x, auto) const {
    const auto s = cpu::math::sigmoid(x);
    return s * (1 + x * (1 - s));
  }
  auto ddf(auto x) const {
    const auto s = cpu::math::sigmoid(x);
    return s * (1 - s) * (2 + x * (1 - 2 * s));
  }
};

struct Elu : UnaryOp<Elu> {
  static constexpr const char* name = "elu";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool fused = true;
  double alpha, scale = 1;
  template <class T>
  TENET_ALWAYS_INLINE T f(T x) const {
    return x > 0 ? T(scale) * x : T(scale * alpha) * cpu::math::expm1(x);
  }
  template <class T>
  TENET_ALWAYS_INLINE T df(T x, T) const {
    return x > 0 ? T(scale) : T(scale * alpha) * cpu::math::exp(x);
  }
  template <class T>
  T ddf(T x) const {
    return x > 0 ? T(0) : df(x, x);
  }
};

struct Softplus : UnaryOp<Softplus> {
  static constexpr const char* name = "softplus";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool fused = true;
  double beta, threshold;
  template <class T>
  TENET_ALWAYS_INLINE T f(T x) const {
    const T bx = x * T(beta), y = cpu::math::log1p(cpu::math::exp(bx)) / T(beta);
    return bx > T(threshold) ? x : y;
  }
  template <class T>
  TENET_ALWAYS_INLINE T df(T x, T) const {
    const T bx = x * T(beta);
    return bx > T(threshold) ? T(1) : cpu::math::sigmoid(bx);
  }
  template <class T>
  T ddf(T x) const {
    const T s = df(x, x);
    return T(beta) * s * (1 - s);
  }
};

struct Hardtanh : UnaryOp<Hardtanh> {
  static constexpr const char* name = "hardtanh";
  static constexpr Keeps keeps = Keeps::input;
  double low, high;
  template <class T>
  TENET_ALWAYS_INLINE T f(T x) const {
    const T y = x < T(low) ? T(low) : x;
    return y > T(high) ? T(high) : y;
  }
  template <class T>
  TENET_ALWAYS_INLINE T chain(T g, T x) const {
    return x <= T(low) || x >= T(high) ? T(0) : g;
  }
  auto ddf(auto x) const { return decltype(x)(0); }
};

struct Hardswish : UnaryOp<Hardswish> {
  static constexpr const char* name = "hardswish";
  static constexpr Keeps keeps = Keeps::input;
  template <class T>
  TENET_ALWAYS_INLINE T f(T x) const {
    return x * Hardtanh{{}, 0, 6}.f(x + 3) / 6;
  }
  template <class T>
  TENET_ALWAYS_INLINE T chain(T g, T x) const {
    return x < -3 ? T(0) : x > 3 ? g : g * (x / 3 + T(0.5));
  }
  template <class T>
  T ddf(T x) const {
    return x < -3 || x > 3 ? T(0) : T(1) / 3;
  }
};

struct Mish : UnaryOp<Mish> {
  static constexpr const char* name = "mish";
  static constexpr Keeps keeps = Keeps::input;
  static constexpr bool fused = true;
  template <class T>
  TENET_ALWAYS_INLINE static T gate(T x) {
    return cpu::math::tanh(Softplus{{}, 1, 20}.f(x));
  }
  TENET_ALWAYS_INLINE auto f(auto x) const { return x * gate(x); }
  TENET_ALWAYS_INLINE auto df(auto x, auto) const {
    const auto t = gate(x);
    return t + x * (1 - t * t) * cpu::math::sigmoid(x);
  }
  auto ddf(auto x) const {
    const auto t = gate(x), s = cpu::math::sigmoid(x), slope = (1 - t * t) * s;
    return slope * (2 + x * (1 - s - 2 * t * s));
  }
};

}  // namespace op

/// max(x, 0); NaN stays. Gradient 0 at 0, and 1 at NaN.
template <TensorLike X>
tensor_t<X> relu(X&& x) {
  return apply<op::Relu>(as_tensor(std::forward<X>(x)), op::Relu{});
}
/// x if x > 0, else negative_slope * x (Maas, Hannun and Ng, Rectifier nonlinearities improve neural network
/// acoustic models, 2013).
template <TensorLike X>
tensor_t<X> leaky_relu(X&& x, double negative_slope = 0.01) {
  return apply_float<op::LeakyRelu>(std::forward<X>(x), op::LeakyRelu{{}, negative_slope});
}
/// 1 / (1 + e^-x).
template <TensorLike X>
tensor_t<X> sigmoid(X&& x) {
  return apply_float<op::Sigmoid>(std::forward<X>(x));
}
/// Hyperbolic tangent.
template <TensorLike X>
tensor_t<X> tanh(X&& x) {
  return apply_float<op::Tanh>(std::forward<X>(x));
}
/// x times the normal distribution function at x (Hendrycks and Gimpel, Gaussian error linear units, 2016).
template <TensorLike X>
tensor_t<X> gelu(X&& x, GeluApproximate approximate = GeluApproximate::none) {
  return approximate == GeluApproximate::none ? apply_float<op::Gelu>(std::forward<X>(x))
                                              : apply_float<op::GeluTanh>(std::forward<X>(x));
}
/// x * sigmoid(x), also called swish (Elfwing, Uchibe and Doya, Sigmoid-weighted linear units, 2017).
template <TensorLike X>
tensor_t<X> silu(X&& x) {
  return apply_float<op::Silu>(std::forward<X>(x));
}
/// x if x > 0, else alpha * (e^x - 1) (Clevert, Unterthiner and Hochreiter, Fast and accurate deep network learning
/// by exponential linear units, 2015).
template <TensorLike X>
tensor_t<X> elu(X&& x, double alpha = 1) {
  return apply_float<op::Elu>(std::forward<X>(x), op::Elu{{}, alpha});
}
/// elu with the alpha and scale that keep mean 0 and variance 1 (Klambauer et al., Self-normalizing neural networks,
/// 2017).
template <TensorLike X>
tensor_t<X> selu(X&& x) {
  return apply_float<op::Elu>(std::forward<X>(x), op::Elu{{}, 1.6732632423543772, 1.0507009873554805});
}
/// log(1 + e^(beta x)) / beta, and x itself where beta x > threshold. Throws Error if beta is 0.
template <TensorLike X>
tensor_t<X> softplus(X&& x, double beta = 1, double threshold = 20) {
  if (beta == 0) throw Error("softplus: expected beta other than 0");
  return apply_float<op::Softplus>(std::forward<X>(x), op::Softplus{{}, beta, threshold});
}
/// x within [low, high], else the bound; gradient 0 at the bounds. Throws Error unless low <= high.
template <TensorLike X>
tensor_t<X> hardtanh(X&& x, double low = -1, double high = 1) {
  if (!(low <= high)) throw Error(text({"hardtanh: expected low <= high, got ", low, " and ", high}));
  return apply_float<op::Hardtanh>(std::forward<X>(x), op::Hardtanh{{}, low, high});
}
/// min(max(x, 0), 6).
template <TensorLike X>
tensor_t<X> relu6(X&& x) {
  return hardtanh(std::forward<X>(x), 0, 6);
}
/// x * relu6(x + 3) / 6 (Howard et al., Searching for MobileNetV3, 2019).
template <TensorLike X>
tensor_t<X> hardswish(X&& x) {
  return apply_float<op::Hardswish>(std::forward<X>(x));
}
/// x * tanh(softplus(x)) (Misra, Mish: a self regularized non-monotonic activation function, 2019).
template <TensorLike X>
tensor_t<X> mish(X&& x) {
  return apply_float<op::Mish>(std::forward<X>(x));
}

/// x <- max(x, 0); see relu. Throws as every change in place (ops/inplace.hpp).
template <TensorLike X>
const X& relu_(const X& x) {
  apply_inplace(static_cast<const tensor_t<X>&>(x), op::Relu{});
  return x;
}
/// x <- sigmoid(x).
template <TensorLike X>
const X& sigmoid_(const X& x) {
  apply_inplace(static_cast<const tensor_t<X>&>(x), op::Sigmoid{});
  return x;
}
/// x <- tanh(x).
template <TensorLike X>
const X& tanh_(const X& x) {
  apply_inplace(static_cast<const tensor_t<X>&>(x), op::Tanh{});
  return x;
}

}  // namespace TENET_CONFIG
}  // namespace tenet
