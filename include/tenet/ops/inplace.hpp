// Changes in place: x.add_(y), x.zero_(), x.copy_(y). Each is seen by autograd, and bumps the version by
// which backward notices that a tensor it kept is no longer what it was.
#pragma once

#include <tenet/ops/arithmetic.hpp>
#include <tenet/ops/copy.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace detail {

[[noreturn]] TENET_COLD inline void throw_inplace(const char* op, const TensorImpl& x, const char* why) {
  throw Error(text({op, "_: cannot change a tensor of shape ", x.shape, " in place: ", why}));
}

/// Throws unless every index of `x` has memory of its own.
inline void check_writable(const char* op, const TensorImpl& x) {
  for (int i = 0; i < x.shape.size(); ++i) {
    if (x.shape[i] > 1 && x.strides[i] == 0) throw_inplace(op, x, "it was expanded, several elements share memory");
  }
}

/// Throws if `x` and an input share memory without being laid out alike: elements would change before they
/// are read.
inline void check_overlap(const char* op, const TensorImpl& x, const TensorImpl& in) {
  if (x.storage.get() != in.storage.get() || x.numel == 0 || in.numel == 0) return;
  if (x.data == in.data && x.shape == in.shape && x.strides == in.strides) return;
  const auto last = [](const TensorImpl& t) {
    std::int64_t at = 0;
    for (int i = 0; i < t.shape.size(); ++i) at += (t.shape[i] - 1) * t.strides[i];
    return static_cast<const char*>(t.data) + at * std::int64_t(item_size(t.dtype));
  };
  if (x.data <= last(in) && in.data <= last(x)) throw_inplace(op, x, "it overlaps an operand; clone one of them");
}

/// The rules of autograd, before anything is changed.
inline void check_recordable(const char* op, const TensorImpl& x, const Context& ctx) {
  if (!ctx.recording()) return;
  ctx.check_views(op);
  if (x.requires_grad) {
    throw_inplace(op, x, "it is a leaf that requires a gradient; do it under no_grad, or out of place");
  }
  if (x.is_view) throw_inplace(op, x, "it is a view in a graph; build the result with cat, stack or where instead");
}

/// Lets backward have the old values, where it needs them.
template <class T>
void save_kept(Context& ctx, const Tensor<T>& x) {
  if (ctx.keeps(x.impl())) ctx.replace_kept(x.impl(), clone(x));
}

/// After the change: everything kept or viewed before is of an older version.
inline void mark_changed(TensorImpl& x, bool recorded) {
  ++x.storage->version;
  if (recorded) ++x.storage->recorded_changes;
}

}  // namespace detail

/// Runs a binary pointwise operation with its first operand as the output. `other` broadcasts to x's shape.
template <class Op, class T>
void apply_inplace(const Tensor<T>& x, const Tensor<T>& other) {
  if (!(broadcast_shapes(Op::name, x.shape(), other.shape()) == x.shape())) {
    throw ShapeError(text({Op::name, "_: shape ", other.shape(), " does not broadcast to ", x.shape()}));
  }
  const detail::Inputs<Tensor<T>, Tensor<T>> in(x, other);
  Context ctx(Op::name, in.data(), in.count());
  detail::check_writable(Op::name, *x.impl());
  detail::check_overlap(Op::name, *x.impl(), *other.impl());
  detail::check_recordable(Op::name, *x.impl(), ctx);
  Op::keep(ctx, x, other);
  detail::save_kept(ctx, x);
  Op::template run<T, T>(x, x, other);
  detail::mark_changed(*x.impl(), ctx.recording());
  if constexpr (detail::Differentiable<Op, T>) {
    if (ctx.recording()) detail::record<Op>(x.impl(), ctx, detail::node_type<Op, T, T>);
  }
}

/// Runs a unary pointwise operation in place.
template <class Op, class T>
void apply_inplace(const Tensor<T>& x, Op op) {
  const detail::Inputs<Tensor<T>> in(x);
  detail::check_writable(Op::name, *x.impl());
  Context ctx(Op::name, in.data(), in.count());
  detail::check_recordable(Op::name, *x.impl(), ctx);
  Op::keep(ctx, x);
  detail::save_kept(ctx, x);
  Op::run(x, x, op);
  detail::mark_changed(*x.impl(), ctx.recording());
  if constexpr (detail::Differentiable<Op, T>) {
    if (ctx.recording()) detail::record<Op>(x.impl(), ctx, detail::node_type<Op, T, T>, op);
  }
}

namespace op {

/// x <- source: the operation of copy_ and fill_. Only the source's gradient goes on.
struct Assign : BinaryOp<Assign> {
  static constexpr const char* name = "copy";
  template <class T>
  TENET_ALWAYS_INLINE T f(T, T source) const {
    return source;
  }
  static void keep(Context&, const AnyTensor&, const AnyTensor&) {}
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    if (grad.wants(1)) grad[1] = g;
  }
};

}  // namespace op

}  // namespace TENET_CONFIG

template <class T>
TENET_TAG inline const Tensor<T>& Tensor<T>::add_(const Tensor& other) const {
  apply_inplace<op::Add>(*this, other);
  return *this;
}
template <class T>
TENET_TAG inline const Tensor<T>& Tensor<T>::sub_(const Tensor& other) const {
  apply_inplace<op::Sub>(*this, other);
  return *this;
}
template <class T>
TENET_TAG inline const Tensor<T>& Tensor<T>::mul_(const Tensor& other) const {
  apply_inplace<op::Mul>(*this, other);
  return *this;
}
template <class T>
TENET_TAG inline const Tensor<T>& Tensor<T>::div_(const Tensor& other) const {
  apply_inplace<op::Div>(*this, other);
  return *this;
}
template <class T>
TENET_TAG inline const Tensor<T>& Tensor<T>::copy_(const Tensor& source) const {
  apply_inplace<op::Assign>(*this, source);
  return *this;
}
template <class T>
TENET_TAG inline const Tensor<T>& Tensor<T>::add_(T value) const {
  return add_(scalar(value));
}
template <class T>
TENET_TAG inline const Tensor<T>& Tensor<T>::sub_(T value) const {
  return sub_(scalar(value));
}
template <class T>
TENET_TAG inline const Tensor<T>& Tensor<T>::mul_(T value) const {
  return mul_(scalar(value));
}
template <class T>
TENET_TAG inline const Tensor<T>& Tensor<T>::div_(T value) const {
  return div_(scalar(value));
}
template <class T>
TENET_TAG inline const Tensor<T>& Tensor<T>::fill_(T value) const {
  return copy_(scalar(value));
}
template <class T>
TENET_TAG inline const Tensor<T>& Tensor<T>::zero_() const {
  return fill_(T(0));
}

inline namespace TENET_CONFIG {

template <TensorLike X, class V>
const X& operator+=(const X& x, const V& v) {
  x.add_(v);
  return x;
}
template <TensorLike X, class V>
const X& operator-=(const X& x, const V& v) {
  x.sub_(v);
  return x;
}
template <TensorLike X, class V>
const X& operator*=(const X& x, const V& v) {
  x.mul_(v);
  return x;
}
template <TensorLike X, class V>
const X& operator/=(const X& x, const V& v) {
  x.div_(v);
  return x;
}

}  // namespace TENET_CONFIG
}  // namespace tenet
