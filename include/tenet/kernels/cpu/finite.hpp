// Whether an array is free of infinities and NaN.
#pragma once

#include <tenet/kernels/cpu/convert.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

namespace detail {

// The greatest magnitude, as bits: those of infinity and NaN are above all others.
struct GreatestBits {
  static constexpr Isa widest = Isa::avx2;

  TENET_ALWAYS_INLINE static void run(int64_t n, const float* x, uint32_t* most) {
    uint32_t m = 0;
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t magnitude = bits(x[i]) & 0x7fffffffu;
      m = magnitude > m ? magnitude : m;
    }
    *most = m;
  }
};

}  // namespace detail

/// Whether x[n] holds neither an infinity nor NaN.
inline bool all_finite(int64_t n, const float* x) {
  std::uint32_t most = 0;
  vectorized<detail::GreatestBits>(n, x, &most);
  return most < 0x7f800000u;
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
