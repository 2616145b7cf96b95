// Two-dimensional convolution and its two gradients, on contiguous NCHW memory.
#pragma once

#include <tenet/kernels/cpu/conv2d_dots.hpp>
#include <tenet/kernels/cpu/conv2d_tiles.hpp>
#include <tenet/kernels/cpu/gemm.hpp>
#include <tenet/kernels/cpu/widened.hpp>

#include <algorithm>
#include <array>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// One way to compute a convolution and its gradients.
template <class T>
struct Conv2dKernels {
  bool (*accepts)(const Conv2dShape&);
  void (*forward)(const Conv2dShape&, const T* x, const T* w, const T* bias, T* y);
  void (*backward_data)(const Conv2dShape&, const T* dy, const T* w, T* dx);
  void (*backward_weight)(const Conv2dShape&, const T* x, const T* dy, T* dw);
};

namespace detail {

// Elements of each tensor.
struct Conv2dSizes {
  int64_t x, w, y;
  explicit Conv2dSizes(const Conv2dShape& s)
      : x(s.n * s.c * s.h * s.w), w(s.o * (s.c / s.groups) * s.kh * s.kw), y(s.n * s.o * s.oh * s.ow) {}
};

template <class T>
const Conv2dKernels<T>& conv2d_kernels(const Conv2dShape& s);

inline bool any_shape(const Conv2dShape&) { return true; }

inline bool nothing_empty(const Conv2dShape& s) {
  return s.n > 0 && s.c > 0 && s.o > 0 && s.kh > 0 && s.kw > 0 && s.oh > 0 && s.ow > 0;
}

// The kernel covers the whole image: a matrix product with the images as rows.
inline bool covers_image(const Conv2dShape& s) {
  return nothing_empty(s) && s.groups == 1 && s.oh == 1 && s.ow == 1 && s.kh == s.h && s.kw == s.w && s.pad_h == 0 &&
         s.pad_w == 0;
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

// half and bfloat16: through float, rounded once.
template <class T>
void conv2d_forward_widened(const Conv2dShape& s, const T* x, const T* w, const T* bias, T* y) {
  const Conv2dSizes size(s);
  float* const wide_x = scratch<float>(Scratch::conv_widened, size.x + size.w + s.o + size.y);
  float *const wide_w = wide_x + size.x, *const wide_bias = wide_w + size.w, *const wide_y = wide_bias + s.o;
  convert_all(size.x, wide_x, x);
  convert_all(size.w, wide_w, w);
  if (bias) convert(s.o, wide_bias, bias);
  conv2d_kernels<float>(s).forward(s, wide_x, wide_w, bias ? wide_bias : nullptr, wide_y);
  convert_all(size.y, y, wide_y);
}

template <class T>
void conv2d_backward_data_widened(const Conv2dShape& s, const T* dy, const T* w, T* dx) {
  const Conv2dSizes size(s);
  float* const wide_dy = scratch<float>(Scratch::conv_widened, size.y + size.w + size.x);
  float *const wide_w = wide_dy + size.y, *const wide_dx = wide_w + size.w;
  convert_all(size.y, wide_dy, dy);
  convert_all(size.w, wide_w, w);
  conv2d_kernels<float>(s).backward_data(s, wide_dy, wide_w, wide_dx);
  convert_all(size.x, dx, wide_dx);
}

template <class T>
void conv2d_backward_weight_widened(const Conv2dShape& s, const T* x, const T* dy, T* dw) {
  const Conv2dSizes size(s);
  float* const wide_x = scratch<float>(Scratch::conv_widened, size.x + size.y + size.w);
  float *const wide_dy = wide_x + size.x, *const wide_dw = wide_dy + size.y;
  convert_all(size.x, wide_x, x);
  convert_all(size.y, wide_dy, dy);
  conv2d_kernels<float>(s).backward_weight(s, wide_x, wide_dy, wide_dw);
  convert_all(size.w, dw, wide_dw);
}

// Nothing to sum.
template <class T>
void conv2d_forward_empty(const Conv2dShape& s, const T*, const T*, const T* bias, T* y) {
  for (int64_t i = 0; i < s.n * s.o * s.oh * s.ow; ++i) y[i] = bias ? bias[i / (s.oh * s.ow) % s.o] : T(0);
}

template <class T>
void conv2d_backward_data_empty(const Conv2dShape& s, const T*, const T*, T* dx) {
  std::fill_n(dx, Conv2dSizes(s).x, T(0));
}

template <class T>
void conv2d_backward_weight_empty(const Conv2dShape& s, const T*, const T*, T* dw) {
  std::fill_n(dw, Conv2dSizes(s).w, T(0));
}

template <class T>
inline constexpr Conv2dKernels<T> conv2d_as_product{covers_image, conv2d_forward_product<T>,
                                                    conv2d_backward_data_product<T>, conv2d_backward_weight_product<T>};
template <class T>
inline constexpr Conv2dKernels<T> conv2d_in_tiles{nothing_empty, conv2d_forward_tiles<T>, conv2d_backward_data_tiles<T>,
                                                  conv2d_backward_weight_dots<T>};
template <class T>
inline constexpr Conv2dKernels<T> conv2d_of_nothing{any_shape, conv2d_forward_empty<T>, conv2d_backward_data_empty<T>,
                                                    conv2d_backward_weight_empty<T>};
template <class T>
inline constexpr Conv2dKernels<T> conv2d_in_float{any_shape, conv2d_forward_widened<T>, conv2d_backward_data_widened<T>,
                                                  conv2d_backward_weight_widened<T>};
template <class T>
inline constexpr Conv2dKernels<T> conv2d_by_definition{
    any_shape, conv2d_forward_reference<T>, conv2d_backward_data_reference<T>, conv2d_backward_weight_reference<T>};

// In order of preference; the last accepts what the others do not.
template <class T>
constexpr auto conv2d_kernel_list() {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return std::array{conv2d_as_product<T>, conv2d_in_tiles<T>, conv2d_of_nothing<T>};
  } else if constexpr (FloatElement<T>) {
    return std::array{conv2d_in_float<T>};
  } else {
    return std::array{conv2d_as_product<T>, conv2d_by_definition<T>};
  }
}

template <class T>
const Conv2dKernels<T>& conv2d_kernels(const Conv2dShape& s) {
  static constexpr auto list = conv2d_kernel_list<T>();
  const Conv2dKernels<T>* kernels = list.data();
  while (!kernels->accepts(s)) ++kernels;
  return *kernels;
}

}  // namespace detail

/// y [n, o, oh, ow] = conv2d(x [n, c, h, w], w [o, c / groups, kh, kw]) + bias [o] (may be null).
template <class T>
void conv2d_forward(const Conv2dShape& s, const T* x, const T* w, const T* bias, T* y) {
  detail::conv2d_kernels<T>(s).forward(s, x, w, bias, y);
}

/// dx = gradient with respect to x, for the gradient dy of y. Overwrites dx.
template <class T>
void conv2d_backward_data(const Conv2dShape& s, const T* dy, const T* w, T* dx) {
  detail::conv2d_kernels<T>(s).backward_data(s, dy, w, dx);
}

/// dw = gradient with respect to w, for the gradient dy of y. Overwrites dw; an empty batch gives zeros.
template <class T>
void conv2d_backward_weight(const Conv2dShape& s, const T* x, const T* dy, T* dw) {
  detail::conv2d_kernels<T>(s).backward_weight(s, x, dy, dw);
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
