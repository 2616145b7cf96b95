// Elements named by an index tensor: gather and its relatives read them, scatter and its relatives write to them.
//
// An index counts from 0; one outside the dimension throws IndexError before anything is read. Writing goes in the
// order of the index, so that results are the same for any number of threads, also where one element is named twice.
#pragma once

#include <tenet/kernels/cpu/index.hpp>
#include <tenet/ops/view.hpp>

#include <optional>

namespace tenet {
inline namespace TENET_CONFIG {

namespace detail {

using Index = Tensor<std::int64_t>;

/// The dimension an index goes along. `op` is what an error names. Positions equal to `skip`, if it `skips`, name
/// nothing: gather reads 0 there, scatter passes them over.
struct Along {
  const char* op;
  int dim;
  bool skips = false;
  std::int64_t skip = -1;
};

/// Throws unless every position of `index` lies in dimension `along.dim` of `shape`.
inline void check_index(const Index& index, const Shape& shape, Along along) {
  const std::int64_t n = shape[along.dim];
  if (const std::int64_t* i =
          cpu::find_outside(index.dim(), index.shape().data(), source(index), n, along.skips ? &along.skip : nullptr)) {
    throw IndexError(
        text({along.op, ": index ", *i, " is outside dimension ", along.dim, ", of size ", n, ", of ", shape}));
  }
}

/// Throws unless `index` has the rank of `shape` and is no larger, but for dimension `dim`.
inline void check_index_shape(const char* op, const Shape& index, const Shape& shape, int dim) {
  bool fits = index.size() == shape.size();
  for (int d = 0; fits && d < shape.size(); ++d) fits = d == dim || index[d] <= shape[d];
  if (!fits) {
    throw ShapeError(
        text({op, ": expected an index no larger than ", shape, " except in dimension ", dim, ", got ", index}));
  }
}

/// A list of positions along `dim`, repeated over the other dimensions of `shape`.
inline Index spread_index(const char* op, const Index& index, const Shape& shape, int dim) {
  if (index.dim() > 1) throw ShapeError(text({op, ": expected an index of one dimension, got ", index.shape()}));
  Dims sizes = shape;
  Strides strides = sizes;
  for (int d = 0; d < shape.size(); ++d) strides[d] = d == dim && index.dim() == 1 ? index.strides()[0] : 0;
  sizes[dim] = index.numel();
  return Index(make_alias(*index.impl(), sizes, strides, 0));
}

inline cpu::Positions positions(const Index& index, Along along) { return {source(index), along.dim, along.skip}; }

template <class T>
Tensor<T> gather(const Tensor<T>& x, const Index& index, Along along) {
  check_index(index, x.shape(), along);
  Tensor<T> y = empty<T>(index.shape());
  cpu::gather(y.dim(), y.shape().data(), target(y), source(x), positions(index, along));
  return y;
}

/// The tensor to write to: `x` itself if it is a temporary, else a copy.
template <class X>
tensor_t<X> writable(X&& x) {
  using T = element_t<X>;
  const Tensor<T> y = reuse_or_empty(std::forward<X>(x), x.shape());
  if (y.data() != x.data()) cpu::copy<T, T>(x.dim(), x.shape().data(), target(y), source<T>(x));
  return y;
}

/// `index` with -1 for what a later position overwrites in a scatter to `shape`.
inline Index last_written(const Index& index, const Shape& shape, Along along) {
  const int rank = index.dim();
  const std::int64_t* sizes = index.shape().data();
  const Index order = view(arange<std::int64_t>(index.numel()), index.shape());
  const Index written = empty<std::int64_t>(shape), kept = empty<std::int64_t>(index.shape());
  cpu::scatter(rank, sizes, target(written), source(order), positions(index, along));
  cpu::gather(rank, sizes, target(kept), source(written), positions(index, along));
  cpu::map<cpu::KeepLast, std::int64_t>({}, rank, sizes, target(kept), source(index), source(order), source(kept));
  return kept;
}

}  // namespace detail

namespace op {

struct ScatterAdd;

/// The elements of `x` that `index` names.
struct Gather {
  static constexpr const char* name = "gather";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, const detail::Index& index, detail::Along along) {
    ctx.keep(index);
    return detail::gather(x, index, along);
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] =
        apply<ScatterAdd>(zeros<T>(grad.input_shape(0)), grad.kept<std::int64_t>(0), g, grad.options<detail::Along>());
  }
};

/// x plus `src` at the elements that `index`, of its shape, names.
struct ScatterAdd {
  static constexpr const char* name = "scatter_add";
  static constexpr bool reuses = true;
  template <class X, class T>
  static Tensor<T> forward(Context& ctx, X&& x, const detail::Index& index, const Tensor<T>& src, detail::Along along) {
    detail::check_index(index, x.shape(), along);
    ctx.keep(index);
    if constexpr (FloatElement<T> && sizeof(T) == 2) {  // halves add up in float
      const Tensor<float> sums = Cast<T, float>::forward(ctx, x);
      accumulate(sums, index, Cast<T, float>::forward(ctx, src), along);
      return Cast<float, T>::forward(ctx, sums);
    } else {
      const Tensor<T> y = detail::writable(std::forward<X>(x));
      accumulate(y, index, src, along);
      return y;
    }
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    if (grad.wants(0)) grad[0] = g;
    if (grad.wants(2)) grad[2] = apply<Gather>(g, grad.kept<std::int64_t>(0), grad.options<detail::Along>());
  }

 private:
  template <class T>
  static void accumulate(const Tensor<T>& y, const detail::Index& index, const Tensor<T>& src, detail::Along along) {
    cpu::scatter_add(index.dim(), index.shape().data(), target(y), source(src), detail::positions(index, along));
  }
};

/// x with `src` in place of the elements that `index`, of its shape, names.
struct Scatter {
  static constexpr const char* name = "scatter";
  static constexpr bool reuses = true;
  template <class X, class T>
  static Tensor<T> forward(Context& ctx, X&& x, const detail::Index& index, const Tensor<T>& src, detail::Along along) {
    detail::check_index(index, x.shape(), along);
    ctx.keep(index);
    const Tensor<T> y = detail::writable(std::forward<X>(x));
    cpu::scatter(index.dim(), index.shape().data(), target(y), source(src), detail::positions(index, along));
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const detail::Index index = grad.kept<std::int64_t>(0);
    detail::Along along = grad.options<detail::Along>();
    if (grad.wants(0)) grad[0] = apply<Scatter>(g, index, expand(zeros<T>({}), index.shape()), along);
    if (grad.wants(2)) {
      along.skips = true;
      grad[2] = apply<Gather>(g, detail::last_written(index, g.shape(), along), along);
    }
  }
};

/// Rows of a table; the gradient of row `skip` is 0.
struct Embedding {
  static constexpr const char* name = "embedding";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& table, const detail::Index& index, detail::Along along) {
    ctx.keep(index);
    return detail::gather(table, index, {along.op, along.dim});
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    Gather::backward(grad, g);
  }
};

}  // namespace op

/// y[p] = x[q], where q is p with index[p] as its coordinate along `dim`: the shape is that of `index`, which has x's
/// rank and is no larger than `x` except along `dim`, else throws ShapeError. See torch.gather.
template <TensorLike X>
tensor_t<X> gather(const X& x, std::int64_t dim, const Tensor<std::int64_t>& index) {
  const int d = detail::part_dim("gather", x.shape(), dim);
  detail::check_index_shape("gather", index.shape(), x.shape(), d);
  return apply<op::Gather>(static_cast<const tensor_t<X>&>(x), index, detail::Along{"gather", d});
}

/// As gather, but `x` and `index` broadcast in the other dimensions. See torch.take_along_dim.
template <TensorLike X>
tensor_t<X> take_along_dim(const X& x, const Tensor<std::int64_t>& index, std::int64_t dim) {
  const int d = detail::part_dim("take_along_dim", x.shape(), dim);
  if (index.dim() != x.dim()) {
    throw ShapeError(text({"take_along_dim: expected an index of ", x.dim(), " dimensions, got ", index.shape()}));
  }
  Dims to = x.shape(), from = index.shape();
  to[d] = from[d] = 1;
  to = from = broadcast_shapes("take_along_dim", to, from);
  to[d] = index.shape()[d];
  from[d] = x.shape()[d];
  return apply<op::Gather>(expand(x, from), expand(index, to), detail::Along{"take_along_dim", d});
}

/// Entries index[0], index[1], ... of dimension `dim`; `index` is [n]. See torch.index_select.
template <TensorLike X>
tensor_t<X> index_select(const X& x, std::int64_t dim, const Tensor<std::int64_t>& index) {
  const int d = detail::part_dim("index_select", x.shape(), dim);
  return apply<op::Gather>(static_cast<const tensor_t<X>&>(x),
                           detail::spread_index("index_select", index, x.shape(), d), detail::Along{"index_select", d});
}

namespace detail {

/// What every scatter has in common: `src` may be larger than `index`.
template <class Op, class T>
Tensor<T> scatter(const char* op, const Tensor<T>& x, std::int64_t dim, const Index& index, Tensor<T> src) {
  const int d = part_dim(op, x.shape(), dim);
  check_index_shape(op, index.shape(), x.shape(), d);
  check_index_shape(op, index.shape(), src.shape(), -1);
  for (int i = 0; i < src.dim(); ++i) {
    if (src.shape()[i] != index.shape()[i]) src = narrow(src, i, 0, index.shape()[i]);
  }
  return apply<Op>(x, index, src, Along{op, d});
}

/// What every indexed write of whole entries has in common.
template <class Op, class T>
Tensor<T> index_write(const char* op, const Tensor<T>& x, std::int64_t dim, const Index& index, const Tensor<T>& src) {
  const int d = part_dim(op, x.shape(), dim);
  const Index to = spread_index(op, index, x.shape(), d);
  if (!(src.shape() == to.shape())) {
    throw ShapeError(text({op, ": expected a source of ", to.shape(), ", got ", src.shape()}));
  }
  return apply<Op>(x, to, src, Along{op, d});
}

}  // namespace detail

/// A copy of `x` in which y[q] = src[p], where q is p with index[p] as its coordinate along `dim`. `index` has the
/// rank of both and is no larger than `src`, nor than `x` except along `dim`, else throws ShapeError. Of several
/// writes to one element the last along `dim` stays, and alone gets a gradient. See torch.scatter.
template <TensorLike X, TensorLike S>
tensor_t<X> scatter(const X& x, std::int64_t dim, const Tensor<std::int64_t>& index, const S& src) {
  using T = element_t<X>;
  return detail::scatter<op::Scatter, T>("scatter", x, dim, index, src);
}
/// The same with one value for all.
template <TensorLike X>
tensor_t<X> scatter(const X& x, std::int64_t dim, const Tensor<std::int64_t>& index, element_t<X> value) {
  using T = element_t<X>;
  return detail::scatter<op::Scatter, T>("scatter", x, dim, index, expand(scalar<T>(value), index.shape()));
}

/// As scatter, but adds: y[q] += src[p]. See torch.scatter_add.
template <TensorLike X, TensorLike S>
tensor_t<X> scatter_add(const X& x, std::int64_t dim, const Tensor<std::int64_t>& index, const S& src) {
  using T = element_t<X>;
  return detail::scatter<op::ScatterAdd, T>("scatter_add", x, dim, index, src);
}

/// A copy of `x` to whose entry index[i] of dimension `dim` entry i of `src` is added. `index` is [n]; `src` has x's
/// sizes, but n along `dim`, else throws ShapeError. See torch.index_add.
template <TensorLike X, TensorLike S>
tensor_t<X> index_add(const X& x, std::int64_t dim, const Tensor<std::int64_t>& index, const S& src) {
  return detail::index_write<op::ScatterAdd, element_t<X>>("index_add", x, dim, index, src);
}
/// As index_add, but the entries take the place of x's. See torch.index_copy.
template <TensorLike X, TensorLike S>
tensor_t<X> index_copy(const X& x, std::int64_t dim, const Tensor<std::int64_t>& index, const S& src) {
  return detail::index_write<op::Scatter, element_t<X>>("index_copy", x, dim, index, src);
}
/// As index_copy, with one value for all. See torch.index_fill.
template <TensorLike X>
tensor_t<X> index_fill(const X& x, std::int64_t dim, const Tensor<std::int64_t>& index, element_t<X> value) {
  Dims sizes = x.shape();
  sizes[detail::part_dim("index_fill", x.shape(), dim)] = index.numel();
  const auto values = expand(scalar<element_t<X>>(value), sizes);
  return detail::index_write<op::Scatter, element_t<X>>("index_fill", x, dim, index, values);
}

/// Rows of `weight` [n, d]: index [...] -> [..., d]. Row `padding_idx`, counted from the end when negative, gets no
/// gradient. Throws ShapeError unless `weight` is a matrix. See torch.nn.functional.embedding.
template <TensorLike W>
tensor_t<W> embedding(const Tensor<std::int64_t>& index, const W& weight,
                      std::optional<std::int64_t> padding_idx = std::nullopt) {
  if (weight.dim() != 2) throw ShapeError(text({"embedding: expected a weight [n, d], got ", weight.shape()}));
  const std::int64_t rows = weight.shape()[0];
  detail::Along along{"embedding", 0};
  if (padding_idx) {
    if (*padding_idx < -rows || *padding_idx >= rows) {
      throw IndexError(text({"embedding: padding_idx ", *padding_idx, " is outside weight ", weight.shape()}));
    }
    along.skips = true;
    along.skip = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
  }
  Dims sizes = index.shape();
  sizes.push_back(weight.shape()[1]);
  const Tensor<std::int64_t> flat = detail::spread_index("embedding", flatten(index), weight.shape(), 0);
  return view(apply<op::Embedding>(static_cast<const tensor_t<W>&>(weight), flat, along), sizes);
}

/// 1 at the class, 0 elsewhere: index [...] -> [..., num_classes]. -1 stands for the largest index + 1. Throws
/// IndexError on an index that is no class. See torch.nn.functional.one_hot.
inline Tensor<std::int64_t> one_hot(const Tensor<std::int64_t>& index, std::int64_t num_classes = -1) {
  if (num_classes < -1 || (num_classes == -1 && index.numel() == 0)) {
    throw ShapeError(text({"one_hot: expected a number of classes, got ", num_classes, " for index ", index.shape()}));
  }
  if (num_classes == -1) {
    std::int64_t top = 0;
    cpu::reduce(cpu::Max{}, index.dim(), index.shape().data(), source(index), (1u << index.dim()) - 1, &top);
    num_classes = top < 0 ? 0 : top < std::numeric_limits<std::int64_t>::max() ? top + 1 : top;
  }
  Dims sizes = index.shape();
  sizes.push_back(num_classes);
  const int last = index.dim();
  return apply<op::Scatter>(zeros<std::int64_t>(sizes), unsqueeze(index, -1),
                            expand(scalar<std::int64_t>(1), unsqueeze(index, -1).shape()),
                            detail::Along{"one_hot", last});
}

/// The indices of the elements that are not 0, in row-major order: [n, rank]. See torch.nonzero.
template <TensorLike X>
Tensor<std::int64_t> nonzero(const X& x) {
  const Tensor<bool> mask = contiguous(to<bool>(x));
  const std::int64_t* shape = mask.shape().data();
  const std::int64_t n = cpu::locate_true(mask.dim(), shape, mask.data(), nullptr);
  Tensor<std::int64_t> out = empty<std::int64_t>({n, mask.dim()});
  cpu::locate_true(mask.dim(), shape, mask.data(), out.data());
  return out;
}

/// The elements of `x` where `mask` is true, in row-major order: [n]. Both broadcast. See torch.masked_select.
template <TensorLike X>
tensor_t<X> masked_select(const X& x, const Tensor<bool>& mask) {
  const Shape shape = broadcast_shapes("masked_select", x.shape(), mask.shape());
  const Tensor<std::int64_t> places = nonzero(flatten(expand(mask, shape)));
  return index_select(flatten(expand(x, shape)), 0, select(places, 1, 0));
}

}  // namespace TENET_CONFIG
}  // namespace tenet
