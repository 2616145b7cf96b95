// clone, contiguous, to<U>: copies of tensors, which gradients flow through; detach, which they do not.
#pragma once

#include <tenet/kernels/cpu/copy.hpp>
#include <tenet/ops/apply.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace op {

template <class From, class To>
struct Cast {
  static constexpr const char* name = std::is_same_v<From, To> ? "clone" : "to";
  static Tensor<To> forward(Context&, const Tensor<From>& x) {
    Tensor<To> y = empty<To>(x.shape());
    cpu::copy<To, From>(x.dim(), x.shape().data(), target(y), source(x));
    return y;
  }
  static void backward(Grad grad, const Tensor<To>& g) { grad[0] = apply<Cast<To, From>>(g); }
};

}  // namespace op

/// A copy of `x` in memory of its own, row-major.
template <TensorLike X>
tensor_t<X> clone(const X& x) {
  using T = element_t<X>;
  return apply<op::Cast<T, T>>(static_cast<const Tensor<T>&>(x));
}

/// `x` itself if its elements lie row-major without gaps, else a copy for which that holds.
template <TensorLike X>
tensor_t<X> contiguous(const X& x) {
  return x.is_contiguous() ? tensor_t<X>(x) : clone(x);
}

/// contiguous(x) for a kernel to read: never recorded.
TENET_NOINLINE inline AnyTensor packed(const AnyTensor& x) {
  if (x.is_contiguous()) return x;
  AnyTensor y(make_impl(x.shape(), x.dtype()));
  cpu::detail::copy_units(x.dim(), x.shape().data(), std::int64_t(item_size(x.dtype())),
                          static_cast<char*>(y.data_ptr()), y.strides().data(), static_cast<const char*>(x.data_ptr()),
                          x.strides().data());
  return y;
}
template <class T>
Tensor<T> packed(const Tensor<T>& x) {
  return Tensor<T>(packed(static_cast<const AnyTensor&>(x)).ref());
}

/// `x` with elements converted to U; `x` itself if they are. Rounds to the nearest; floating to integer cuts
/// towards zero and saturates, NaN becomes 0; to bool: whether not 0.
template <Element U, TensorLike X>
Tensor<U> to(const X& x) {
  using T = element_t<X>;
  if constexpr (std::is_same_v<T, U>) return x;
  else return apply<op::Cast<T, U>>(static_cast<const Tensor<T>&>(x));
}

/// The same memory outside the graph: no gradient flows through.
template <TensorLike X>
tensor_t<X> detach(const X& x) {
  return tensor_t<X>(make_alias(*x.impl(), x.shape(), x.strides(), 0));
}

}  // namespace TENET_CONFIG

template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::clone() const {
  return tenet::clone(*this);
}
template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::contiguous() const {
  return tenet::contiguous(*this);
}
template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::detach() const {
  return tenet::detach(*this);
}
template <class T>
template <class U>
TENET_TAG inline Tensor<U> Tensor<T>::to() const {
  return tenet::to<U>(*this);
}

}  // namespace tenet

#include <tenet/ops/grad_math.hpp>  // for backward(); needs the operations above
