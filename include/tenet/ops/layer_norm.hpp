// Layer normalization. Ba, Kiros and Hinton, "Layer normalization", 2016.
#pragma once

#include <tenet/kernels/cpu/layer_norm.hpp>
#include <tenet/ops/statistics.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace detail {

struct LayerNormOptions {
  int dims;  // that are normalized over: the last ones
  double eps;
};

}  // namespace detail

namespace op {

struct LayerNorm {
  static constexpr const char* name = "layer_norm";
  using Options = detail::LayerNormOptions;

  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b, const Options& o) {
    ctx.keep(x);
    ctx.keep(w, ctx.wants(0));
    const Rows rows(x.shape(), o);
    const Tensor<T> mean = empty<T>({rows.count}), rstd = empty<T>({rows.count});
    ctx.keep(mean);
    ctx.keep(rstd);
    const Tensor<T> weight = weights(w, rows), bias = b ? packed(b) : zeros<T>({rows.size});
    Tensor<T> y = empty<T>(x.shape());
    cpu::layer_norm<T>(rows.count, rows.size, packed(x).data(), weight.data(), bias.data(), o.eps, mean.data(),
                       rstd.data(), y.data());
    return y;
  }

  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const auto& o = grad.options<Options>();
    const Tensor<T> x = grad.kept<T>(0), w = grad.kept<T>(1), mean = grad.kept<T>(2), rstd = grad.kept<T>(3);
    if (is_grad_enabled()) return recorded(grad, g, x, w, o);
    const Rows rows(x.shape(), o);
    Dims last;
    for (int d = x.dim() - o.dims; d < x.dim(); ++d) last.push_back(x.shape()[d]);
    const Tensor<T> dw = empty<T>(last), db = empty<T>(last), dx = grad.wants(0) ? empty<T>(x.shape()) : Tensor<T>();
    cpu::layer_norm_backward<T>(rows.count, rows.size, packed(x).data(), weights(w, rows).data(), mean.data(),
                                rstd.data(), packed(g).data(), dx ? dx.data() : nullptr, dw.data(), db.data());
    if (grad.wants(0)) grad[0] = dx;
    if (grad.wants(1)) grad[1] = dw;
    if (grad.wants(2)) grad[2] = db;
  }

 private:
  struct Rows {
    std::int64_t count = 1, size = 1;
    Rows(const Shape& x, const Options& o) {
      for (int d = 0; d < x.size(); ++d) (d < x.size() - o.dims ? count : size) *= x[d];
    }
  };
  template <class T>
  static Tensor<T> weights(const Tensor<T>& w, const Rows& rows) {
    return w ? packed(w) : ones<T>({rows.size});
  }

  /// The gradients written with operations, which can be differentiated again.
  template <class T>
  static void recorded(Grad grad, const Tensor<T>& g, const Tensor<T>& x, const Tensor<T>& w, const Options& o) {
    Dims last;
    for (int d = x.dim() - o.dims; d < x.dim(); ++d) last.push_back(d);
    const Tensor<T> d = x - mean(x, last, true), over = rsqrt(mean(d * d, last, true) + T(o.eps)), h = d * over;
    if (grad.wants(1)) grad[1] = g * h;
    if (grad.wants(2)) grad[2] = g;
    if (!grad.wants(0)) return;
    const Tensor<T> scaled = w ? g * w : g;
    grad[0] = over * (scaled - mean(scaled, last, true) - h * mean(scaled * h, last, true));
  }
};

}  // namespace op

/// Normalizes `x` [..., normalized_shape] over its last dimensions: (x - mean) / sqrt(variance + eps) * weight + bias,
/// with the (biased) variance. weight and bias, of normalized_shape, may be undefined. Half and bfloat16 are computed
/// in float. Throws ShapeError for sizes that do not fit and for an empty normalized_shape.
/// See torch.nn.functional.layer_norm.
template <TensorLike X>
tensor_t<X> layer_norm(const X& x, const Shape& normalized_shape, const tensor_t<X>& weight = {},
                       const tensor_t<X>& bias = {}, double eps = 1e-5) {
  using T = element_t<X>;
  using C = cpu::compute_t<T>;
  static_assert(FloatElement<T>, "layer_norm of integers: convert to a floating type first, as to<float>(x)");
  const int dims = normalized_shape.size(), leading = x.dim() - dims;
  bool fits = dims > 0 && leading >= 0;
  for (int d = 0; fits && d < dims; ++d) fits = x.shape()[leading + d] == normalized_shape[d];
  if (!fits) {
    throw ShapeError(text({"layer_norm: expected an input that ends in ", normalized_shape, ", got ", x.shape()}));
  }
  for (const Tensor<T>* t : {&weight, &bias}) {
    if (t->defined() && !(t->shape() == normalized_shape)) {
      throw ShapeError(text({"layer_norm: expected a weight and a bias ", normalized_shape, ", got ", t->shape()}));
    }
  }
  const detail::LayerNormOptions options{dims, eps};
  if constexpr (std::is_same_v<C, T>) {
    return apply<op::LayerNorm>(static_cast<const Tensor<T>&>(x), weight, bias, options);
  } else {
    const auto wide = [](const Tensor<T>& t) { return t ? to<C>(t) : Tensor<C>(); };
    return to<T>(apply<op::LayerNorm>(to<C>(x), wide(weight), wide(bias), options));
  }
}

}  // namespace TENET_CONFIG
}  // namespace tenet
