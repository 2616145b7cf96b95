// Views of a whole tensor in another shape or order of dimensions: view, reshape, flatten, squeeze, permute,
// transpose and their relatives. Parts of a tensor: ops/slice.hpp; expand: ops/broadcast.hpp.
#pragma once

#include <tenet/ops/slice.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace detail {

/// Strides that show a tensor in shape `to`, of as many elements; whether there are any.
TENET_NOINLINE inline bool view_strides(const Shape& from, const Strides& strides, const Shape& to, Strides& out) {
  out = contiguous_strides(to);
  if (from.contains(0)) return true;
  // From the back: dimensions that lie without gaps form a run, which is handed out to the new dimensions.
  std::int64_t run = 1, step = 1;
  int next = from.size() - 1;
  for (int d = to.size() - 1; d >= 0; --d) {
    if (to[d] != 1 && run == 1) {
      while (from[next] == 1) --next;
      step = strides[next];
      run = from[next--];
      for (; next >= 0 && (from[next] == 1 || strides[next] == step * run); --next) run *= from[next];
    }
    if (run % to[d] != 0) return false;
    out[d] = step;
    step *= to[d];
    run /= to[d];
  }
  return true;
}

/// `sizes` with a -1 replaced by what makes them hold `shape`'s elements.
inline Shape infer_sizes(const char* op, const Shape& shape, const Dims& sizes) {
  Dims known = sizes;
  int unknown = -1;
  for (int i = 0; i < sizes.size(); ++i) {
    if (sizes[i] >= 0) continue;
    if (sizes[i] != -1 || unknown >= 0) {
      throw ShapeError(text({op, ": expected sizes of at least 0 and at most one -1, got ", sizes}));
    }
    unknown = i;
    known[i] = 1;
  }
  const std::int64_t have = shape.numel(), want = Shape(known).numel();
  if (unknown >= 0 && want == 0 && have == 0) {
    throw ShapeError(text({op, ": cannot tell the -1 of ", sizes, " for ", shape, ": any size holds 0 elements"}));
  }
  if (unknown >= 0 ? want == 0 || have % want != 0 : have != want) {
    throw ShapeError(text({op, ": cannot see ", shape, ", ", have, " elements, as ", sizes}));
  }
  if (unknown >= 0) known[unknown] = have / want;
  return known;
}

TENET_NOINLINE inline Shape flat_shape(const Shape& shape, std::int64_t start_dim, std::int64_t end_dim) {
  const int start = wrap_dim("flatten", start_dim, shape.size()), end = wrap_dim("flatten", end_dim, shape.size());
  if (start > end) {
    throw IndexError(
        text({"flatten: expected start_dim before end_dim, got ", start_dim, " and ", end_dim, " for ", shape}));
  }
  if (shape.empty()) return {1};
  Dims flat = shape;
  for (int i = start; i < end; ++i) {
    flat[start] *= flat[start + 1];
    flat.erase(start + 1);
  }
  return flat;
}

inline Shape unflat_shape(const Shape& shape, std::int64_t dim, const Dims& sizes) {
  const int d = part_dim("unflatten", shape, dim);
  Dims to = shape;
  to.erase(d);
  int at = d;
  for (std::int64_t n : infer_sizes("unflatten", {shape[d]}, sizes)) to.insert(at++, n);
  return to;
}

/// The order of dimensions in which `dim0` and `dim1` change places.
TENET_NOINLINE inline Dims swapped(const Shape& shape, std::int64_t dim0, std::int64_t dim1) {
  const int a = wrap_dim("transpose", dim0, shape.size()), b = wrap_dim("transpose", dim1, shape.size());
  Dims order;
  for (int i = 0; i < shape.size(); ++i) order.push_back(i == a ? b : i == b ? a : i);
  return order;
}

/// `dims` counted from the front; throws unless they name every dimension once.
inline Dims permutation(const Shape& shape, const Dims& dims) {
  Dims order;
  for (std::int64_t dim : dims) {
    const int d = wrap_dim("permute", dim, shape.size());
    if (order.contains(d)) throw ShapeError(text({"permute: expected every dimension once, got ", dims}));
    order.push_back(d);
  }
  if (order.size() != shape.size()) {
    throw ShapeError(text({"permute: expected ", shape.size(), " dimensions for ", shape, ", got ", dims}));
  }
  return order;
}

}  // namespace detail

namespace op {

struct View {
  static constexpr const char* name = "view";
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& x, Shape shape) {
    Strides strides;
    if (!detail::view_strides(x.shape(), x.strides(), shape, strides)) {
      throw ShapeError(text({"view: cannot see shape ", x.shape(), " with strides ", x.strides(), " as ", shape,
                             " without a copy; use reshape"}));
    }
    return Tensor<T>(detail::make_view(*x.impl(), shape, strides, 0));
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = reshape_to(g, grad.input_shape(0));
  }
  /// A view of `x` in a shape of as many elements, or of a copy where there is none.
  template <class T>
  static Tensor<T> reshape_to(const Tensor<T>& x, const Shape& shape) {
    Strides strides;
    return apply<View>(detail::view_strides(x.shape(), x.strides(), shape, strides) ? x : tenet::clone(x), shape);
  }
};

struct Permute {
  static constexpr const char* name = "permute";
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& x, Dims order) {
    Dims shape;
    Strides strides;
    for (std::int64_t d : order) {
      shape.push_back(x.shape()[int(d)]);
      strides.push_back(x.strides()[int(d)]);
    }
    return Tensor<T>(detail::make_view(*x.impl(), shape, strides, 0));
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const Dims& order = grad.options<Dims>();
    Dims inverse = order;
    for (int i = 0; i < order.size(); ++i) inverse[int(order[i])] = i;
    grad[0] = apply<Permute>(g, std::move(inverse));
  }
};

}  // namespace op

/// A view of `x` with the given sizes, of which one may be -1: what is left for it. Throws ShapeError if the number
/// of elements differs, if the -1 could be anything (no element, another size 0), or if the elements lie so that
/// only a copy has that shape. See torch.Tensor.view.
template <TensorLike X>
tensor_t<X> view(const X& x, const Dims& sizes) {
  return apply<op::View>(static_cast<const tensor_t<X>&>(x), detail::infer_sizes("view", x.shape(), sizes));
}

/// As view, but of a copy where a view cannot be. See torch.reshape.
template <TensorLike X>
tensor_t<X> reshape(const X& x, const Dims& sizes) {
  return op::View::reshape_to(static_cast<const tensor_t<X>&>(x), detail::infer_sizes("reshape", x.shape(), sizes));
}

/// Dimensions `start_dim` to `end_dim`, both included, become one; a scalar becomes [1]. A view if there is one,
/// else a copy. Throws IndexError on a wrong dimension. See torch.flatten.
template <TensorLike X>
tensor_t<X> flatten(const X& x, std::int64_t start_dim = 0, std::int64_t end_dim = -1) {
  return op::View::reshape_to(static_cast<const tensor_t<X>&>(x), detail::flat_shape(x.shape(), start_dim, end_dim));
}

/// Dimension `dim` becomes several of `sizes`, of which one may be -1. A view. Throws ShapeError if they do not
/// multiply to its size. See torch.unflatten.
template <TensorLike X>
tensor_t<X> unflatten(const X& x, std::int64_t dim, const Dims& sizes) {
  return apply<op::View>(static_cast<const tensor_t<X>&>(x), detail::unflat_shape(x.shape(), dim, sizes));
}

/// A view without the dimensions of size 1.
template <TensorLike X>
tensor_t<X> squeeze(const X& x) {
  Dims shape;
  for (std::int64_t n : x.shape()) {
    if (n != 1) shape.push_back(n);
  }
  return apply<op::View>(static_cast<const tensor_t<X>&>(x), Shape(shape));
}

/// A view without dimension `dim`, if its size is 1. Throws IndexError on a wrong dimension.
template <TensorLike X>
tensor_t<X> squeeze(const X& x, std::int64_t dim) {
  Dims shape = x.shape();
  const int d = wrap_dim("squeeze", dim, shape.size());
  if (d < shape.size() && shape[d] == 1) shape.erase(d);
  return apply<op::View>(static_cast<const tensor_t<X>&>(x), Shape(shape));
}

/// A view with a new dimension of size 1 at `dim`, in [-rank - 1, rank]. Throws IndexError outside.
template <TensorLike X>
tensor_t<X> unsqueeze(const X& x, std::int64_t dim) {
  Dims shape = x.shape();
  shape.insert(wrap_dim("unsqueeze", dim, shape.size() + 1), 1);
  return apply<op::View>(static_cast<const tensor_t<X>&>(x), Shape(shape));
}

/// A view whose dimension i is dimension dims[i] of `x`. Throws ShapeError unless every dimension is named once. See
/// torch.permute.
template <TensorLike X>
tensor_t<X> permute(const X& x, const Dims& dims) {
  return apply<op::Permute>(static_cast<const tensor_t<X>&>(x), detail::permutation(x.shape(), dims));
}

/// A view in which dimensions `dim0` and `dim1` change places. Throws IndexError on a wrong dimension.
template <TensorLike X>
tensor_t<X> transpose(const X& x, std::int64_t dim0, std::int64_t dim1) {
  return apply<op::Permute>(static_cast<const tensor_t<X>&>(x), detail::swapped(x.shape(), dim0, dim1));
}

/// The transpose of a matrix, a view; of fewer dimensions `x` itself. Throws ShapeError above 2 dimensions.
template <TensorLike X>
tensor_t<X> t(const X& x) {
  if (x.dim() > 2) throw ShapeError(text({"t: expected at most 2 dimensions, got ", x.shape()}));
  return x.dim() == 2 ? transpose(x, 0, 1) : tensor_t<X>(x);
}

/// A view in which dimension `source` stands at `destination`, the others in their order. Throws IndexError on a
/// wrong dimension. See torch.movedim.
template <TensorLike X>
tensor_t<X> movedim(const X& x, std::int64_t source, std::int64_t destination) {
  const int from = wrap_dim("movedim", source, x.dim()), to = wrap_dim("movedim", destination, x.dim());
  Dims order;
  for (int i = 0; i < x.dim(); ++i) order.push_back(i);
  if (x.dim() > 0) {
    order.erase(from);
    order.insert(to, from);
  }
  return apply<op::Permute>(static_cast<const tensor_t<X>&>(x), std::move(order));
}

}  // namespace TENET_CONFIG

template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::view(const Dims& sizes) const {
  return tenet::view(*this, sizes);
}
template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::reshape(const Dims& sizes) const {
  return tenet::reshape(*this, sizes);
}
template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::flatten(std::int64_t start_dim, std::int64_t end_dim) const {
  return tenet::flatten(*this, start_dim, end_dim);
}
template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::transpose(std::int64_t dim0, std::int64_t dim1) const {
  return tenet::transpose(*this, dim0, dim1);
}
template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::t() const {
  return tenet::t(*this);
}
template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::permute(const Dims& dims) const {
  return tenet::permute(*this, dims);
}
template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::squeeze() const {
  return tenet::squeeze(*this);
}
template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::squeeze(std::int64_t dim) const {
  return tenet::squeeze(*this, dim);
}
template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::unsqueeze(std::int64_t dim) const {
  return tenet::unsqueeze(*this, dim);
}
template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::expand(const Dims& sizes) const {
  return tenet::expand(*this, sizes);
}

}  // namespace tenet

#include <tenet/ops/grad_math.hpp>  // for backward(); needs the operations above
