// Convolutions of half precision with results of float.
#pragma once

#include <tenet/kernels/cpu/conv2d.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

namespace detail {

// Whether products of pairs of bfloat16 are faster than what the convolution of float does instead.
inline bool pairs_pay(const Conv2dShape& s) {
  return has_dots(Dots::bfloat16) && nothing_empty(s) && is_wide(s) && !winograd_pays(s);
}

// f(a, b) on copies of float.
template <class T, class F>
void with_widened(int64_t a_size, const T* a, int64_t b_size, const T* b, F f) {
  float* const wide_a = scratch<float>(Scratch::conv_widened, a_size + b_size);
  float* const wide_b = wide_a + a_size;
  convert_all(a_size, wide_a, a);
  convert_all(b_size, wide_b, b);
  f(static_cast<const float*>(wide_a), static_cast<const float*>(wide_b));
}

}  // namespace detail

/// conv2d_forward of x and w in half or bfloat16: products are exact, sums and results float.
template <class T>
void conv2d_forward_low(const Conv2dShape& s, const T* x, const T* w, const float* bias, float* y) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (detail::pairs_pay(s)) {
      return is_pointwise(s) ? conv2d_forward_pointwise(s, x, w, bias, y) : conv2d_forward_columns(s, x, w, bias, y);
    }
  }
  const detail::Conv2dSizes size(s);
  detail::with_widened(size.x, x, size.w, w, [&](const float* a, const float* b) { conv2d_forward(s, a, b, bias, y); });
}

/// The same of conv2d_backward_data.
template <class T>
void conv2d_backward_data_low(const Conv2dShape& s, const T* dy, const T* w, float* dx) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (detail::pairs_pay(s)) {
      return is_pointwise(s) ? conv2d_backward_data_pointwise(s, dy, w, dx)
                             : conv2d_backward_data_columns(s, dy, w, dx);
    }
  }
  const detail::Conv2dSizes size(s);
  detail::with_widened(size.y, dy, size.w, w,
                       [&](const float* a, const float* b) { conv2d_backward_data(s, a, b, dx); });
}

/// The same of conv2d_backward_weight.
template <class T>
void conv2d_backward_weight_low(const Conv2dShape& s, const T* x, const T* dy, float* dw) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (detail::pairs_pay(s)) return conv2d_backward_weight_columns(s, x, dy, dw);
  }
  const detail::Conv2dSizes size(s);
  detail::with_widened(size.x, x, size.y, dy,
                       [&](const float* a, const float* b) { conv2d_backward_weight(s, a, b, dw); });
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
