// Two-dimensional convolution and its two gradients, on contiguous NCHW memory.
#pragma once

#include <tenet/kernels/cpu/conv2d_reference.hpp>
#include <tenet/kernels/cpu/gemm.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// y [n, o, oh, ow] = conv2d(x [n, c, h, w], w [o, c / groups, kh, kw]) + bias [o] (may be null).
template <class T>
void conv2d_forward(const Conv2dShape& s, const T* x, const T* w, const T* bias, T* y) {
  conv2d_forward_reference(s, x, w, bias, y);
}

/// dx = gradient with respect to x, for the gradient dy of y. Overwrites dx.
template <class T>
void conv2d_backward_data(const Conv2dShape& s, const T* dy, const T* w, T* dx) {
  conv2d_backward_data_reference(s, dy, w, dx);
}

/// dw = gradient with respect to w, for the gradient dy of y. Overwrites dw; an empty batch gives zeros.
template <class T>
void conv2d_backward_weight(const Conv2dShape& s, const T* x, const T* dy, T* dw) {
  conv2d_backward_weight_reference(s, x, dy, dw);
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
