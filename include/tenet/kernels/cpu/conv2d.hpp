// Two-dimensional convolution and its two gradients, on contiguous NCHW memory.
#pragma once

#include <tenet/kernels/cpu/conv2d_columns.hpp>
#include <tenet/kernels/cpu/conv2d_depthwise.hpp>
#include <tenet/kernels/cpu/conv2d_dots.hpp>
#include <tenet/kernels/cpu/conv2d_tiles.hpp>
#include <tenet/kernels/cpu/conv2d_winograd.hpp>
#include <tenet/kernels/cpu/conv2d_winograd5.hpp>
#include <tenet/kernels/cpu/gemm.hpp>
#include <tenet/kernels/cpu/widened.hpp>

#include <algorithm>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

namespace detail {

// Elements of each tensor.
struct Conv2dSizes {
  int64_t x, w, y;
  explicit Conv2dSizes(const Conv2dShape& s)
      : x(s.n * s.c * s.h * s.w), w(s.o * (s.c / s.groups) * s.kh * s.kw), y(s.n * s.o * s.oh * s.ow) {}
};

inline bool nothing_empty(const Conv2dShape& s) {
  return s.n > 0 && s.c > 0 && s.o > 0 && s.kh > 0 && s.kw > 0 && s.oh > 0 && s.ow > 0;
}

// The kernel covers the whole image: a matrix product with the images as rows.
inline bool covers_image(const Conv2dShape& s) {
  return nothing_empty(s) && s.groups == 1 && s.oh == 1 && s.ow == 1 && s.kh == s.h && s.kw == s.w && s.pad_h == 0 &&
         s.pad_w == 0;
}

// Enough channels to fill the tiles of matrix products.
inline bool is_wide(const Conv2dShape& s) {
  return s.o / s.groups >= 64 && s.c / s.groups * s.kh * s.kw >= 64 && s.oh * s.ow >= 32;
}

template <class T>
void conv2d_forward_product(const Conv2dShape& s, const T* x, const T* w, const T* bias, T* y) {
  const int64_t k = s.c * s.h * s.w;
  gemm<T>(s.n, s.o, k, {x, k, 1}, {w, 1, k}, y, s.o, {false, nullptr, bias});
}

template <class T>
void conv2d_backward_data_product(const Conv2dShape& s, const T* dy, const T* w, T* dx) {
  const int64_t k = s.c * s.h * s.w;
  gemm<T>(s.n, k, s.o, {dy, s.o, 1}, {w, k, 1}, dx, k);
}

template <class T>
void conv2d_backward_weight_product(const Conv2dShape& s, const T* x, const T* dy, T* dw) {
  const int64_t k = s.c * s.h * s.w;
  gemm<T>(s.o, k, s.n, {dy, 1, s.o}, {x, k, 1}, dw, k);
}

// half and bfloat16: f(a, b, out) on copies of float, whose results are rounded once.
template <class T, class F>
void through_float(int64_t a_size, const T* a, int64_t b_size, const T* b, int64_t size, T* out, F f) {
  float* const wide_a = scratch<float>(Scratch::conv_widened, a_size + b_size + size);
  float *const wide_b = wide_a + a_size, *const wide_out = wide_b + b_size;
  convert_all(a_size, wide_a, a);
  convert_all(b_size, wide_b, b);
  f(static_cast<const float*>(wide_a), static_cast<const float*>(wide_b), wide_out);
  convert_all(size, out, static_cast<const float*>(wide_out));
}

// Nothing to sum.
template <class T>
void conv2d_forward_empty(const Conv2dShape& s, const T* bias, T* y) {
  for (int64_t i = 0; i < s.n * s.o * s.oh * s.ow; ++i) y[i] = bias ? bias[i / (s.oh * s.ow) % s.o] : T(0);
}

template <class T>
inline constexpr bool has_vector_kernels = std::is_same_v<T, float> || std::is_same_v<T, double>;

}  // namespace detail

/// y [n, o, oh, ow] = conv2d(x [n, c, h, w], w [o, c / groups, kh, kw]) + bias [o] (may be null).
template <class T>
void conv2d_forward(const Conv2dShape& s, const T* x, const T* w, const T* bias, T* y) {
  using namespace detail;
  if constexpr (FloatElement<T> && !has_vector_kernels<T>) {
    const Conv2dSizes size(s);
    float* const wide_bias = bias ? scratch<float>(Scratch::conv_bias, s.o) : nullptr;
    if (bias) convert(s.o, wide_bias, bias);
    return through_float(size.x, x, size.w, w, size.y, y, [&](const float* wide_x, const float* wide_w, float* wide_y) {
      conv2d_forward<float>(s, wide_x, wide_w, wide_bias, wide_y);
    });
  }
  if (!nothing_empty(s)) return conv2d_forward_empty(s, bias, y);
  if (covers_image(s)) return conv2d_forward_product(s, x, w, bias, y);
  if constexpr (std::is_same_v<T, float>) {
    if (winograd_pays(s)) return conv2d_forward_winograd(s, x, w, bias, y);
    if (winograd5_pays(s) && conv2d_forward_winograd5(s, x, w, bias, y)) return;
    if (is_depthwise(s)) return conv2d_forward_depthwise(s, x, w, bias, y);
  }
  if constexpr (has_vector_kernels<T>) {
    if (is_wide(s) && is_pointwise(s)) return conv2d_forward_pointwise(s, x, w, bias, y);
    conv2d_forward_tiles(s, x, w, bias, y);
  } else {
    conv2d_forward_reference(s, x, w, bias, y);
  }
}

/// dx = gradient with respect to x, for the gradient dy of y. Overwrites dx.
template <class T>
void conv2d_backward_data(const Conv2dShape& s, const T* dy, const T* w, T* dx) {
  using namespace detail;
  if constexpr (FloatElement<T> && !has_vector_kernels<T>) {
    const Conv2dSizes size(s);
    return through_float(size.y, dy, size.w, w, size.x, dx, [&](const float* a, const float* b, float* out) {
      conv2d_backward_data<float>(s, a, b, out);
    });
  }
  if (!nothing_empty(s)) return void(std::fill_n(dx, Conv2dSizes(s).x, T(0)));
  if (covers_image(s)) return conv2d_backward_data_product(s, dy, w, dx);
  if constexpr (std::is_same_v<T, float>) {
    if (winograd_pays(s)) return conv2d_backward_data_winograd(s, dy, w, dx);
    if (winograd5_pays(s) && conv2d_backward_data_winograd5(s, dy, w, dx)) return;
    if (is_depthwise(s) && s.o == s.c && turns_around(s)) {
      return conv2d_backward_data_turned(s, dy, w, dx, &conv2d_forward_depthwise);
    }
  }
  if constexpr (has_vector_kernels<T>) {
    if (is_wide(s) && is_pointwise(s)) return conv2d_backward_data_pointwise(s, dy, w, dx);
    if (turns_around(s)) return conv2d_backward_data_turned(s, dy, w, dx, &conv2d_forward_tiles<T>);
    if (is_wide(s)) return conv2d_backward_data_columns(s, dy, w, dx);
    conv2d_backward_data_tiles(s, dy, w, dx);
  } else {
    conv2d_backward_data_reference(s, dy, w, dx);
  }
}

/// dw = gradient with respect to w, for the gradient dy of y. Overwrites dw; an empty batch gives zeros.
template <class T>
void conv2d_backward_weight(const Conv2dShape& s, const T* x, const T* dy, T* dw) {
  using namespace detail;
  if constexpr (FloatElement<T> && !has_vector_kernels<T>) {
    const Conv2dSizes size(s);
    return through_float(size.x, x, size.y, dy, size.w, dw, [&](const float* a, const float* b, float* out) {
      conv2d_backward_weight<float>(s, a, b, out);
    });
  }
  if (!nothing_empty(s)) return void(std::fill_n(dw, Conv2dSizes(s).w, T(0)));
  if (covers_image(s)) return conv2d_backward_weight_product(s, x, dy, dw);
  if constexpr (std::is_same_v<T, float>) {
    if (winograd5_pays(s) && conv2d_backward_weight_winograd5(s, x, dy, dw)) return;
    if (is_depthwise(s)) return conv2d_backward_weight_depthwise(s, x, dy, dw);
  }
  if constexpr (has_vector_kernels<T>) {
    // Rows that are no multiple of a run waste lanes of the dots, and so do pixels apart.
    const bool ragged = s.ow % 8 != 0 || s.stride_w != 1 || is_pointwise(s);
    // Few pixels are hardly worth keeping lanes apart, which are to be added up for each weight.
    const bool few = s.n * s.oh * s.ow <= 400;
    if (few || (is_wide(s) && ragged)) return conv2d_backward_weight_columns(s, x, dy, dw);
    conv2d_backward_weight_dots(s, x, dy, dw);
  } else {
    conv2d_backward_weight_reference(s, x, dy, dw);
  }
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
