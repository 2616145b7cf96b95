// Tensors from nothing and from data. All are contiguous, on the CPU, and take no part in a graph.
// Each throws ShapeError on a negative size or more elements than int64 can count.
#pragma once

#include <tenet/core/tensor.hpp>

#include <cstring>

namespace tenet {
inline namespace TENET_CONFIG {

/// Uninitialized elements.
template <Element T = float>
Tensor<T> empty(const Shape& shape) {
  return Tensor<T>(make_impl(shape, dtype_of<T>));
}

/// Every element `value`.
template <Element T = float>
Tensor<T> full(const Shape& shape, std::type_identity_t<T> value) {
  Tensor<T> t = empty<T>(shape);
  T* p = t.data();
  for (std::int64_t i = 0; i < t.numel(); ++i) p[i] = value;
  return t;
}

template <Element T = float>
Tensor<T> zeros(const Shape& shape) {
  Tensor<T> t = empty<T>(shape);
  std::memset(t.data_ptr(), 0, std::size_t(t.numel()) * sizeof(T));  // zero is all zero bits in every type
  return t;
}

template <Element T = float>
Tensor<T> ones(const Shape& shape) {
  return full<T>(shape, T(1));
}

/// A tensor of no dimensions holding `value`.
template <Element T>
Tensor<T> scalar(T value) {
  return full<T>({}, value);
}

template <TensorLike X>
tensor_t<X> empty_like(const X& x) {
  return empty<element_t<X>>(x.shape());
}
template <TensorLike X>
tensor_t<X> full_like(const X& x, element_t<X> value) {
  return full<element_t<X>>(x.shape(), value);
}
template <TensorLike X>
tensor_t<X> zeros_like(const X& x) {
  return zeros<element_t<X>>(x.shape());
}
template <TensorLike X>
tensor_t<X> ones_like(const X& x) {
  return ones<element_t<X>>(x.shape());
}

namespace detail {
[[noreturn]] TENET_COLD inline void no_way(const Piece& start, const Piece& end, const Piece& step) {
  throw Error(text({"arange: cannot go from ", start, " to ", end, " in steps of ", step}));
}
}  // namespace detail

/// start, start + step, ... while before `end`: [ceil((end - start) / step)]. Throws Error when step is 0
/// or leads away from `end`.
template <Element T = float>
Tensor<T> arange(std::type_identity_t<T> start, std::type_identity_t<T> end, std::type_identity_t<T> step = T(1)) {
  if constexpr (std::is_integral_v<T>) {  // in the ring of 2^64: no distance and no step overflows
    const auto a = std::uint64_t(start), b = std::uint64_t(end), s = std::uint64_t(step);
    if (step == 0 || (step > 0 ? end < start : end > start)) detail::no_way(start, end, step);
    const std::uint64_t distance = step > 0 ? b - a : a - b, stride = step > 0 ? s : 0 - s;
    const std::uint64_t n = distance / stride + (distance % stride != 0);
    if (n > std::uint64_t(std::numeric_limits<std::int64_t>::max())) detail::no_way(start, end, step);
    Tensor<T> t = empty<T>({std::int64_t(n)});
    T* p = t.data();
    for (std::uint64_t i = 0; i < n; ++i) p[i] = T(a + i * s);
    return t;
  } else {
    const double a = double(start), b = double(end), s = double(step), steps = (b - a) / s;
    if (!(s != 0) || !(steps >= 0) || steps > 9e18) detail::no_way(a, b, s);
    std::int64_t n = std::int64_t(steps);
    if (s > 0 ? a + s * double(n) < b : a + s * double(n) > b) ++n;
    Tensor<T> t = empty<T>({n});
    T* p = t.data();
    for (std::int64_t i = 0; i < n; ++i) p[i] = T(a + s * double(i));
    return t;
  }
}
/// 0, 1, ..., end - 1.
template <Element T = float>
Tensor<T> arange(std::type_identity_t<T> end) {
  return arange<T>(T(0), end);
}

/// `steps` values from `start` to `end`, both included, at equal distances.
template <FloatElement T = float>
Tensor<T> linspace(double start, double end, std::int64_t steps) {
  if (steps < 0) throw ShapeError(text({"linspace: expected steps >= 0, got ", steps}));
  Tensor<T> t = empty<T>({steps});
  const double d = steps > 1 ? (end - start) / double(steps - 1) : 0.0;
  // From both ends inwards, so that the last value is exactly `end`.
  for (std::int64_t i = 0; i < steps; ++i) {
    t.data()[i] = T(i < steps / 2 || steps == 1 ? start + d * double(i) : end - d * double(steps - 1 - i));
  }
  return t;
}

/// [n, m] with ones on the main diagonal.
template <Element T = float>
Tensor<T> eye(std::int64_t n, std::int64_t m) {
  Tensor<T> t = zeros<T>({n, m});
  for (std::int64_t i = 0; i < n && i < t.shape()[1]; ++i) t.data()[i * t.shape()[1] + i] = T(1);
  return t;
}
/// The identity of [n, n].
template <Element T = float>
Tensor<T> eye(std::int64_t n) {
  return eye<T>(n, n);
}

/// A copy of `values`, row-major, in `shape`; throws ShapeError unless there are as many.
template <Element T>
Tensor<T> from_vector(const std::vector<T>& values, const Shape& shape) {
  if (shape.numel() != std::int64_t(values.size())) {
    throw ShapeError(
        text({"from_vector: expected ", shape.numel(), " values for shape ", shape, ", got ", values.size()}));
  }
  Tensor<T> t = empty<T>(shape);
  std::int64_t i = 0;
  for (T v : values) t.data()[i++] = v;  // std::vector<bool> has no data()
  return t;
}
template <Element T>
Tensor<T> from_vector(const std::vector<T>& values) {
  return from_vector(values, {std::int64_t(values.size())});
}

/// A tensor over memory of the caller's, row-major, without a copy. The memory must outlive every tensor
/// that shares it; `deleter(context)`, if given, is told when the last one is gone. Throws
/// Error if `data` is null and the shape is not empty.
template <Element T>
Tensor<T> from_blob(T* data, const Shape& shape, void (*deleter)(void*) = nullptr, void* context = nullptr) {
  if (!data && shape.numel()) throw Error(text({"from_blob: expected memory for shape ", shape, ", got null"}));
  const std::size_t bytes = byte_count(shape, dtype_of<T>);
  return Tensor<T>(make_impl(shape, dtype_of<T>, borrow_storage(data, bytes, deleter, context)));
}

/// Braces within braces, as a matrix is written: the argument of tensor().
template <Element T>
class NestedList {
 public:
  template <class V>
  requires std::is_arithmetic_v<V> || std::is_same_v<V, T> NestedList(V value) : value_(T(value)) {}
  NestedList(std::initializer_list<NestedList> items) : is_list_(true), items_(items) {}

  /// The sizes, outermost first; throws ShapeError on rows of different lengths.
  Shape shape() const {
    Dims sizes;
    measure(sizes, 0);
    return sizes;
  }
  T* write(T* to) const {
    if (!is_list_) *to++ = value_;
    for (const NestedList& item : items_) to = item.write(to);
    return to;
  }

 private:
  // The first way down the braces says how deep they are; every other must agree.
  void measure(Dims& sizes, int depth) const {
    if (depth == 0) {
      for (const NestedList* x = this; x->is_list_; x = x->items_.data()) {
        sizes.push_back(std::int64_t(x->items_.size()));
        if (x->items_.empty()) break;
      }
    }
    const bool inner = depth < sizes.size();
    if (is_list_ != inner || (inner && sizes[depth] != std::int64_t(items_.size()))) ragged();
    for (const NestedList& item : items_) item.measure(sizes, depth + 1);
  }
  [[noreturn]] TENET_COLD static void ragged() { throw ShapeError("tensor: rows of different lengths"); }

  bool is_list_ = false;
  T value_{};
  std::vector<NestedList> items_;
};

/// A tensor of the given elements: `tensor<float>({{1, 2}, {3, 4}})`. Throws ShapeError on ragged rows.
template <Element T = float>
Tensor<T> tensor(const std::type_identity_t<NestedList<T>>& values) {
  Tensor<T> t = empty<T>(values.shape());
  values.write(t.data());
  return t;
}

}  // namespace TENET_CONFIG
}  // namespace tenet
