// expand and its inverse, sum_to: the two sides of broadcasting, each the gradient of the other.
#pragma once

#include <tenet/kernels/cpu/copy.hpp>
#include <tenet/kernels/cpu/reduce.hpp>
#include <tenet/ops/apply.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace op {

struct Expand {
  static constexpr const char* name = "expand";
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& x, Shape shape) {
    Tensor<T> y(make_alias(*x.impl(), shape, broadcast_strides(x.shape(), x.strides(), shape), 0));
    y.impl()->is_view = true;
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = sum_to(g, grad.input_shape(0));
  }
};

struct SumTo {
  static constexpr const char* name = "sum_to";
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& x, Shape shape) {
    const int lead = x.dim() - shape.size();
    Tensor<T> y = empty<T>(shape);
    if (x.numel() == shape.numel()) {  // nothing to add up
      cpu::copy<T, T>(shape.size(), shape.data(), target(y), {x.data(), x.strides().data() + lead});
      return y;
    }
    std::uint32_t reduced = 0;
    for (int i = 0; i < x.dim(); ++i) {
      if (i < lead || shape[i - lead] != x.shape()[i]) reduced |= 1u << i;
    }
    cpu::reduce(cpu::Sum{}, x.dim(), x.shape().data(), source(x), reduced, y.data());
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<Expand>(g, grad.input_shape(0));
  }
};

}  // namespace op

/// A view of `x` in which dimensions of size 1 repeat to the given sizes; -1 keeps a size, new dimensions may
/// be added in front. Throws ShapeError if a size is neither. See torch.Tensor.expand.
template <TensorLike X>
tensor_t<X> expand(const X& x, const Dims& sizes) {
  Dims to = sizes;
  const int lead = sizes.size() - x.dim();
  if (lead < 0)
    throw ShapeError(text({"expand: expected at least ", x.dim(), " sizes for ", x.shape(), ", got ", sizes}));
  for (int i = 0; i < to.size(); ++i) {
    if (i >= lead && to[i] == -1) to[i] = x.shape()[i - lead];
    if (to[i] < 0 || (i >= lead && x.shape()[i - lead] != 1 && x.shape()[i - lead] != to[i])) {
      throw ShapeError(text({"expand: cannot expand ", x.shape(), " to ", sizes}));
    }
  }
  return apply<op::Expand>(static_cast<const tensor_t<X>&>(x), Shape(to));
}

/// The sums of `x` over the dimensions along which `shape` was broadcast to x.shape(). Throws ShapeError if
/// `shape` does not broadcast to it.
template <TensorLike X>
tensor_t<X> sum_to(const X& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  if (!(broadcast_shapes("sum_to", x.shape(), shape) == x.shape())) {
    throw ShapeError(text({"sum_to: ", shape, " does not broadcast to ", x.shape()}));
  }
  return apply<op::SumTo>(static_cast<const tensor_t<X>&>(x), shape);
}

}  // namespace TENET_CONFIG
}  // namespace tenet

#include <tenet/ops/grad_math.hpp>  // for backward(); needs the operations above
