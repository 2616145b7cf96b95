// 2-d convolution. Its three operations (output, gradient of the input, gradient of the weight) are each
// other's gradients, so that gradients of any order exist.
#pragma once

#include <tenet/kernels/cpu/conv2d.hpp>
#include <tenet/ops/autocast.hpp>
#include <tenet/ops/grad_math.hpp>
#include <tenet/ops/pair.hpp>
#include <tenet/ops/view.hpp>

namespace tenet {

struct Conv2dOptions {
  Pair stride = 1;
  Pair padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
};

inline namespace TENET_CONFIG {

namespace detail {

/// The geometry of a convolution, all of it checked when it was made.
using Conv2dShape = cpu::Conv2dShape;

inline Conv2dShape conv2d_shape(const Shape& x, const Shape& w, const Conv2dOptions& o) {
  if (w.size() != 4) throw ShapeError(text({"conv2d: expected a weight [out, in / groups, kh, kw], got ", w}));
  if (x.size() != 4) throw ShapeError(text({"conv2d: expected an input [n, c, h, w] or [c, h, w], got ", x}));
  if (o.groups < 1 || w[0] % o.groups) {
    throw ShapeError(text({"conv2d: ", w[0], " output channels cannot be split into ", o.groups, " groups"}));
  }
  if (x[1] % o.groups || x[1] / o.groups != w[1]) {
    const std::string each = o.groups == 1 ? "" : text({" for each of ", o.groups, " groups"});
    throw ShapeError(text({"conv2d: expected ", w[1], " input channels", each, ", got input ", x}));
  }
  Conv2dShape s;
  s.n = x[0], s.c = x[1], s.h = x[2], s.w = x[3];
  s.o = w[0], s.kh = w[2], s.kw = w[3];
  s.stride_h = o.stride.h, s.stride_w = o.stride.w;
  s.pad_h = o.padding.h, s.pad_w = o.padding.w;
  s.dil_h = o.dilation.h, s.dil_w = o.dilation.w;
  s.groups = o.groups;
  s.oh = window_outputs("conv2d", s.h, s.kh, s.stride_h, s.pad_h, s.dil_h);
  s.ow = window_outputs("conv2d", s.w, s.kw, s.stride_w, s.pad_w, s.dil_w);
  return s;
}

inline Shape input_shape(const Conv2dShape& s) { return {s.n, s.c, s.h, s.w}; }
inline Shape weight_shape(const Conv2dShape& s) { return {s.o, s.c / s.groups, s.kh, s.kw}; }
inline Shape output_shape(const Conv2dShape& s) { return {s.n, s.o, s.oh, s.ow}; }

}  // namespace detail

namespace op {

struct Conv2dInputGrad;
struct Conv2dWeightGrad;

struct Conv2d {
  static constexpr const char* name = "conv2d";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b,
                           const detail::Conv2dShape& s) {
    ctx.keep(x, ctx.wants(1));
    ctx.keep(w, ctx.wants(0));
    Tensor<T> y = empty<T>(detail::output_shape(s));
    const Tensor<T> bias = b ? packed(b) : b;
    cpu::conv2d_forward(s, packed(x).data(), packed(w).data(), bias ? bias.data() : nullptr, y.data());
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const auto& s = grad.options<detail::Conv2dShape>();
    if (grad.wants(0)) grad[0] = apply<Conv2dInputGrad>(g, grad.kept<T>(1), s);
    if (grad.wants(1)) grad[1] = apply<Conv2dWeightGrad>(grad.kept<T>(0), g, s);
    if (grad.wants(2)) grad[2] = reshape(sum_to(g, {1, s.o, 1, 1}), {s.o});
  }
};

/// dx, from the gradient of the output and the weight: the convolution turned around.
struct Conv2dInputGrad {
  static constexpr const char* name = "conv2d_input_grad";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& g, const Tensor<T>& w, const detail::Conv2dShape& s) {
    ctx.keep(g, ctx.wants(1));
    ctx.keep(w, ctx.wants(0));
    Tensor<T> dx = empty<T>(detail::input_shape(s));
    cpu::conv2d_backward_data(s, packed(g).data(), packed(w).data(), dx.data());
    return dx;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& ddx) {
    const auto& s = grad.options<detail::Conv2dShape>();
    if (grad.wants(0)) grad[0] = apply<Conv2d>(ddx, grad.kept<T>(1), Tensor<T>(), s);
    if (grad.wants(1)) grad[1] = apply<Conv2dWeightGrad>(ddx, grad.kept<T>(0), s);
  }
};

/// dw, from the input and the gradient of the output.
struct Conv2dWeightGrad {
  static constexpr const char* name = "conv2d_weight_grad";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, const Tensor<T>& g, const detail::Conv2dShape& s) {
    ctx.keep(x, ctx.wants(1));
    ctx.keep(g, ctx.wants(0));
    Tensor<T> dw = empty<T>(detail::weight_shape(s));
    cpu::conv2d_backward_weight(s, packed(x).data(), packed(g).data(), dw.data());
    return dw;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& ddw) {
    const auto& s = grad.options<detail::Conv2dShape>();
    if (grad.wants(0)) grad[0] = apply<Conv2dInputGrad>(grad.kept<T>(1), ddw, s);
    if (grad.wants(1)) grad[1] = apply<Conv2d>(grad.kept<T>(0), ddw, Tensor<T>(), s);
  }
};

}  // namespace op

/// Slides `weight` [out, in / groups, kh, kw] over `x` [n, in, h, w] (or [in, h, w]) and adds `bias` [out] if it
/// is defined: [n, out, oh, ow], with oh = (h + 2 padding - dilation (kh - 1) - 1) / stride + 1, rounded down.
/// Throws ShapeError where the sizes do not fit. See torch.nn.functional.conv2d.
template <TensorLike X, TensorLike W, TensorLike B = Tensor<element_t<X>>>
tensor_t<X> conv2d(const X& x, const W& weight, const B& bias = {}, const Conv2dOptions& options = {}) {
  using T = element_t<X>;
  if (x.dim() == 3) return squeeze(conv2d(unsqueeze(x, 0), weight, bias, options), 0);
  const auto s = detail::conv2d_shape(x.shape(), weight.shape(), options);
  if (bias && !(bias.shape() == Shape{s.o})) {
    throw ShapeError(text({"conv2d: expected a bias [", s.o, "], got ", bias.shape()}));
  }
  if constexpr (std::is_same_v<T, float>) {
    if (state::autocast) return state::autocast->conv2d(x, weight, bias, options);
  }
  return apply<op::Conv2d>(static_cast<const Tensor<T>&>(x), static_cast<const Tensor<T>&>(weight),
                           static_cast<const Tensor<T>&>(bias), s);
}

}  // namespace TENET_CONFIG
}  // namespace tenet
