// Tensors joined to one: cat along a dimension, stack along a new one.
//
// The list may be braces or a std::vector: cat({a, b}, 1). All have one element type.
#pragma once

#include <tenet/ops/view.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace detail {

/// An empty tensor of one dimension joins anything, as in PyTorch.
inline bool is_nothing(const Shape& shape) { return shape.size() == 1 && shape[0] == 0; }

/// Checks that the shapes agree in every dimension but `dim`.
inline void check_joint(const Shape& first, const Shape& other, int dim, std::size_t i) {
  bool fits = first.size() == other.size();
  for (int d = 0; fits && d < first.size(); ++d) fits = d == dim || first[d] == other[d];
  if (!fits) {
    throw ShapeError(text(
        {"cat: expected tensors alike but in dimension ", dim, ", got ", first, " and, as number ", i, ", ", other}));
  }
}

}  // namespace detail

namespace op {

struct Cat {
  static constexpr const char* name = "cat";
  static constexpr std::size_t most = 65535;  // inputs that a node can hold

  template <class T>
  static Tensor<T> forward(Context& ctx, const std::vector<Tensor<T>>& parts, int dim) {
    Dims sizes;
    std::int64_t total = 0;
    const Tensor<std::int64_t> starts = empty<std::int64_t>({std::int64_t(parts.size())});
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Shape& s = parts[i].shape();
      starts.data()[i] = total;
      if (detail::is_nothing(s)) continue;
      if (sizes.empty()) sizes = s;
      detail::check_joint(sizes, s, dim, i);
      if (__builtin_add_overflow(total, s[dim], &total)) throw ShapeError("cat: more elements than int64 can count");
    }
    if (sizes.empty()) return empty<T>({0});
    sizes[dim] = total;
    const Tensor<T> y = empty<T>(sizes);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Tensor<T>& x = parts[i];
      if (x.numel() == 0) continue;
      T* to = y.data() + starts.data()[i] * y.strides()[dim];
      cpu::copy<T, T>(x.dim(), x.shape().data(), {to, y.strides().data()}, source(x));
    }
    ctx.keep(starts);
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const int dim = grad.options<int>();
    const Tensor<std::int64_t> starts = grad.kept<std::int64_t>(0);
    for (int i = 0; i < grad.inputs(); ++i) {
      if (!grad.wants(i)) continue;
      const Shape& shape = grad.input_shape(i);
      if (!detail::is_nothing(shape)) grad[i] = narrow(g, dim, starts.data()[i], shape[dim]);
    }
  }
};

}  // namespace op

/// The tensors one after the other along `dim`. Their other sizes agree, else throws ShapeError; empty ones of one
/// dimension are passed over. Throws ShapeError without tensors. See torch.cat.
template <class T>
Tensor<T> cat(const std::vector<Tensor<T>>& tensors, std::int64_t dim = 0) {
  if (tensors.empty()) throw ShapeError("cat: expected at least one tensor, got none");
  if (tensors.size() > op::Cat::most) {  // in two steps
    std::vector<Tensor<T>> joined;
    for (std::size_t i = 0; i < tensors.size(); i += op::Cat::most) {
      const auto begin = tensors.begin() + std::ptrdiff_t(i);
      const auto count = std::min(op::Cat::most, tensors.size() - i);
      joined.push_back(cat(std::vector<Tensor<T>>(begin, begin + std::ptrdiff_t(count)), dim));
    }
    return cat(joined, dim);
  }
  const Shape* like = &tensors[0].shape();
  for (const Tensor<T>& x : tensors) {
    if (x.dim() == 0) throw ShapeError("cat: expected at least one dimension, got a scalar; use stack");
    if (detail::is_nothing(*like)) like = &x.shape();
  }
  return apply<op::Cat>(tensors, wrap_dim("cat", dim, like->size()));
}
template <class T>
Tensor<T> cat(std::initializer_list<Tensor<T>> tensors, std::int64_t dim = 0) {
  return cat(std::vector<Tensor<T>>(tensors), dim);
}

/// The tensors, all of one shape, along a new dimension at `dim`. Throws ShapeError if shapes differ or there are no
/// tensors. See torch.stack.
template <class T>
Tensor<T> stack(const std::vector<Tensor<T>>& tensors, std::int64_t dim = 0) {
  if (tensors.empty()) throw ShapeError("stack: expected at least one tensor, got none");
  const Shape& shape = tensors[0].shape();
  const int d = wrap_dim("stack", dim, shape.size() + 1);
  std::vector<Tensor<T>> rows;
  for (const Tensor<T>& x : tensors) {
    if (!(x.shape() == shape)) {
      throw ShapeError(text({"stack: expected tensors of one shape, got ", shape, " and ", x.shape()}));
    }
    rows.push_back(unsqueeze(x, d));
  }
  return cat(rows, d);
}
template <class T>
Tensor<T> stack(std::initializer_list<Tensor<T>> tensors, std::int64_t dim = 0) {
  return stack(std::vector<Tensor<T>>(tensors), dim);
}

/// Side by side: along the second dimension, or the only one; scalars count as [1]. See torch.hstack.
template <class T>
Tensor<T> hstack(const std::vector<Tensor<T>>& tensors) {
  std::vector<Tensor<T>> all;
  for (const Tensor<T>& x : tensors) all.push_back(x.dim() == 0 ? unsqueeze(x, 0) : x);
  return cat(all, all.empty() || all[0].dim() == 1 ? 0 : 1);
}
template <class T>
Tensor<T> hstack(std::initializer_list<Tensor<T>> tensors) {
  return hstack(std::vector<Tensor<T>>(tensors));
}

/// One above the other: along the first dimension; [n] counts as [1, n], a scalar as [1, 1]. See torch.vstack.
template <class T>
Tensor<T> vstack(const std::vector<Tensor<T>>& tensors) {
  std::vector<Tensor<T>> all;
  for (const Tensor<T>& x : tensors) all.push_back(x.dim() < 2 ? view(x, {1, x.numel()}) : x);
  return cat(all, 0);
}
template <class T>
Tensor<T> vstack(std::initializer_list<Tensor<T>> tensors) {
  return vstack(std::vector<Tensor<T>>(tensors));
}

}  // namespace TENET_CONFIG
}  // namespace tenet
