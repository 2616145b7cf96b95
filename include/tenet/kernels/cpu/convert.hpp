// Conversion of one element from any element type to any other, and of contiguous runs of them.
#pragma once

#include <tenet/core/dtype.hpp>
#include <tenet/kernels/cpu/vectorize.hpp>

#include <cmath>
#include <limits>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// The type arithmetic on T happens in: float for half and bfloat16, else T.
template <class T>
using compute_t = std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16>, float, T>;

namespace detail {

using std::uint16_t;
using std::uint32_t;

TENET_ALWAYS_INLINE uint32_t bits(float x) { return __builtin_bit_cast(uint32_t, x); }
TENET_ALWAYS_INLINE float from_bits(uint32_t u) { return __builtin_bit_cast(float, u); }

// To the nearest, ties to even; a NaN keeps its upper bits and becomes quiet.
TENET_ALWAYS_INLINE bfloat16 to_bfloat16(float x) {
  const uint32_t u = bits(x);
  const uint32_t nan = (u >> 16) | 0x40u, rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return __builtin_bit_cast(bfloat16, uint16_t((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded));
}

TENET_ALWAYS_INLINE float to_float(bfloat16 x) { return from_bits(uint32_t(__builtin_bit_cast(uint16_t, x)) << 16); }

// To the nearest, ties to even; from 65520 on infinity; below 2^-14 in steps of 2^-24.
TENET_ALWAYS_INLINE half to_half(float x) {
  const uint32_t u = bits(x), magnitude = u & 0x7fffffffu;
  // 0.5 has the step 2^-24: adding it rounds a denormal result and leaves it in the low bits.
  const uint32_t denormal = bits(from_bits(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  uint32_t h = magnitude < 0x38800000u ? denormal : normal;
  h = magnitude >= 0x477ff000u ? 0x7c00u : h;
  h = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : h;
  return __builtin_bit_cast(half, uint16_t(h | ((u >> 16) & 0x8000u)));
}

TENET_ALWAYS_INLINE float to_float(half x) {
  const uint32_t h = __builtin_bit_cast(uint16_t, x), magnitude = h & 0x7fffu;
  const uint32_t normal = (magnitude << 13) + (112u << 23);
  const uint32_t special = (magnitude << 13) | 0x7f800000u | (magnitude > 0x7c00u ? 0x400000u : 0u);
  const uint32_t denormal = bits(float(int32_t(magnitude)) * 0x1p-24f);
  uint32_t u = magnitude < 0x400u ? denormal : normal;
  u = magnitude >= 0x7c00u ? special : u;
  return from_bits(u | ((h & 0x8000u) << 16));
}

}  // namespace detail

/// Converts one element. Floating to integer: towards zero, saturating, NaN to 0. Integer to a smaller integer:
/// modulo 2^bits. To bool: not equal to zero. To half and bfloat16: through float, to the nearest, ties to even.
template <class To, class From>
TENET_ALWAYS_INLINE To cast(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (!std::is_same_v<From, compute_t<From>>) {
    return cast<To>(detail::to_float(x));
  } else if constexpr (std::is_same_v<To, half>) {
    return detail::to_half(float(x));
  } else if constexpr (std::is_same_v<To, bfloat16>) {
    return detail::to_bfloat16(float(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr From low = From(std::numeric_limits<To>::min());
    constexpr From end = From(std::numeric_limits<To>::max() / 2 + 1) * From(2);  // exact: a power of two
    const bool inside = x >= low && x < end;
    const To edge = x >= end ? std::numeric_limits<To>::max() : x < low ? std::numeric_limits<To>::min() : To(0);
    return inside ? To(inside ? x : From(0)) : edge;
  } else {
    return To(x);
  }
}

namespace detail {

template <class To, class From>
struct Convert {
  static constexpr Isa widest = Isa::avx2;
  TENET_ALWAYS_INLINE static void run(int64_t n, To* out, const From* in) {
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) out[i] = cast<To>(in[i]);
  }
};

#if TENET_X86
// The processor rounds halves as cast() does, where a compiler would need a page of code. Instructions by name: the
// header of intrinsics would cost every program time to compile.
typedef float EightFloats __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint16_t EightHalves __attribute__((vector_size(16), aligned(2), may_alias));

TENET_NOINLINE TENET_TARGET_AVX2 inline void convert_avx2(int64_t n, float* out, const half* in) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    asm("vcvtph2ps {%1, %0|%0, %1}"
        : "=x"(*reinterpret_cast<EightFloats*>(out + i))
        : "m"(*reinterpret_cast<const EightHalves*>(in + i)));
  }
  for (; i < n; ++i) out[i] = to_float(in[i]);
}
TENET_NOINLINE TENET_TARGET_AVX2 inline void convert_avx2(int64_t n, half* out, const float* in) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    asm("vcvtps2ph {$0, %1, %0|%0, %1, 0}"
        : "=m"(*reinterpret_cast<EightHalves*>(out + i))
        : "x"(*reinterpret_cast<const EightFloats*>(in + i)));
  }
  for (; i < n; ++i) out[i] = to_half(in[i]);
}
#endif

}  // namespace detail

/// out[i] = cast<To>(in[i]) for n contiguous elements; the two do not overlap.
template <class To, class From>
void convert(int64_t n, To* out, const From* in) {
#if TENET_X86
  if constexpr (requires { detail::convert_avx2(n, out, in); }) {
    if (isa() != Isa::baseline) return detail::convert_avx2(n, out, in);
    return detail::run_spare<detail::Convert<To, From>>(n, out, in);
  }
#endif
  if constexpr (FloatElement<To> && FloatElement<From>) {
    vectorized<detail::Convert<To, From>>(n, out, in);
  } else {
    detail::run_baseline<detail::Convert<To, From>>(n, out, in);
  }
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
