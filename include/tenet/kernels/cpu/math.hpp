// Elementary functions as scalar, branch-free code, so that loops over them vectorize.
//
// In float: exp, log, log1p, expm1, tanh, sigmoid and erf are polynomials fitted here by Remez's exchange; the rest,
// and everything in double, is the standard library's. NaN gives NaN throughout. Errors are stated in units of the
// last place of the result.
#pragma once

#include <tenet/kernels/cpu/convert.hpp>

#include <cmath>
#include <limits>

#if TENET_X86
#include <xmmintrin.h>
#endif

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace math {

namespace detail {

using cpu::detail::bits;
using cpu::detail::from_bits;
using std::int32_t;
using std::uint32_t;

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float ln2_high = 0x1.62ep-1f, ln2_low = 0x1.0bfbe8p-15f;  // n * ln2_high is exact for |n| < 2^11

TENET_ALWAYS_INLINE float abs(float x) { return from_bits(bits(x) & 0x7fffffffu); }
TENET_ALWAYS_INLINE float with_sign(float magnitude, float sign) {
  return from_bits((bits(magnitude) & 0x7fffffffu) | (bits(sign) & 0x80000000u));
}

// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2
TENET_ALWAYS_INLINE float exp_rest(float r) {
  TENET_MAY_CONTRACT
  const float z = r * r;
  return (0.00138145441f * z + (0.00836874545f * r + 0.041668389f)) * z + (0.166665211f * r + 0.5f);
}

// e^x, to 2 ulp, for |x| < 87: what neither overflows nor is denormal.
TENET_ALWAYS_INLINE float exp_inside(float x) {
  TENET_MAY_CONTRACT
  const float shifted = x * 1.44269504f + 0x1.8p23f, n = shifted - 0x1.8p23f;  // n = x / ln 2 to the nearest
  const float r = (x - n * ln2_high) - n * ln2_low;
  const float y = (exp_rest(r) * (r * r) + r) + 1.f;
  return y * from_bits((bits(shifted) << 23) + 0x3f800000u);  // y 2^n; by a product, so that NaN stays
}

}  // namespace detail

// Polynomials are summed in pairs, not by Horner's rule: what limits these loops is the length of their chains.
// What is out of range is replaced at the end, not clamped at the start: g++ would split the loop over such a branch.

/// e^x, to 2 ulp.
TENET_ALWAYS_INLINE float exp(float x) {
  TENET_MAY_CONTRACT
  using namespace detail;
  const float shifted = x * 1.44269504f + 0x1.8p23f, n = shifted - 0x1.8p23f;  // n = x / ln 2 to the nearest
  const float r = (x - n * ln2_high) - n * ln2_low;
  const float y = (exp_rest(r) * (r * r) + r) + 1.f;
  // 2^n in two factors, to reach denormals and infinity
  const int32_t k = int32_t(bits(shifted) - bits(0x1.8p23f)), half = k >> 1;
  const float e = y * from_bits(uint32_t(half + 127) << 23) * from_bits(uint32_t(k - half + 127) << 23);
  return x > 89.f ? infinity : x < -104.f ? 0.f : e;
}
TENET_ALWAYS_INLINE double exp(double x) { return std::exp(x); }

/// Natural logarithm, to 1 ulp; log(0) = -inf, of negative numbers NaN.
TENET_ALWAYS_INLINE float log(float x) {
  TENET_MAY_CONTRACT
  using namespace detail;
  const bool denormal = x < 0x1p-126f;
  const uint32_t u = bits(denormal ? x * 0x1p23f : x) - 0x3f3504f3u;  // 0x3f3504f3: sqrt(1/2)
  const float n = float(int32_t(u) >> 23) - (denormal ? 23.f : 0.f);
  const float f = from_bits((u & 0x7fffffu) + 0x3f3504f3u) - 1.f;
  // log(1 + f) = 2 atanh(s), s = f / (2 + f)
  const float s = f / (2.f + f), z = s * s, h = 0.5f * f * f;
  float p = 0.298730731f;
  p = p * z + 0.399774969f;
  p = p * z + 0.666667759f;
  float y = n * ln2_high - ((h - (s * (h + p * z) + n * ln2_low)) - f);
  y = x == infinity ? x : y;
  y = x == 0.f ? -infinity : y;
  return x >= 0.f ? y : std::numeric_limits<float>::quiet_NaN();
}
TENET_ALWAYS_INLINE double log(double x) { return std::log(x); }

/// log(1 + x), to 2 ulp.
TENET_ALWAYS_INLINE float log1p(float x) {
  TENET_MAY_CONTRACT
  const float u = 1.f + x, lost = x - (u - 1.f);
  const float y = log(u) + lost / u;
  const bool inside = (x > -1.f) & (x < detail::infinity), zero = x == 0.f;
  return zero ? x : inside ? y : log(u);
}
TENET_ALWAYS_INLINE double log1p(double x) { return std::log1p(x); }

/// e^x - 1, to 4 ulp.
TENET_ALWAYS_INLINE float expm1(float x) {
  TENET_MAY_CONTRACT
  using namespace detail;
  const float near = exp_rest(x) * (x * x) + x;
  return abs(x) < 0.34657359f ? with_sign(near, x) : exp(x) - 1.f;
}
TENET_ALWAYS_INLINE double expm1(double x) { return std::expm1(x); }

/// Hyperbolic tangent, to 2 ulp.
TENET_ALWAYS_INLINE float tanh(float x) {
  TENET_MAY_CONTRACT
  using namespace detail;
  const float t = abs(x), z = x * x;
  const float zz = z * z;
  const float p = (0.0206505861f - 0.0057170433f * z) * (zz * z) + (0.133314908f - 0.0537434965f * z) * z;
  const float near = (p - 0.333332837f) * (z * x) + x;
  const float far = t > 9.1f ? 1.f : 1.f - 2.f / (exp_inside(t + t) + 1.f);
  return with_sign(t < 0.625f ? near : far, x);
}
TENET_ALWAYS_INLINE double tanh(double x) { return std::tanh(x); }

/// 1 / (1 + e^-x), to 3 ulp on either side.
TENET_ALWAYS_INLINE float sigmoid(float x) {
  TENET_MAY_CONTRACT
  const float e = exp(-detail::abs(x)), r = 1.f / (1.f + e);
  return x < 0.f ? e * r : r;
}
TENET_ALWAYS_INLINE double sigmoid(double x) {
  const double e = std::exp(x < 0 ? x : -x), r = 1 / (1 + e);
  return x < 0 ? e * r : r;
}

/// Error function, to 2 ulp.
TENET_ALWAYS_INLINE float erf(float x) {
  TENET_MAY_CONTRACT
  using namespace detail;
  const float z = x * x, zz = z * z;
  const float p = (0.00499098096f - 0.00059768965f * z) * (zz * zz) + (0.112818025f - 0.0267655682f * z) * zz;
  const float near = (p + (0.128379151f - 0.376124948f * z)) * x + x;
  // 1 - e^q(t), q(t) = log(erfc(t))
  const float t = abs(x);
  const float upper = (0.00019494188f * z + (0.0221896116f - 0.00303364778f * t)) * zz;
  const float q = upper + (-0.103856064f * t - 0.637266099f) * z + (-1.12762725f * t - 0.000207046745f);
  const float far = t > 3.93f ? 1.f : 1.f - exp_inside(q);
  return t < 0.92f ? near : with_sign(far, x);
}
TENET_ALWAYS_INLINE double erf(double x) { return std::erf(x); }

/// Distribution function of the standard normal, to 1e-7.
TENET_ALWAYS_INLINE float normal_cdf(float x) {
  TENET_MAY_CONTRACT
  // e^q(t), q(t) = log(P(X > t)), to 8e-9
  const float t = detail::abs(x), z = x * x, zz = z * z;
  const float upper = (1.7241976e-07f * t - 3.94096423e-06f) * zz + (3.61225357e-05f * t - 0.000148561492f) * z +
                      (-7.28671075e-05f * t + 0.00488480926f);
  const float q = upper * zz + (-0.036386963f * t - 0.318297535f) * z + (-0.797885656f * t - 0.693147182f);
  const float tail = t > 5.7f ? 0.f : detail::exp_inside(q);
  return x < 0.f ? tail : 1.f - tail;
}
TENET_ALWAYS_INLINE double normal_cdf(double x) { return std::erfc(x * -0.70710678118654752) / 2; }

/// Square root, correctly rounded.
TENET_ALWAYS_INLINE float sqrt(float x) {
#if TENET_X86
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));  // the library's may set errno: a call for each element
#else
  return std::sqrt(x);
#endif
}
TENET_ALWAYS_INLINE double sqrt(double x) { return std::sqrt(x); }

/// Sine, cosine and power: the standard library's, which do not vectorize.
TENET_ALWAYS_INLINE float sin(float x) { return std::sin(x); }
TENET_ALWAYS_INLINE double sin(double x) { return std::sin(x); }
TENET_ALWAYS_INLINE float cos(float x) { return std::cos(x); }
TENET_ALWAYS_INLINE double cos(double x) { return std::cos(x); }
TENET_ALWAYS_INLINE float pow(float x, float y) { return std::pow(x, y); }
TENET_ALWAYS_INLINE double pow(double x, double y) { return std::pow(x, y); }

}  // namespace math
}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
