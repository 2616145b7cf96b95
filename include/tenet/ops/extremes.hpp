// Greatest and least elements, their values and their places.
//
// `dims`, `keepdim` and errors are those of ops/reduce.hpp. A NaN is greater and less than all. Each function
// throws ShapeError where there are no elements to choose from.
#pragma once

#include <tenet/ops/index.hpp>
#include <tenet/ops/reduce.hpp>
#include <tenet/ops/view.hpp>

namespace tenet {

/// The extreme elements along a dimension, and where they stand in it.
template <class T>
struct Extremes {
  Tensor<T> values;
  Tensor<std::int64_t> indices;
};

inline namespace TENET_CONFIG {

namespace detail {

inline void check_elements(const char* op, const Shape& shape, Reduced r) {
  if (reduced_count(shape, r) == 0) throw ShapeError(text({op, ": expected elements to reduce, got shape ", shape}));
}

}  // namespace detail

namespace op {

/// 1 where a == b or both are NaN, else 0.
struct Ties : BinaryOp<Ties> {
  static constexpr const char* name = "ties";
  template <class T>
  TENET_ALWAYS_INLINE T f(T a, T b) const {
    return T((a == b) | ((a != a) & (b != b)));
  }
  static void keep(Context&, const AnyTensor&, const AnyTensor&) {}
};

template <bool Greatest>
struct Extremum {
  static constexpr const char* name = Greatest ? "amax" : "amin";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, Reduced r) {
    detail::check_elements(name, x.shape(), r);
    ctx.keep(x);
    ctx.keep_output();
    return reduce<T>(std::conditional_t<Greatest, cpu::Max, cpu::Min>{}, x, r);
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const Shape& shape = grad.input_shape(0);
    const auto r = grad.options<Reduced>();
    const Tensor<T> ties = apply<Ties>(grad.kept<T>(0), spread(grad.output<T>(), shape, r));
    using C = cpu::compute_t<T>;  // holds how many there are
    const Tensor<C> each = div(to<C>(g), apply<Sum>(to<C>(ties), r));
    grad[0] = mul(spread(to<T>(each), shape, r), ties);
  }
};

template <bool Greatest>
struct ArgExtremum {
  static constexpr const char* name = Greatest ? "argmax" : "argmin";
  template <class T>
  static Tensor<std::int64_t> forward(Context&, const Tensor<T>& x, Reduced r) {
    detail::check_elements(name, x.shape(), r);
    return reduce<std::int64_t>(cpu::ArgExtreme<Greatest>{}, x, r);
  }
};

}  // namespace op

namespace detail {

template <class Op, TensorLike X>
auto extreme(const X& x, const Dims& dims, bool keepdim) {
  return apply<Op>(static_cast<const tensor_t<X>&>(x), reduced_dims(Op::name, dims, keepdim, x.dim()));
}

/// The elements at the indices that ArgExtremum found.
template <class Op, TensorLike X>
Extremes<element_t<X>> extremes(const X& x, std::int64_t dim, bool keepdim) {
  const Tensor<std::int64_t> indices = extreme<Op>(x, {dim}, true);
  if (x.dim() == 0) return {x, indices};
  const tensor_t<X> values = gather(x, dim, indices);
  if (keepdim) return {values, indices};
  return {squeeze(values, dim), squeeze(indices, dim)};
}

}  // namespace detail

/// The greatest elements over `dims`; equal ones share the gradient. See torch.amax.
template <TensorLike X>
tensor_t<X> amax(const X& x, const Dims& dims = {}, bool keepdim = false) {
  return detail::extreme<op::Extremum<true>>(x, dims, keepdim);
}

/// The least elements over `dims`; equal ones share the gradient. See torch.amin.
template <TensorLike X>
tensor_t<X> amin(const X& x, const Dims& dims = {}, bool keepdim = false) {
  return detail::extreme<op::Extremum<false>>(x, dims, keepdim);
}

/// Where the greatest element stands in row-major order, a scalar; the first of equal ones. See torch.argmax.
template <TensorLike X>
Tensor<std::int64_t> argmax(const X& x) {
  return detail::extreme<op::ArgExtremum<true>>(x, {}, false);
}

/// Where the greatest elements stand along `dim`; the first of equal ones. See torch.argmax.
template <TensorLike X>
Tensor<std::int64_t> argmax(const X& x, std::int64_t dim, bool keepdim = false) {
  return detail::extreme<op::ArgExtremum<true>>(x, {dim}, keepdim);
}

/// Where the least element stands in row-major order, a scalar; the first of equal ones. See torch.argmin.
template <TensorLike X>
Tensor<std::int64_t> argmin(const X& x) {
  return detail::extreme<op::ArgExtremum<false>>(x, {}, false);
}

/// Where the least elements stand along `dim`; the first of equal ones. See torch.argmin.
template <TensorLike X>
Tensor<std::int64_t> argmin(const X& x, std::int64_t dim, bool keepdim = false) {
  return detail::extreme<op::ArgExtremum<false>>(x, {dim}, keepdim);
}

/// The greatest element, a scalar; equal ones share the gradient. See torch.max.
template <TensorLike X>
tensor_t<X> max(const X& x) {
  return amax(x);
}

/// The greatest elements along `dim` and their places; of equal ones the first, which gets the gradient. See
/// torch.max.
template <TensorLike X>
Extremes<element_t<X>> max(const X& x, std::int64_t dim, bool keepdim = false) {
  return detail::extremes<op::ArgExtremum<true>>(x, dim, keepdim);
}

/// The least element, a scalar; equal ones share the gradient. See torch.min.
template <TensorLike X>
tensor_t<X> min(const X& x) {
  return amin(x);
}

/// The least elements along `dim` and their places; of equal ones the first, which gets the gradient. See
/// torch.min.
template <TensorLike X>
Extremes<element_t<X>> min(const X& x, std::int64_t dim, bool keepdim = false) {
  return detail::extremes<op::ArgExtremum<false>>(x, dim, keepdim);
}

}  // namespace TENET_CONFIG

template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::max() const {
  return tenet::max(*this);
}
template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::min() const {
  return tenet::min(*this);
}
template <class T>
TENET_TAG inline Tensor<std::int64_t> Tensor<T>::argmax(std::int64_t dim, bool keepdim) const {
  return tenet::argmax(*this, dim, keepdim);
}
template <class T>
TENET_TAG inline Tensor<std::int64_t> Tensor<T>::argmin(std::int64_t dim, bool keepdim) const {
  return tenet::argmin(*this, dim, keepdim);
}

}  // namespace tenet
