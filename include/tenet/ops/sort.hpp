// Elements in order along a dimension. A NaN counts as the greatest; equal elements keep their order. Gradients flow
// to the elements that the values are.
#pragma once

#include <tenet/kernels/cpu/sort.hpp>
#include <tenet/ops/index.hpp>

namespace tenet {

/// Elements in order, and where they stood.
template <class T>
struct Sorted {
  Tensor<T> values;
  Tensor<std::int64_t> indices;
};

inline namespace TENET_CONFIG {

namespace op {

/// The order along a dimension.
struct ArgSort {
  struct Options {
    int dim;
    cpu::Order order;
  };
  static constexpr const char* name = "argsort";
  template <class T>
  static Tensor<std::int64_t> forward(Context&, const Tensor<T>& x, Options o) {
    Dims sizes = x.shape();
    sizes[o.dim] = o.order.count;
    Tensor<std::int64_t> y = empty<std::int64_t>(sizes);
    cpu::argsort(x.dim(), x.shape().data(), o.dim, source(x), target(y), o.order);
    return y;
  }
};

}  // namespace op

namespace detail {

template <class T>
Tensor<std::int64_t> order_of(const char* op, const Tensor<T>& x, std::int64_t dim, bool descending) {
  const int d = wrap_dim(op, dim, x.dim());
  if (x.dim() == 0) return zeros<std::int64_t>({});
  return apply<op::ArgSort>(x, op::ArgSort::Options{d, {descending, x.shape()[d]}});
}

}  // namespace detail

/// The indices that sort `x` along `dim`. See torch.argsort.
template <TensorLike X>
Tensor<std::int64_t> argsort(const X& x, std::int64_t dim = -1, bool descending = false) {
  return detail::order_of("argsort", static_cast<const tensor_t<X>&>(x), dim, descending);
}

/// The elements of `x` in order along `dim`, and their indices. See torch.sort, which this is with stable=True.
template <TensorLike X>
Sorted<element_t<X>> sort(const X& x, std::int64_t dim = -1, bool descending = false) {
  const tensor_t<X>& t = x;
  const Tensor<std::int64_t> order = detail::order_of("sort", t, dim, descending);
  return {x.dim() == 0 ? view(t, {}) : gather(t, dim, order), order};
}

/// The `k` greatest (or least) elements along `dim`, in order if `sorted`, and their indices. Of equal ones those
/// that come first. Throws ShapeError unless 0 <= k <= size. See torch.topk.
template <TensorLike X>
Sorted<element_t<X>> topk(const X& x, std::int64_t k, std::int64_t dim = -1, bool largest = true, bool sorted = true) {
  const tensor_t<X> t = x.dim() == 0 ? unsqueeze(x, 0) : tensor_t<X>(x);
  const int d = wrap_dim("topk", dim, x.dim());
  if (k < 0 || k > t.shape()[d]) {
    throw ShapeError(
        text({"topk: expected k in [0, ", t.shape()[d], "] for dimension ", d, " of ", x.shape(), ", got ", k}));
  }
  const Tensor<std::int64_t> order = apply<op::ArgSort>(t, op::ArgSort::Options{d, {largest, k, sorted}});
  const tensor_t<X> values = gather(t, d, order);
  if (x.dim() == 0 && k == 1) return {view(values, {}), view(order, {})};
  return {values, order};
}

/// The k-th least element along `dim`, k from 1 on, and its index; `dim` goes unless `keepdim`. Throws ShapeError
/// unless 1 <= k <= size. See torch.kthvalue.
template <TensorLike X>
Sorted<element_t<X>> kthvalue(const X& x, std::int64_t k, std::int64_t dim = -1, bool keepdim = false) {
  const int d = wrap_dim("kthvalue", dim, x.dim());
  const std::int64_t n = x.dim() == 0 ? 1 : x.shape()[d];
  if (k < 1 || k > n) throw ShapeError(text({"kthvalue: expected k in [1, ", n, "] for ", x.shape(), ", got ", k}));
  const auto least = topk(x, k, d, false);
  if (x.dim() == 0) return least;
  if (keepdim) return {narrow(least.values, d, k - 1, 1), narrow(least.indices, d, k - 1, 1)};
  return {select(least.values, d, k - 1), select(least.indices, d, k - 1)};
}

}  // namespace TENET_CONFIG
}  // namespace tenet
