// Two-dimensional convolution written as its definition: the oracle of the tests, and the path of element types without
// a kernel of their own.
#pragma once

#include <tenet/kernels/cpu/gemm_reference.hpp>

#include <vector>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Sizes of a convolution of x [n, c, h, w] with w [o, c / groups, kh, kw] into y [n, o, oh, ow].
struct Conv2dShape {
  int64_t n, c, h, w;
  int64_t o, kh, kw;
  int64_t oh, ow;
  int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dil_h = 1, dil_w = 1, groups = 1;
};

namespace detail {

// Calls f(index of x, index of w, index of y) for every product the convolution consists of, ordered by y.
template <class F>
void for_each_conv_product(const Conv2dShape& s, const F& f) {
  const int64_t cg = s.c / s.groups, og = s.o / s.groups;
  for (int64_t y_plane = 0; y_plane < s.n * s.o; ++y_plane) {
    const int64_t n = y_plane / s.o, o = y_plane % s.o;
    for (int64_t pixel = 0; pixel < s.oh * s.ow; ++pixel) {
      const int64_t top = pixel / s.ow * s.stride_h - s.pad_h, left = pixel % s.ow * s.stride_w - s.pad_w;
      for (int64_t tap = 0; tap < cg * s.kh * s.kw; ++tap) {
        const int64_t c = o / og * cg + tap / (s.kh * s.kw);
        const int64_t row = top + tap / s.kw % s.kh * s.dil_h, col = left + tap % s.kw * s.dil_w;
        if (row < 0 || row >= s.h || col < 0 || col >= s.w) continue;
        f(((n * s.c + c) * s.h + row) * s.w + col, o * cg * s.kh * s.kw + tap, y_plane * s.oh * s.ow + pixel);
      }
    }
  }
}

}  // namespace detail

/// y = conv2d(x, w) + bias; bias [o] may be null.
template <class T>
void conv2d_forward_reference(const Conv2dShape& s, const T* x, const T* w, const T* bias, T* y) {
  using Wide = reference_sum_t<T>;
  std::vector<Wide> sums(std::size_t(s.n * s.o * s.oh * s.ow));
  detail::for_each_conv_product(s, [&](int64_t ix, int64_t iw, int64_t iy) {
    sums[std::size_t(iy)] += static_cast<Wide>(x[ix]) * static_cast<Wide>(w[iw]);
  });
  const int64_t plane = s.oh * s.ow;
  for (const Wide& sum : sums) {
    const int64_t i = &sum - sums.data();
    y[i] = static_cast<T>(bias ? sum + static_cast<Wide>(bias[i / plane % s.o]) : sum);
  }
}

/// dx = gradient of conv2d with respect to x, for the gradient dy of y.
template <class T>
void conv2d_backward_data_reference(const Conv2dShape& s, const T* dy, const T* w, T* dx) {
  using Wide = reference_sum_t<T>;
  std::vector<Wide> sums(std::size_t(s.n * s.c * s.h * s.w));
  detail::for_each_conv_product(s, [&](int64_t ix, int64_t iw, int64_t iy) {
    sums[std::size_t(ix)] += static_cast<Wide>(dy[iy]) * static_cast<Wide>(w[iw]);
  });
  for (const Wide& sum : sums) *dx++ = static_cast<T>(sum);
}

/// dw = gradient of conv2d with respect to w, for the gradient dy of y.
template <class T>
void conv2d_backward_weight_reference(const Conv2dShape& s, const T* x, const T* dy, T* dw) {
  using Wide = reference_sum_t<T>;
  std::vector<Wide> sums(std::size_t(s.o * (s.c / s.groups) * s.kh * s.kw));
  detail::for_each_conv_product(s, [&](int64_t ix, int64_t iw, int64_t iy) {
    sums[std::size_t(iw)] += static_cast<Wide>(x[ix]) * static_cast<Wide>(dy[iy]);
  });
  for (const Wide& sum : sums) *dw++ = static_cast<T>(sum);
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
