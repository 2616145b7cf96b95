// Numbers of float as integers of few bits, and back.
#pragma once

#include <tenet/core/parallel.hpp>
#include <tenet/kernels/cpu/convert.hpp>

#include <atomic>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Least and greatest of some numbers; not finite if one of them is not.
struct Bounds {
  float low, high;
  bool finite;
};

/// x becomes round(x * inverse) + zero_point, ties to even, and saturates to [low, high]; at most 16 bits.
struct QuantizeOptions {
  float inverse;
  int32_t zero_point, low, high;
};

namespace detail {

inline constexpr int64_t quantize_grain = 32768;  // elements a piece of parallel work

// The bits of a float as an integer of the same order, NaN at the ends; its own inverse.
TENET_ALWAYS_INLINE int32_t ordered_bits(int32_t bits) { return bits ^ ((bits >> 31) & 0x7fffffff); }

struct OrderedBounds {
  TENET_ALWAYS_INLINE static void run(int64_t n, const float* x, int32_t* low, int32_t* high) {
    int32_t least = std::numeric_limits<int32_t>::max(), most = std::numeric_limits<int32_t>::min();
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) {
      const int32_t v = ordered_bits(int32_t(bits(x[i])));
      least = v < least ? v : least;
      most = v > most ? v : most;
    }
    *low = least;
    *high = most;
  }
};

inline constexpr float rounding =
    0x1.8p23f;  // has the step 1: adding it rounds, and leaves the integer in the low bits

template <class Q>
struct Quantize {
  TENET_ALWAYS_INLINE static void run(int64_t n, Q* out, const float* in, QuantizeOptions o, uint32_t* most) {
    TENET_NO_CONTRACTION
    const float low = float(o.low - o.zero_point), high = float(o.high - o.zero_point), inverse = o.inverse;
    const int32_t start = o.zero_point - int32_t(bits(rounding));
    uint32_t greatest = 0;
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t magnitude = bits(in[i]) & 0x7fffffffu;
      greatest = magnitude > greatest ? magnitude : greatest;
      float x = in[i] * inverse;
      x = x > low ? x : low;
      x = x < high ? x : high;
      out[i] = Q(int32_t(bits(x + rounding)) + start);
    }
    *most = greatest;
  }
};

template <class Q>
struct Dequantize {
  TENET_ALWAYS_INLINE static void run(int64_t n, float* out, const Q* in, float scale, int32_t zero_point) {
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) out[i] = float(int32_t(in[i]) - zero_point) * scale;
  }
};

// Two integers a byte, with 8 added.
struct DequantizeHalves {
  TENET_ALWAYS_INLINE static void run(int64_t n, float* low, float* high, const uint8_t* in, float scale) {
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) low[i] = float(int32_t(in[i] & 15) - 8) * scale;
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) high[i] = float(int32_t(in[i] >> 4) - 8) * scale;
  }
};

}  // namespace detail

/// The bounds of x[n], n > 0.
template <class T>
Bounds bounds(int64_t n, const T* x) {
  static_assert(std::is_same_v<T, float>);
  using namespace detail;
  std::atomic<int32_t> low{std::numeric_limits<int32_t>::max()}, high{std::numeric_limits<int32_t>::min()};
  parallel_for(n, quantize_grain, [&](int64_t begin, int64_t end) {
    int32_t least, most;
    vectorized<OrderedBounds>(end - begin, x + begin, &least, &most);
    for (int32_t old = low; least < old && !low.compare_exchange_weak(old, least);) continue;
    for (int32_t old = high; most > old && !high.compare_exchange_weak(old, most);) continue;
  });
  constexpr int32_t infinity = 0x7f800000;
  return {from_bits(uint32_t(ordered_bits(low))), from_bits(uint32_t(ordered_bits(high))),
          low > ordered_bits(infinity | std::numeric_limits<int32_t>::min()) && high < infinity};
}

/// out[i] = in[i] as an integer; whether all of them are finite.
template <class Q>
bool quantize(int64_t n, Q* out, const float* in, const QuantizeOptions& options) {
  std::atomic<bool> finite{true};
  parallel_for(n, detail::quantize_grain, [&](int64_t begin, int64_t end) {
    std::uint32_t most = 0;
    vectorized<detail::Quantize<Q>>(end - begin, out + begin, in + begin, options, &most);
    if (most >= 0x7f800000u) finite = false;
  });
  return finite;
}

/// out[i] = (in[i] - zero_point) * scale.
template <class Q>
void dequantize(int64_t n, float* out, const Q* in, float scale, int32_t zero_point) {
  parallel_for(n, detail::quantize_grain, [&](int64_t begin, int64_t end) {
    vectorized<detail::Dequantize<Q>>(end - begin, out + begin, in + begin, scale, zero_point);
  });
}

/// Bytes of n integers of 4 bits.
inline int64_t int4_bytes(int64_t n) { return (n + 1) / 2; }

/// Packs n integers in [-8, 7]: the first half of them in the low bits of the bytes, the others in the high ones.
inline void pack_int4(int64_t n, uint8_t* out, const int8_t* in) {
  const int64_t half = int4_bytes(n);
  for (int64_t i = 0; i < half; ++i) {
    const int high = half + i < n ? in[half + i] + 8 : 8;
    out[i] = uint8_t((in[i] + 8) | high << 4);
  }
}

/// The n numbers that packed integers stand for.
inline void dequantize_int4(int64_t n, float* out, const uint8_t* in, float scale) {
  const int64_t half = int4_bytes(n);
  vectorized<detail::DequantizeHalves>(n - half, out, out + half, in, scale);
  if (half > n - half) out[half - 1] = float((in[half - 1] & 15) - 8) * scale;
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
