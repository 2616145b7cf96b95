// 3 x 3 convolutions of many channels in float by Winograd's minimal filtering F(4 x 4, 3 x 3): a quarter of the
// multiplications. See Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016.
//
// Tiles of 4 x 4 outputs, each from 6 x 6 pixels, become 36 numbers a channel; 36 matrix products over the channels
// join them.
// Where one comes out infinite or NaN, which would have spread to its tile, all are computed anew without.
#pragma once

#include <tenet/kernels/cpu/conv2d_tiles.hpp>
#include <tenet/kernels/cpu/finite.hpp>
#include <tenet/kernels/cpu/gemm.hpp>

#include <algorithm>
#include <atomic>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace detail {

inline constexpr int64_t tile_out = 4, tile_in = 6, tile_numbers = tile_in * tile_in;

// Filters w[n, 3, 3] become their 36 numbers, `step` apart.
struct WinogradWeights {
  static constexpr Isa widest = Isa::avx2;
  TENET_ALWAYS_INLINE static void transform(float g0, float g1, float g2, float* to, int64_t step) {
    const float even = (g0 + g2) * (-1.0f / 6), odd = g1 * (-1.0f / 6);
    const float even2 = g0 * (1.0f / 24) + g2 * (1.0f / 6), odd2 = g1 * (1.0f / 12);
    to[0] = g0 * 0.25f, to[step] = even + odd, to[2 * step] = even - odd;
    to[3 * step] = even2 + odd2, to[4 * step] = even2 - odd2, to[5 * step] = g2;
  }
  TENET_ALWAYS_INLINE static void run(int64_t n, const float* w, float* out, int64_t step) {
    constexpr int64_t block = 32;
    float taps[9][block] = {}, columns[tile_in][3][block];
    for (int64_t first = 0; first < n; first += block, w += 9 * block, out += block) {
      const int64_t count = n - first < block ? n - first : block;
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t t = 0; t < 9; ++t) taps[t][i] = w[9 * i + t];
      }
      for (int64_t x = 0; x < 3; ++x) {
        TENET_LOOP
        for (int64_t i = 0; i < block; ++i) {
          transform(taps[x][i], taps[3 + x][i], taps[6 + x][i], &columns[0][x][i], 3 * block);
        }
      }
      for (int64_t y = 0; y < tile_in; ++y) {
        TENET_LOOP
        for (int64_t i = 0; i < count; ++i) {
          transform(columns[y][0][i], columns[y][1][i], columns[y][2][i], out + y * tile_in * step + i, step);
        }
      }
    }
  }
};

// A row of tiles: in[6, pitch] with pitch = 4 * tiles + 2 becomes the 36 numbers of each, `step` apart.
struct WinogradInput {
  static constexpr Isa widest = Isa::avx2;
  TENET_ALWAYS_INLINE static void transform(float a0, float a1, float a2, float a3, float a4, float a5, float* to,
                                            int64_t step) {
    const float even = a4 - 4 * a2, odd = a3 - 4 * a1, even2 = a4 - a2, odd2 = 2 * (a3 - a1);
    to[0] = 4 * (a0 - a2) + even2, to[step] = even + odd, to[2 * step] = even - odd;
    to[3 * step] = even2 + odd2, to[4 * step] = even2 - odd2, to[5 * step] = 4 * (a1 - a3) + a5 - a3;
  }
  TENET_ALWAYS_INLINE static void run(const float* in, int64_t tiles, float* between, float* out, int64_t step) {
    const int64_t pitch = tile_out * tiles + 2;
    TENET_LOOP
    for (int64_t x = 0; x < pitch; ++x) {
      const float* a = in + x;
      transform(a[0], a[pitch], a[2 * pitch], a[3 * pitch], a[4 * pitch], a[5 * pitch], between + x, pitch);
    }
    for (int64_t y = 0; y < tile_in; ++y, between += pitch, out += tile_in * step) {
      TENET_LOOP
      for (int64_t t = 0; t < tiles; ++t) {
        const float* a = between + tile_out * t;
        transform(a[0], a[1], a[2], a[3], a[4], a[5], out + t, step);
      }
    }
  }
};

// The way back: the 36 numbers of each tile, `step` apart, become out[4, 4 * tiles].
struct WinogradOutput {
  static constexpr Isa widest = Isa::avx2;
  TENET_ALWAYS_INLINE static void transform(float m0, float m1, float m2, float m3, float m4, float m5, float start,
                                            float* to, int64_t step) {
    const float sum = m1 + m2, difference = m1 - m2, sum2 = m3 + m4, difference2 = m3 - m4;
    to[0] = start + (m0 + sum + sum2), to[step] = start + (difference + 2 * difference2);
    to[2 * step] = start + (sum + 4 * sum2), to[3 * step] = start + (difference + 8 * difference2 + m5);
  }
  TENET_ALWAYS_INLINE static void run(const float* in, int64_t step, int64_t tiles, float bias, float* between,
                                      float* out) {
    for (int64_t x = 0; x < tile_in; ++x) {
      const float* m = in + x * step;
      float* to = between + x * tiles;
      TENET_LOOP
      for (int64_t t = 0; t < tiles; ++t) {
        transform(m[t], m[6 * step + t], m[12 * step + t], m[18 * step + t], m[24 * step + t], m[30 * step + t], 0.0f,
                  to + t, tile_in * tiles);
      }
    }
    for (int64_t y = 0; y < tile_out; ++y, between += tile_in * tiles, out += tile_out * tiles) {
      TENET_LOOP
      for (int64_t t = 0; t < tiles; ++t) {
        const float* m = between + t;
        transform(m[0], m[tiles], m[2 * tiles], m[3 * tiles], m[4 * tiles], m[5 * tiles], bias, out + tile_out * t, 1);
      }
    }
  }
};

// Rows [first, first + count) of tiles, those of all images one after the other.
struct WinogradPiece {
  const Conv2dShape& s;
  int64_t first, count;
  int64_t columns() const { return (s.ow + tile_out - 1) / tile_out; }
  int64_t tiles() const { return count * columns(); }
  int64_t image(int64_t row) const { return (first + row) / rows_of(s); }
  int64_t top(int64_t row) const { return (first + row) % rows_of(s) * tile_out; }  // in the output
  static int64_t rows_of(const Conv2dShape& s) { return (s.oh + tile_out - 1) / tile_out; }
};

// numbers[36][c][tiles] of the piece.
TENET_NOINLINE inline void winograd_forward(const WinogradPiece& p, const float* x, float* buffer, float* numbers) {
  const Conv2dShape& s = p.s;
  const int64_t tiles = p.columns(), pitch = tile_out * tiles + 2;
  std::fill_n(buffer, tile_in * pitch, 0.0f);
  for (int64_t row = 0; row < p.count; ++row) {
    for (int64_t c = 0; c < s.c; ++c) {
      const float* plane = x + (p.image(row) * s.c + c) * s.h * s.w;
      for (int64_t i = 0; i < tile_in; ++i) {
        const int64_t y = p.top(row) + i - s.pad_h;
        float* to = buffer + i * pitch + s.pad_w;
        if (y >= 0 && y < s.h) std::copy_n(plane + y * s.w, s.w, to);
        else std::fill_n(to, s.w, 0.0f);
      }
      vectorized<WinogradInput>(static_cast<const float*>(buffer), tiles, buffer + tile_in * pitch,
                                numbers + c * p.tiles() + row * tiles, s.c * p.tiles());
    }
  }
}

// y of the piece, from numbers[36][o][tiles]; whether all of it is finite.
TENET_NOINLINE inline bool winograd_back(const WinogradPiece& p, const float* numbers, const float* bias, float* buffer,
                                         float* y) {
  const Conv2dShape& s = p.s;
  const int64_t tiles = p.columns(), width = tile_out * tiles;
  float* const between = buffer + tile_out * width;
  bool finite = true;
  for (int64_t row = 0; row < p.count; ++row) {
    const int64_t rows = std::min(tile_out, s.oh - p.top(row));
    for (int64_t o = 0; o < s.o; ++o) {
      vectorized<WinogradOutput>(numbers + o * p.tiles() + row * tiles, s.o * p.tiles(), tiles, bias ? bias[o] : 0.0f,
                                 between, buffer);
      finite = all_finite(tile_out * width, buffer) && finite;
      float* to = y + ((p.image(row) * s.o + o) * s.oh + p.top(row)) * s.ow;
      for (int64_t i = 0; i < rows; ++i) std::copy_n(buffer + i * width, s.ow, to + i * s.ow);
    }
  }
  return finite;
}

}  // namespace detail

/// The error of a result, relative to the sum of the magnitudes of its terms, stays below this where its tile has no
/// pixels that are larger by magnitudes: a result shares the errors of its tile, and one of zeros may become a small
/// number. Typical is about five times that of the definition: 3e-6 of the results' root mean square for 512 channels.
inline constexpr double winograd_error = 2e-5;

/// Whether a convolution is one that Winograd's filtering makes faster.
inline bool winograd_pays(const Conv2dShape& s) {
  return s.kh == 3 && s.kw == 3 && s.stride_h == 1 && s.stride_w == 1 && s.dil_h == 1 && s.dil_w == 1 && s.pad_h <= 2 &&
         s.pad_w <= 2 && s.groups == 1 && s.c >= 48 && s.o >= 48 && s.oh >= 6 && s.ow >= 6;
}

/// y = conv2d(x, w) + bias, where winograd_pays.
TENET_NOINLINE inline void conv2d_forward_winograd(const Conv2dShape& s, const float* x, const float* w,
                                                   const float* bias, float* y) {
  using namespace detail;
  constexpr int64_t numbers_at_once = int64_t{1} << 20;
  float* const weights = scratch<float>(Scratch::conv_weights, tile_numbers * s.o * s.c);
  parallel_for(s.o, (int64_t{1} << 13) / s.c + 1, [&](int64_t begin, int64_t end) {
    vectorized<WinogradWeights>((end - begin) * s.c, w + begin * s.c * 9, weights + begin * s.c, s.o * s.c);
  });
  const int64_t columns = WinogradPiece{s, 0, 0}.columns(), rows = s.n * WinogradPiece::rows_of(s);
  const int64_t tiles = std::max<int64_t>(64, numbers_at_once / (tile_numbers * (s.c + s.o)));
  const int64_t height = balanced(rows, std::max<int64_t>(1, tiles / columns));
  std::atomic<bool> finite{true};
  parallel_for((rows + height - 1) / height, 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const WinogradPiece p{s, piece * height, std::min(height, rows - piece * height)};
      const int64_t n = p.tiles();
      float* const in = scratch<float>(Scratch::conv_images, tile_numbers * (s.c + s.o) * n);
      float* const out = in + tile_numbers * s.c * n;
      float* const buffer = scratch<float>(Scratch::conv_sums, 2 * tile_in * (tile_out * columns + 2));
      winograd_forward(p, x, buffer, in);
      for (int64_t i = 0; i < tile_numbers; ++i) {
        gemm<float>(s.o, n, s.c, {weights + i * s.o * s.c, s.c, 1}, {in + i * s.c * n, n, 1}, out + i * s.o * n, n);
      }
      if (!winograd_back(p, out, bias, buffer, y)) finite.store(false, std::memory_order_relaxed);
    }
  });
  if (!finite) conv2d_forward_tiles(s, x, w, bias, y);
}

/// dx = gradient with respect to x, where winograd_pays.
inline void conv2d_backward_data_winograd(const Conv2dShape& s, const float* dy, const float* w, float* dx) {
  conv2d_backward_data_turned(s, dy, w, dx, &conv2d_forward_winograd);
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
