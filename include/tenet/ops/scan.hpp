// cumsum and cumprod: sums and products of all elements up to each.
//
// Both throw IndexError on a wrong dimension. Half and bfloat16 are accumulated in float, integers and bool in int64.
#pragma once

#include <tenet/ops/join.hpp>
#include <tenet/ops/rearrange.hpp>
#include <tenet/ops/reduce.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace op {

struct Cumsum {
  static constexpr const char* name = "cumsum";
  template <class T>
  static Tensor<sum_t<T>> forward(Context&, const Tensor<T>& x, int dim) {
    const Tensor<T> in = packed(x);
    Tensor<sum_t<T>> y = empty<sum_t<T>>(x.shape());
    std::int64_t outer = 1, inner = 1;
    for (int d = 0; d < dim; ++d) outer *= x.shape()[d];
    for (int d = dim + 1; d < x.dim(); ++d) inner *= x.shape()[d];
    cpu::cumsum(outer, x.dim() ? x.shape()[dim] : 1, inner, in.data(), y.data());
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const int dim = grad.options<int>();
    grad[0] = g.dim() == 0 ? g : flip(apply<Cumsum>(flip(g, {dim}), dim), {dim});
  }
};

}  // namespace op

/// y[i] = x[0] + ... + x[i] along `dim`. See torch.cumsum.
template <TensorLike X>
Tensor<sum_t<element_t<X>>> cumsum(const X& x, std::int64_t dim) {
  return apply<op::Cumsum>(static_cast<const tensor_t<X>&>(x), wrap_dim("cumsum", dim, x.dim()));
}

/// y[i] = x[0] * ... * x[i] along `dim`, by doubling: the gradients of products are right where elements are 0. See
/// torch.cumprod; Hillis and Steele, "Data parallel algorithms", 1986.
template <TensorLike X>
Tensor<sum_t<element_t<X>>> cumprod(const X& x, std::int64_t dim) {
  using T = sum_t<element_t<X>>;
  const int d = wrap_dim("cumprod", dim, x.dim());
  if (x.dim() == 0) return to<T>(x);
  Tensor<cpu::compute_t<T>> y = to<cpu::compute_t<T>>(x);
  const std::int64_t n = x.shape()[d];
  for (std::int64_t step = 1; step < n; step *= 2) {
    y = cat({narrow(y, d, 0, step), mul(narrow(y, d, step, n - step), narrow(y, d, 0, n - step))}, d);
  }
  return to<T>(y);
}

}  // namespace TENET_CONFIG
}  // namespace tenet
