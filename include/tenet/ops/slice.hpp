// Views of a part of a tensor: select, narrow, slice, diagonal, and the lists of parts unbind, split, chunk.
//
// All are one operation, Slice. Its gradient lays g into zeros (SliceGrad), whose gradient is the slice again.
#pragma once

#include <tenet/ops/copy.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace detail {

/// A view of `base`: the memory is shared, and seen by autograd as such. No element, no offset.
inline ImplRef make_view(const TensorImpl& base, const Shape& shape, const Strides& strides, std::int64_t offset) {
  ImplRef y = make_alias(base, shape, strides, shape.contains(0) ? 0 : offset);
  y->is_view = true;
  return y;
}

/// Which part of a tensor: `length` elements of dimension `dim`, from `start` on, `step` apart. On a diagonal
/// dimension `second` moves along, from `second_start` on, and both become one dimension, the last.
struct Part {
  int dim;
  std::int64_t start, step, length;
  bool drop = false;  // the dimension goes, of select
  int second = -1;
  std::int64_t second_start = 0;
};

/// The part of `x` as a view.
inline ImplRef view_part(const TensorImpl& x, const Part& p) {
  Dims shape = x.shape;
  Strides strides = x.strides;
  std::int64_t offset = p.start * strides[p.dim];
  if (p.second >= 0) {
    offset += p.second_start * strides[p.second];
    shape.push_back(p.length);
    strides.push_back(strides[p.dim] + strides[p.second]);
    for (int gone : {std::max(p.dim, p.second), std::min(p.dim, p.second)}) {
      shape.erase(gone);
      strides.erase(gone);
    }
  } else if (p.drop) {
    shape.erase(p.dim);
    strides.erase(p.dim);
  } else {
    shape[p.dim] = p.length;
    strides[p.dim] *= p.step;
  }
  return make_view(x, shape, strides, offset);
}

/// wrap_dim, for operations that need a dimension to work on.
inline int part_dim(const char* op, const Shape& shape, std::int64_t dim) {
  if (shape.empty()) throw ShapeError(text({op, ": expected at least one dimension, got a scalar"}));
  return wrap_dim(op, dim, shape.size());
}

inline Part select_part(const Shape& shape, std::int64_t dim, std::int64_t index) {
  const int d = part_dim("select", shape, dim);
  const std::int64_t n = shape[d];
  if (index < -n || index >= n) {
    throw IndexError(text(
        {"select: expected an index in [", -n, ", ", n - 1, "] of dimension ", d, " of ", shape, ", got ", index}));
  }
  return {.dim = d, .start = index < 0 ? index + n : index, .step = 1, .length = 1, .drop = true};
}

inline Part narrow_part(const Shape& shape, std::int64_t dim, std::int64_t start, std::int64_t length) {
  const int d = part_dim("narrow", shape, dim);
  const std::int64_t n = shape[d];
  if (start < -n || start > n) {
    throw IndexError(
        text({"narrow: expected a start in [", -n, ", ", n, "] of dimension ", d, " of ", shape, ", got ", start}));
  }
  if (start < 0) start += n;
  if (length < 0 || length > n - start) {
    throw ShapeError(text({"narrow: expected a length in [0, ", n - start, "] from ", start, " on along dimension ", d,
                           " of ", shape, ", got ", length}));
  }
  return {.dim = d, .start = start, .step = 1, .length = length};
}

inline Part slice_part(const Shape& shape, std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step) {
  const int d = part_dim("slice", shape, dim);
  if (step < 1) throw Error(text({"slice: expected a step of at least 1, got ", step}));
  const std::int64_t n = shape[d];
  const auto clamp = [n](std::int64_t i) { return i < 0 ? std::max<std::int64_t>(i + n, 0) : std::min(i, n); };
  start = clamp(start);
  const std::int64_t length = std::max<std::int64_t>(clamp(end) - start, 0);
  const std::int64_t count = length / step + (length % step != 0);
  return {.dim = d, .start = start, .step = count > 1 ? step : 1, .length = count};
}

inline Part diagonal_part(const Shape& shape, std::int64_t offset, std::int64_t dim1, std::int64_t dim2) {
  if (shape.size() < 2) throw ShapeError(text({"diagonal: expected at least 2 dimensions, got ", shape}));
  const int a = wrap_dim("diagonal", dim1, shape.size()), b = wrap_dim("diagonal", dim2, shape.size());
  if (a == b) throw ShapeError(text({"diagonal: expected two different dimensions, got ", dim1, " and ", dim2}));
  // Outside the matrix the diagonal is empty, however far.
  const std::int64_t down = offset < 0 ? (offset < -shape[a] ? shape[a] : -offset) : 0;
  const std::int64_t right = offset > 0 ? std::min(offset, shape[b]) : 0;
  const std::int64_t length = std::min(shape[a] - down, shape[b] - right);
  return {.dim = a, .start = down, .step = 1, .length = length, .second = b, .second_start = right};
}

/// A part, and the shape of the tensor it is a part of.
struct PartOf {
  Shape shape;
  Part part;
};

}  // namespace detail

namespace op {

struct SliceGrad;

struct Slice {
  static constexpr const char* name = "slice";
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& x, detail::Part part) {
    return Tensor<T>(detail::view_part(*x.impl(), part));
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<SliceGrad>(g, detail::PartOf{grad.input_shape(0), grad.options<detail::Part>()});
  }
};

/// Zeros with `g` in the place of a part.
struct SliceGrad {
  static constexpr const char* name = "slice_grad";
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& g, detail::PartOf of) {
    Tensor<T> y = zeros<T>(of.shape);
    const ImplRef to = detail::view_part(*y.impl(), of.part);
    cpu::copy<T, T>(g.dim(), g.shape().data(), target(Tensor<T>(to)), source(g));
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& gg) {
    grad[0] = apply<Slice>(gg, grad.options<detail::PartOf>().part);
  }
};

}  // namespace op

/// The sub-tensor at `index` of dimension `dim`, which goes; negative ones count from the end. A view. Throws
/// IndexError outside, ShapeError on a scalar. See torch.select.
template <TensorLike X>
tensor_t<X> select(const X& x, std::int64_t dim, std::int64_t index) {
  return apply<op::Slice>(static_cast<const tensor_t<X>&>(x), detail::select_part(x.shape(), dim, index));
}

/// `length` entries of dimension `dim` from `start` on; a negative start counts from the end. A view. Throws
/// IndexError or ShapeError if they are not all inside. See torch.narrow.
template <TensorLike X>
tensor_t<X> narrow(const X& x, std::int64_t dim, std::int64_t start, std::int64_t length) {
  return apply<op::Slice>(static_cast<const tensor_t<X>&>(x), detail::narrow_part(x.shape(), dim, start, length));
}

/// x[start:end:step] of dimension `dim`, as in Python: negative positions count from the end, all are clamped to
/// the tensor. A view. Throws Error if step < 1.
template <TensorLike X>
tensor_t<X> slice(const X& x, std::int64_t dim, std::int64_t start = 0,
                  std::int64_t end = std::numeric_limits<std::int64_t>::max(), std::int64_t step = 1) {
  return apply<op::Slice>(static_cast<const tensor_t<X>&>(x), detail::slice_part(x.shape(), dim, start, end, step));
}

/// The diagonal of the matrices of dimensions `dim1` and `dim2`, as the last dimension in place of both; `offset`
/// > 0 is above the main diagonal, < 0 below. A view. Throws ShapeError below 2 dimensions or if dim1 is dim2. See
/// torch.diagonal.
template <TensorLike X>
tensor_t<X> diagonal(const X& x, std::int64_t offset = 0, std::int64_t dim1 = 0, std::int64_t dim2 = 1) {
  return apply<op::Slice>(static_cast<const tensor_t<X>&>(x), detail::diagonal_part(x.shape(), offset, dim1, dim2));
}

/// select(x, dim, 0), select(x, dim, 1), ...
template <TensorLike X>
std::vector<tensor_t<X>> unbind(const X& x, std::int64_t dim = 0) {
  const int d = detail::part_dim("unbind", x.shape(), dim);
  std::vector<tensor_t<X>> parts;
  for (std::int64_t i = 0; i < x.shape()[d]; ++i) parts.push_back(select(x, d, i));
  return parts;
}

/// Views of `sizes[i]` entries of dimension `dim` each, which must add up to its size, else throws ShapeError. See
/// torch.split.
template <TensorLike X>
std::vector<tensor_t<X>> split(const X& x, const std::vector<std::int64_t>& sizes, std::int64_t dim = 0) {
  const int d = detail::part_dim("split", x.shape(), dim);
  std::int64_t rest = x.shape()[d];
  bool fits = true;
  for (std::int64_t n : sizes) fits = fits && n >= 0 && n <= rest && (rest -= n, true);
  if (!fits || rest != 0) {
    throw ShapeError(text({"split: expected sizes of at least 0 that add up to ", x.shape()[d], ", dimension ", d,
                           " of ", x.shape(), "; the ", sizes.size(), " given do not"}));
  }
  std::vector<tensor_t<X>> parts;
  std::int64_t start = 0;
  for (std::int64_t n : sizes) parts.push_back(narrow(x, d, std::exchange(start, start + n), n));
  return parts;
}

/// Views of `size` entries of dimension `dim` each; the last may be shorter. Of an empty dimension: one empty view.
/// Throws ShapeError unless size > 0 (0 is allowed for an empty dimension). See torch.split.
template <TensorLike X>
std::vector<tensor_t<X>> split(const X& x, std::int64_t size, std::int64_t dim = 0) {
  const int d = detail::part_dim("split", x.shape(), dim);
  const std::int64_t n = x.shape()[d];
  if (size < 0 || (size == 0 && n > 0)) throw ShapeError(text({"split: expected a size above 0, got ", size}));
  std::vector<tensor_t<X>> parts;
  std::int64_t start = 0;
  do {
    const std::int64_t length = std::min(size, n - start);
    parts.push_back(narrow(x, d, start, length));
    start += length;
  } while (start < n);
  return parts;
}

/// At most `chunks` views of equal size along `dim`, the last maybe shorter; of an empty dimension `chunks` empty
/// ones. Throws Error unless chunks > 0. See torch.chunk.
template <TensorLike X>
std::vector<tensor_t<X>> chunk(const X& x, std::int64_t chunks, std::int64_t dim = 0) {
  const int d = detail::part_dim("chunk", x.shape(), dim);
  if (chunks < 1) throw Error(text({"chunk: expected at least 1 chunk, got ", chunks}));
  const std::int64_t n = x.shape()[d];
  if (n == 0) return split(x, std::vector<std::int64_t>(std::size_t(chunks), 0), d);
  return split(x, (n - 1) / chunks + 1, d);
}

}  // namespace TENET_CONFIG

template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::select(std::int64_t dim, std::int64_t index) const {
  return tenet::select(*this, dim, index);
}
template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const {
  return tenet::narrow(*this, dim, start, length);
}
template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::slice(std::int64_t dim, std::int64_t start, std::int64_t end,
                                            std::int64_t step) const {
  return tenet::slice(*this, dim, start, end, step);
}

}  // namespace tenet

#include <tenet/ops/grad_math.hpp>  // for backward(); needs the operations above
