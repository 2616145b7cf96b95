// 2-d max pooling. Forward keeps the place of each window's winner; the gradient goes there.
#pragma once

#include <tenet/kernels/cpu/pool2d.hpp>
#include <tenet/ops/grad_math.hpp>
#include <tenet/ops/pair.hpp>
#include <tenet/ops/view.hpp>

namespace tenet {

struct MaxPool2dOptions {
  Pair kernel_size = 2;
  Pair stride = 0;  ///< 0: the kernel's size
  Pair padding = 0;
  Pair dilation = 1;
  bool ceil_mode = false;  ///< also windows that reach over the end
};

inline namespace TENET_CONFIG {

namespace detail {

/// Where in its window each winner stands: cpu::tap_size() bytes each.
using Taps = Tensor<std::uint8_t>;

/// The geometry of a pooling of [n, c, h, w], all of it checked when it was made.
struct MaxPool2dGeometry {
  std::int64_t n, c;
  cpu::Pool2dShape s;
  Shape input() const { return {n, c, s.h, s.w}; }
  Shape output() const { return {n, c, s.oh, s.ow}; }
  Taps make_taps() const { return empty<std::uint8_t>({output().numel() * cpu::tap_size(s)}); }
};

inline MaxPool2dGeometry max_pool2d_geometry(const Shape& x, MaxPool2dOptions o) {
  constexpr const char* op = "max_pool2d";
  if (x.size() != 4) throw ShapeError(text({op, ": expected an input [n, c, h, w] or [c, h, w], got ", x}));
  if (o.stride == Pair(0)) o.stride = o.kernel_size;
  if (o.padding.h > o.kernel_size.h / 2 || o.padding.w > o.kernel_size.w / 2) {
    throw ShapeError(
        text({op, ": expected a padding of at most half the kernel ", o.kernel_size, ", got ", o.padding}));
  }
  MaxPool2dGeometry g{x[0], x[1], {}};
  g.s.planes = x[0] * x[1];
  g.s.h = x[2], g.s.w = x[3];
  g.s.kh = o.kernel_size.h, g.s.kw = o.kernel_size.w;
  g.s.stride_h = o.stride.h, g.s.stride_w = o.stride.w;
  g.s.pad_h = o.padding.h, g.s.pad_w = o.padding.w;
  g.s.dil_h = o.dilation.h, g.s.dil_w = o.dilation.w;
  g.s.oh = window_outputs(op, g.s.h, g.s.kh, g.s.stride_h, g.s.pad_h, g.s.dil_h, o.ceil_mode);
  g.s.ow = window_outputs(op, g.s.w, g.s.kw, g.s.stride_w, g.s.pad_w, g.s.dil_w, o.ceil_mode);
  if (g.s.kh > std::numeric_limits<std::int32_t>::max() / g.s.kw) {
    throw ShapeError(text({op, ": expected a kernel of fewer than 2^31 elements, got ", o.kernel_size}));
  }
  // Taps further apart than the image is wide can miss it on both sides.
  if ((g.s.pad_h && g.s.dil_h > g.s.h) || (g.s.pad_w && g.s.dil_w > g.s.w)) {
    throw ShapeError(
        text({op, ": a window of ", o.kernel_size, ", dilated by ", o.dilation, ", sees only padding of input ", x}));
  }
  return g;
}

}  // namespace detail

namespace op {

/// The elements at the winners' places. With MaxPool2dScatter a pair of linear operations, each the gradient of the
/// other.
struct MaxPool2dGather;

/// Zeros but for the winners' places.
struct MaxPool2dScatter {
  static constexpr const char* name = "max_pool2d_scatter";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& g, const detail::Taps& taps,
                           const detail::MaxPool2dGeometry& geometry) {
    ctx.keep(taps);
    Tensor<T> dx = empty<T>(geometry.input());
    cpu::max_pool2d_backward(geometry.s, packed(g).data(), taps.data(), dx.data());
    return dx;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& ddx) {
    grad[0] = apply<MaxPool2dGather>(ddx, grad.kept<std::uint8_t>(0), grad.options<detail::MaxPool2dGeometry>());
  }
};

struct MaxPool2dGather {
  static constexpr const char* name = "max_pool2d_gather";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, const detail::Taps& taps,
                           const detail::MaxPool2dGeometry& geometry) {
    ctx.keep(taps);
    Tensor<T> y = empty<T>(geometry.output());
    cpu::max_pool2d_gather(geometry.s, packed(x).data(), taps.data(), y.data());
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<MaxPool2dScatter>(g, grad.kept<std::uint8_t>(0), grad.options<detail::MaxPool2dGeometry>());
  }
};

struct MaxPool2d {
  static constexpr const char* name = "max_pool2d";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, const detail::MaxPool2dGeometry& geometry) {
    Tensor<T> y = empty<T>(geometry.output());
    const detail::Taps taps = ctx.recording() ? geometry.make_taps() : detail::Taps();
    cpu::max_pool2d_forward(geometry.s, packed(x).data(), y.data(), taps ? taps.data() : nullptr);
    ctx.keep(taps);
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<MaxPool2dScatter>(g, grad.kept<std::uint8_t>(0), grad.options<detail::MaxPool2dGeometry>());
  }
};

}  // namespace op

/// The greatest element of each window of `x` [n, c, h, w] (or [c, h, w]): [n, c, oh, ow]. Padding counts as less
/// than everything; NaN counts as more; of equal elements the first gets the gradient. Throws ShapeError where
/// the sizes do not fit, the padding is more than half the kernel, or a window sees padding only. See
/// torch.nn.functional.max_pool2d.
template <TensorLike X>
tensor_t<X> max_pool2d(const X& x, const MaxPool2dOptions& options) {
  using T = element_t<X>;
  if (x.dim() == 3) return squeeze(max_pool2d(unsqueeze(x, 0), options), 0);
  const auto geometry = detail::max_pool2d_geometry(x.shape(), options);
  return apply<op::MaxPool2d>(static_cast<const Tensor<T>&>(x), geometry);
}

}  // namespace TENET_CONFIG
}  // namespace tenet
