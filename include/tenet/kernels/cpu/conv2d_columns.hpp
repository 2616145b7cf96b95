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

// What a tap reads for each pixel (i, j) of the output: pixel from + i * row_step + j * stride_w of the image, where
// top <= i < bottom and left <= j < right; the others lie outside of it.
struct TapColumn {
  int64_t from, row_step, top, bottom, left, right;
};

// One image and channel group, and the part of it that a block of columns covers.
struct ColumnBlock {
  const Conv2dShape& s;
  int64_t first_tap, taps;  // of a channel group: (c * kh + ky) * kw + kx
  int64_t first_row, rows;  // of the output
  int64_t pixels() const { return rows * s.ow; }

  /// Calls f(column) for each tap, in order.
  template <class F>
  void each_column(F f) const {
    int64_t c = first_tap / (s.kh * s.kw), ky = first_tap / s.kw % s.kh, kx = first_tap % s.kw;
    for (int64_t t = 0; t < taps; ++t) {
      const int64_t y = first_row * s.stride_h - s.pad_h + ky * s.dil_h, x = kx * s.dil_w - s.pad_w;
      TapColumn column{(c * s.h + y) * s.w + x, s.stride_h * s.w, 0, 0, 0, 0};
      inside(s.h, y, s.stride_h, rows, column.top, column.bottom);
      inside(s.w, x, s.stride_w, s.ow, column.left, column.right);
      f(column);
      if (++kx < s.kw) continue;
      kx = 0;
      if (++ky == s.kh) ky = 0, ++c;
    }
  }

 private:
  // The range of i with 0 <= start + i * stride < size, of those below `count`. Divides only where it is cut.
  static void inside(int64_t size, int64_t start, int64_t stride, int64_t count, int64_t& begin, int64_t& end) {
    end = start + (count - 1) * stride < size ? count : size > start ? (size - start - 1) / stride + 1 : 0;
    begin = start < 0 ? std::min(end, (-start - 1) / stride + 1) : 0;
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

// One column of `rows` rows of `width` elements; 0 outside the image.
template <class T>
TENET_NOINLINE void gather_column(const TapColumn& tap, int64_t rows, int64_t width, int64_t stride, const T* in,
                                  T* out) {
  const int64_t n = tap.right - tap.left, count = tap.bottom - tap.top;
  if (n < width || count < rows) std::fill_n(out, rows * width, T(0));
  in += tap.from + tap.top * tap.row_step + tap.left * stride;
  out += tap.top * width + tap.left;
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) copy_row(n, in + i * tap.row_step, out + i * width);
  } else if (stride == 2 && n > 0) {
    for (int64_t i = 0; i < count; ++i) vectorized<TakeEverySecond<T>>(n, in + i * tap.row_step, out + i * width);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < n; ++j) out[i * width + j] = in[i * tap.row_step + j * stride];
    }
  }
}

// columns[taps, pixels] of one group's channels `in`.
template <class T>
TENET_NOINLINE void gather_columns(const ColumnBlock& block, const T* in, T* columns) {
  block.each_column([&](const TapColumn& tap) {
    gather_column(tap, block.rows, block.s.ow, block.s.stride_w, in, columns);
    columns += block.pixels();
  });
}

// The way back: adds each column to the pixels that it was gathered from.
template <class T>
TENET_NOINLINE void scatter_columns(const ColumnBlock& block, const T* columns, T* out) {
  const int64_t width = block.s.ow, stride = block.s.stride_w;
  block.each_column([&](const TapColumn& tap) {
    for (int64_t i = tap.top; i < tap.bottom; ++i) {
      const T* const from = columns + i * width;
      T* const to = out + tap.from + i * tap.row_step;
      if (stride == 1) {
        for (int64_t j = tap.left; j < tap.right; ++j) to[j] += from[j];
      } else {
        for (int64_t j = tap.left; j < tap.right; ++j) to[j * stride] += from[j];
      }
    }
    columns += block.pixels();
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
