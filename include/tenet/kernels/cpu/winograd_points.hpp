// The numbers of Winograd's minimal filtering F(4 x 4, 5 x 5): what images, filters and outputs become where their
// products are single multiplications.
//
// A convolution of 8 pixels with a filter of 5 taps into 4 outputs, along one dimension, is a product of polynomials,
// fixed by its values at 8 points: 0, 1, -1, 2, -2, 1/2, -1/2 and infinity. The sum over points of (image) (filter)
// (output), each as numbers at the points, is that over pixels and taps: so every gradient takes numbers of two sides
// to numbers of the third. See Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016.
#pragma once

#include <tenet/kernels/cpu/vectorize.hpp>

#include <cstdint>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace detail {

inline constexpr int64_t winograd_points = 8, winograd_numbers = winograd_points * winograd_points;

// Values at a point p and at -p as their even and odd parts; on the way back, as their sums and differences.
struct AtPoints {
  float zero, even, odd, even2, odd2, even_half, odd_half, infinity;
};

struct ImageSide {
  static constexpr int64_t size = 8;
  TENET_ALWAYS_INLINE static AtPoints expand(const float* x) {
    return {x[0] - x[6] + 5.25f * (x[4] - x[2]),
            x[2] + x[6] - 4.25f * x[4],
            x[1] + x[5] - 4.25f * x[3],
            0.25f * x[2] + x[6] - 1.25f * x[4],
            0.5f * x[1] + 2.0f * x[5] - 2.5f * x[3],
            4.0f * x[2] + x[6] - 5.0f * x[4],
            2.0f * x[1] + 0.5f * x[5] - 2.5f * x[3],
            x[7] - x[1] + 5.25f * (x[3] - x[5])};
  }
  TENET_ALWAYS_INLINE static void contract(const AtPoints& p, float* x) {
    x[0] = p.zero;
    x[1] = p.odd + 0.5f * p.odd2 + 2.0f * p.odd_half - p.infinity;
    x[2] = p.even + 0.25f * p.even2 + 4.0f * p.even_half - 5.25f * p.zero;
    x[3] = 5.25f * p.infinity - 4.25f * p.odd - 2.5f * (p.odd2 + p.odd_half);
    x[4] = 5.25f * p.zero - 4.25f * p.even - 1.25f * p.even2 - 5.0f * p.even_half;
    x[5] = p.odd + 2.0f * p.odd2 + 0.5f * p.odd_half - 5.25f * p.infinity;
    x[6] = p.even + p.even2 + p.even_half - p.zero;
    x[7] = p.infinity;
  }
};

struct FilterSide {
  static constexpr int64_t size = 5;
  static constexpr float one = -2.0f / 9, two = 1.0f / 90, half = 32.0f / 45;
  TENET_ALWAYS_INLINE static AtPoints expand(const float* x) {
    return {x[0],
            one * (x[0] + x[2] + x[4]),
            one * (x[1] + x[3]),
            two * (x[0] + 4.0f * x[2] + 16.0f * x[4]),
            two * (2.0f * x[1] + 8.0f * x[3]),
            half * (x[0] + 0.25f * x[2] + 0.0625f * x[4]),
            half * (0.5f * x[1] + 0.125f * x[3]),
            x[4]};
  }
  TENET_ALWAYS_INLINE static void contract(const AtPoints& p, float* x) {
    const float even = one * p.even, odd = one * p.odd, even2 = two * p.even2, odd2 = two * p.odd2;
    const float even_half = half * p.even_half, odd_half = half * p.odd_half;
    x[0] = p.zero + even + even2 + even_half;
    x[1] = odd + 2.0f * odd2 + 0.5f * odd_half;
    x[2] = even + 4.0f * even2 + 0.25f * even_half;
    x[3] = odd + 8.0f * odd2 + 0.125f * odd_half;
    x[4] = even + 16.0f * even2 + 0.0625f * even_half + p.infinity;
  }
};

struct OutputSide {
  static constexpr int64_t size = 4;
  TENET_ALWAYS_INLINE static AtPoints expand(const float* x) {
    return {x[0],
            x[0] + x[2],
            x[1] + x[3],
            x[0] + 4.0f * x[2],
            2.0f * x[1] + 8.0f * x[3],
            x[0] + 0.25f * x[2],
            0.5f * x[1] + 0.125f * x[3],
            x[3]};
  }
  TENET_ALWAYS_INLINE static void contract(const AtPoints& p, float* x) {
    x[0] = p.zero + p.even + p.even2 + p.even_half;
    x[1] = p.odd + 2.0f * p.odd2 + 0.5f * p.odd_half;
    x[2] = p.even + 4.0f * p.even2 + 0.25f * p.even_half;
    x[3] = p.odd + 8.0f * p.odd2 + 0.125f * p.odd_half + p.infinity;
  }
};

// Tiles of a plane, 4 pixels apart: rows x columns of them, from or to a plane of `pitch` pixels a row. Each pixel, and
// each number, is `lanes` neighbours: as many planes at once. Numbers are `step` apart, those of tiles side by side.
struct WinogradTiles {
  int64_t rows, columns, pitch, step;
};

template <class Side, int64_t lanes>
struct WinogradExpand {
  TENET_ALWAYS_INLINE static void along(const float* in, int64_t in_step, float* out, int64_t out_step) {
    float x[Side::size];
    for (int64_t i = 0; i < Side::size; ++i) x[i] = in[i * in_step];
    const AtPoints p = Side::expand(x);
    out[0] = p.zero;
    out[out_step] = p.even + p.odd, out[2 * out_step] = p.even - p.odd;
    out[3 * out_step] = p.even2 + p.odd2, out[4 * out_step] = p.even2 - p.odd2;
    out[5 * out_step] = p.even_half + p.odd_half, out[6 * out_step] = p.even_half - p.odd_half;
    out[7 * out_step] = p.infinity;
  }
  TENET_ALWAYS_INLINE static void run(WinogradTiles t, const float* plane, float* numbers) {
    constexpr int64_t width = Side::size * lanes;
    float between[winograd_points * width];
    for (int64_t tile = 0; tile < t.rows * t.columns; ++tile, numbers += lanes) {
      const float* in = plane + (tile / t.columns * t.pitch + tile % t.columns) * 4 * lanes;
      TENET_LOOP
      for (int64_t i = 0; i < width; ++i) along(in + i, t.pitch * lanes, between + i, width);
      for (int64_t y = 0; y < winograd_points; ++y) {
        TENET_LOOP
        for (int64_t i = 0; i < lanes; ++i) {
          along(between + y * width + i, lanes, numbers + y * winograd_points * t.step + i, t.step);
        }
      }
    }
  }
};

// Adds what the numbers contribute to the plane.
template <class Side, int64_t lanes>
struct WinogradContract {
  template <bool add>
  TENET_ALWAYS_INLINE static void along(const float* in, int64_t in_step, float* out, int64_t out_step) {
    const auto at = [=](int64_t i) __attribute__((always_inline)) { return in[i * in_step]; };
    float x[Side::size];
    Side::contract(
        {at(0), at(1) + at(2), at(1) - at(2), at(3) + at(4), at(3) - at(4), at(5) + at(6), at(5) - at(6), at(7)}, x);
    for (int64_t i = 0; i < Side::size; ++i) out[i * out_step] = add ? out[i * out_step] + x[i] : x[i];
  }
  TENET_ALWAYS_INLINE static void run(WinogradTiles t, const float* numbers, float* plane) {
    constexpr int64_t width = winograd_points * lanes;
    float between[Side::size * width];
    for (int64_t tile = 0; tile < t.rows * t.columns; ++tile, numbers += lanes) {
      float* out = plane + (tile / t.columns * t.pitch + tile % t.columns) * 4 * lanes;
      for (int64_t x = 0; x < winograd_points; ++x) {
        TENET_LOOP
        for (int64_t i = 0; i < lanes; ++i) {
          along<false>(numbers + x * t.step + i, winograd_points * t.step, between + x * lanes + i, width);
        }
      }
      for (int64_t y = 0; y < Side::size; ++y) {
        TENET_LOOP
        for (int64_t i = 0; i < lanes; ++i)
          along<true>(between + y * width + i, lanes, out + y * t.pitch * lanes + i, lanes);
      }
    }
  }
};

// The kernel for as many lanes as vectors have.
template <template <class, int64_t> class Kernel, class Side, class... A>
void run_winograd(A... args) {
#if TENET_X86
  if (isa() == Isa::avx512) return run_avx512_fused<Kernel<Side, 16>>(args...);
  run_avx2_fused<Kernel<Side, 8>>(args...);
#else
  run_baseline<Kernel<Side, 4>>(args...);
#endif
}

}  // namespace detail
}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
