// Convolutions with many channels as matrix products. A product's columns, the pixels that one tap reads for each
// output pixel, are gathered a block at a time and stay in the cache; a convolution of single pixels has them already.
#pragma once

#include <tenet/kernels/cpu/conv2d_reference.hpp>
#include <tenet/kernels/cpu/gemm.hpp>

#include <algorithm>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Whether outputs are sums over the channels of single pixels, each in its place.
inline bool is_pointwise(const Conv2dShape& s) {
  return s.kh == 1 && s.kw == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_h == 0 && s.pad_w == 0;
}

namespace detail {

// One image and channel group, and the part of it that a block of columns covers.
struct ColumnBlock {
  const Conv2dShape& s;
  int64_t first_tap, taps;  // of a channel group: (c * kh + ky) * kw + kx
  int64_t first_row, rows;  // of the output
  int64_t pixels() const { return rows * s.ow; }

  /// Calls f(column, row of the image or -1, first column of the image, begin, end) for each tap and row of the output,
  /// whose pixels begin <= j < end lie inside the image.
  template <class F>
  void each_row(F f) const {
    for (int64_t t = first_tap; t < first_tap + taps; ++t) {
      const int64_t c = t / (s.kh * s.kw), ky = t / s.kw % s.kh, kx = t % s.kw, x = kx * s.dil_w - s.pad_w;
      const int64_t end = s.w > x ? std::min(s.ow, (s.w - x - 1) / s.stride_w + 1) : 0;
      const int64_t begin = std::min(end, x < 0 ? (-x - 1) / s.stride_w + 1 : 0);
      for (int64_t i = first_row; i < first_row + rows; ++i) {
        const int64_t y = i * s.stride_h - s.pad_h + ky * s.dil_h;
        f((t - first_tap) * pixels() + (i - first_row) * s.ow, y >= 0 && y < s.h ? c * s.h + y : -1, x, begin, end);
      }
    }
  }
};

// Rows are short: a call of memmove would take longer.
template <class T>
void copy_row(int64_t n, const T* from, T* to) {
  constexpr int64_t run = 8;
  if (n < run) {
    for (int64_t j = 0; j < n; ++j) to[j] = from[j];
    return;
  }
  for (int64_t j = 0; j + run < n; j += run) __builtin_memcpy(to + j, from + j, run * sizeof(T));
  __builtin_memcpy(to + n - run, from + n - run, run * sizeof(T));
}

template <class T>
struct TakeEverySecond {
  static constexpr Isa widest = Isa::avx2;
  TENET_ALWAYS_INLINE static void run(int64_t n, const T* from, T* to) {
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
  }
};

// columns[taps, pixels] of one group's channels `in`; 0 outside the image.
template <class T>
TENET_NOINLINE void gather_columns(const ColumnBlock& block, const T* in, T* columns) {
  const Conv2dShape& s = block.s;
  block.each_row([&](int64_t at, int64_t row, int64_t x, int64_t begin, int64_t end) {
    T* out = columns + at;
    if (row < 0) begin = end = 0;
    const T* from = in + row * s.w + x;
    std::fill(out, out + begin, T(0));
    if (s.stride_w == 1) {
      copy_row(end - begin, from + begin, out + begin);
    } else if (s.stride_w == 2 && begin < end) {
      vectorized<TakeEverySecond<T>>(end - begin, from + 2 * begin, out + begin);
    } else {
      for (int64_t j = begin; j < end; ++j) out[j] = from[j * s.stride_w];
    }
    std::fill(out + end, out + s.ow, T(0));
  });
}

// The way back: adds each column to the pixels that it was gathered from.
template <class T>
TENET_NOINLINE void scatter_columns(const ColumnBlock& block, const T* columns, T* out) {
  const Conv2dShape& s = block.s;
  block.each_row([&](int64_t at, int64_t row, int64_t x, int64_t begin, int64_t end) {
    if (row < 0) return;
    const T* from = columns + at;
    T* to = out + row * s.w + x;
    if (s.stride_w == 1) {
      for (int64_t j = begin; j < end; ++j) to[j] += from[j];
    } else {
      for (int64_t j = begin; j < end; ++j) to[j * s.stride_w] += from[j];
    }
  });
}

inline constexpr int64_t block_pixels = 1024, block_elements = 65536;  // of a block of columns

inline int64_t block_rows(const Conv2dShape& s) { return std::clamp<int64_t>(block_pixels / s.ow, 1, s.oh); }

}  // namespace detail

// T is the type of the operands, C that of the results: T, or float for half and bfloat16.

/// y = conv2d(x, w) + bias, of a pointwise convolution.
template <class T, class C>
TENET_NOINLINE void conv2d_forward_pointwise(const Conv2dShape& s, const T* x, const T* w, const C* bias, C* y) {
  const int64_t in = s.c / s.groups, out = s.o / s.groups, pixels = s.h * s.w;
  parallel_for(s.n * s.groups, (int64_t{1} << 20) / (in * out * pixels) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t g = i % s.groups;
      gemm<T>(out, pixels, in, {w + g * out * in, in, 1}, {x + i * in * pixels, pixels, 1}, y + i * out * pixels,
              pixels, {false, bias ? bias + g * out : nullptr, nullptr});
    }
  });
}

/// y = conv2d(x, w) + bias: a unit owns some rows of an image.
template <class T, class C>
TENET_NOINLINE void conv2d_forward_columns(const Conv2dShape& s, const T* x, const T* w, const C* bias, C* y) {
  const int64_t in = s.c / s.groups, out = s.o / s.groups, taps = in * s.kh * s.kw;
  const int64_t rows = std::clamp<int64_t>(detail::block_elements / (taps * s.ow), 1, s.oh);
  const int64_t blocks = (s.oh + rows - 1) / rows;
  parallel_for(s.n * s.groups * blocks, 1, [&](int64_t begin, int64_t end) {
    T* const columns = scratch<T>(Scratch::conv_images, taps * rows * s.ow);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t i = unit / blocks, row = unit % blocks * rows, g = i % s.groups;
      const detail::ColumnBlock block{s, 0, taps, row, std::min(rows, s.oh - row)};
      detail::gather_columns(block, x + i * in * s.h * s.w, columns);
      gemm<T>(out, block.pixels(), taps, {w + g * out * taps, taps, 1}, {columns, block.pixels(), 1},
              y + (i * out * s.oh + row) * s.ow, s.oh * s.ow, {false, bias ? bias + g * out : nullptr, nullptr});
    }
  });
}

/// dx = gradient with respect to x, of a pointwise convolution.
template <class T, class C>
TENET_NOINLINE void conv2d_backward_data_pointwise(const Conv2dShape& s, const T* dy, const T* w, C* dx) {
  const int64_t in = s.c / s.groups, out = s.o / s.groups, pixels = s.h * s.w;
  parallel_for(s.n * s.groups, (int64_t{1} << 20) / (in * out * pixels) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      gemm<T>(in, pixels, out, {w + i % s.groups * out * in, 1, in}, {dy + i * out * pixels, pixels, 1},
              dx + i * in * pixels, pixels);
    }
  });
}

/// dx = gradient with respect to x: a unit owns some channels of an image.
template <class T, class C>
TENET_NOINLINE void conv2d_backward_data_columns(const Conv2dShape& s, const T* dy, const T* w, C* dx) {
  const int64_t in = s.c / s.groups, out = s.o / s.groups, taps = s.kh * s.kw, plane = s.h * s.w;
  const int64_t rows = detail::block_rows(s), row_taps = in * taps;
  const int64_t channels = std::clamp<int64_t>(detail::block_elements / (rows * s.ow * taps), 1, in);
  const int64_t blocks = (in + channels - 1) / channels;
  parallel_for(s.n * s.groups * blocks, 1, [&](int64_t begin, int64_t end) {
    C* const columns = scratch<C>(Scratch::conv_images, channels * taps * rows * s.ow);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t i = unit / blocks, c = unit % blocks * channels, g = i % s.groups;
      const int64_t count = std::min(channels, in - c);
      C* const to = dx + (i * in + c) * plane;
      std::fill_n(to, count * plane, C(0));
      for (int64_t row = 0; row < s.oh; row += rows) {
        const detail::ColumnBlock block{s, 0, count * taps, row, std::min(rows, s.oh - row)};
        gemm<T>(count * taps, block.pixels(), out, {w + g * out * row_taps + c * taps, 1, row_taps},
                {dy + i * out * s.oh * s.ow + row * s.ow, s.oh * s.ow, 1}, columns, block.pixels());
        detail::scatter_columns(block, columns, to);
      }
    }
  });
}

/// dw = gradient with respect to w: a unit owns some taps and sums over the batch in its order.
template <class T, class C>
TENET_NOINLINE void conv2d_backward_weight_columns(const Conv2dShape& s, const T* x, const T* dy, C* dw) {
  const int64_t in = s.c / s.groups, out = s.o / s.groups, taps = in * s.kh * s.kw, plane = s.h * s.w;
  const int64_t rows = detail::block_rows(s);
  const int64_t together = std::min(taps, std::max<int64_t>(detail::block_elements / (rows * s.ow) / 16 * 16, 16));
  const int64_t blocks = (taps + together - 1) / together;
  const bool direct = is_pointwise(s);
  const int64_t unit_cost = s.n * s.oh * s.ow * out * together;
  parallel_for(s.groups * blocks, (int64_t{1} << 20) / unit_cost + 1, [&](int64_t begin, int64_t end) {
    T* const columns = direct ? nullptr : scratch<T>(Scratch::conv_images, together * rows * s.ow);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t g = unit / blocks, tap = unit % blocks * together, count = std::min(together, taps - tap);
      for (int64_t image = 0; image < s.n; ++image) {
        const T* from = x + (image * s.c + g * in) * plane;
        for (int64_t row = 0; row < s.oh; row += rows) {
          const detail::ColumnBlock block{s, tap, count, row, std::min(rows, s.oh - row)};
          MatrixView<T> b{columns, 1, block.pixels()};
          if (direct) b = {from + tap * plane + row * s.ow, 1, plane};
          else detail::gather_columns(block, from, columns);
          gemm<T>(out, count, block.pixels(), {dy + (image * s.o + g * out) * s.oh * s.ow + row * s.ow, s.oh * s.ow, 1},
                  b, dw + g * out * taps + tap, taps, {.accumulate = image > 0 || row > 0});
        }
      }
    }
  });
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
