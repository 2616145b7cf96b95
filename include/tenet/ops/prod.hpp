// Products over any dimensions.
#pragma once

#include <tenet/ops/reduce.hpp>
#include <tenet/ops/view.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace detail {

/// The product along `dim`, which stays as size 1, by multiplying halves: the gradients of products are right
/// where elements are 0, which those of prod / x are not.
template <class T>
Tensor<T> multiply_halves(Tensor<T> x, int dim) {
  std::int64_t n = x.shape()[dim];
  if (n == 0) return sum(x, {dim}, true) + 1;
  Tensor<T> odd;
  for (; n > 1; n /= 2) {
    if (n % 2) {
      const Tensor<T> last = narrow(x, dim, n - 1, 1);
      odd = odd ? mul(odd, last) : last;
    }
    x = mul(narrow(x, dim, 0, n / 2), narrow(x, dim, n / 2, n / 2));
  }
  return odd ? mul(x, odd) : x;
}

}  // namespace detail

/// Products over `dims`; with `dims`, `keepdim` and errors of sum (ops/reduce.hpp). Integers and bool multiply in
/// int64. Of no elements: 1. See torch.prod.
template <TensorLike X>
Tensor<sum_t<element_t<X>>> prod(const X& x, const Dims& dims = {}, bool keepdim = false) {
  using T = element_t<X>;
  const Reduced r = reduced_dims("prod", dims, keepdim, x.dim());
  if constexpr (!FloatElement<T>) {
    return reduce<std::int64_t>(cpu::Product{}, static_cast<const Tensor<T>&>(x), r);
  } else {
    Tensor<cpu::compute_t<T>> y = to<cpu::compute_t<T>>(x);
    for (int d = 0; d < x.dim(); ++d) {
      if (r.has(d)) y = detail::multiply_halves(std::move(y), d);
    }
    return to<T>(reshape(y, reduced_shape(x.shape(), r)));
  }
}

}  // namespace TENET_CONFIG
}  // namespace tenet
