// Copies of a tensor in another arrangement: flip, roll, pad, the triangles of matrices, repetitions.
#pragma once

#include <tenet/kernels/cpu/triangle.hpp>
#include <tenet/ops/index.hpp>

namespace tenet {

/// What pad() puts around: a value, the mirror image, the edge, or the other end.
enum class PadMode { constant, reflect, replicate, circular };

inline namespace TENET_CONFIG {

namespace op {

/// Backwards along the dimensions whose bit is set.
struct Flip {
  static constexpr const char* name = "flip";
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& x, std::uint32_t dims) {
    const Tensor<T> y = empty<T>(x.shape());
    if (x.numel() == 0) return y;
    Strides strides = x.strides();
    const T* from = x.data();
    for (int d = 0; d < x.dim(); ++d) {
      if (!(dims >> d & 1)) continue;
      from += (x.shape()[d] - 1) * strides[d];
      strides[d] = -strides[d];
    }
    cpu::copy<T, T>(x.dim(), x.shape().data(), target(y), {from, strides.data()});
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<Flip>(g, grad.options<std::uint32_t>());
  }
};

/// Entry i of dimension `dim` goes to i + shift, 0 <= shift < size, and what leaves at the end comes in at the start.
struct Roll {
  struct Options {
    int dim;
    std::int64_t shift;
  };
  static constexpr const char* name = "roll";
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& x, Options o) {
    const Tensor<T> y = empty<T>(x.shape());
    const std::int64_t n = x.shape()[o.dim];
    const auto move = [&](std::int64_t from, std::int64_t to, std::int64_t length) {
      Shape part = x.shape();
      part[o.dim] = length;
      cpu::copy<T, T>(x.dim(), part.data(), {y.data() + to * y.strides()[o.dim], y.strides().data()},
                      {x.data() + from * x.strides()[o.dim], x.strides().data()});
    };
    move(0, o.shift, n - o.shift);
    move(n - o.shift, 0, o.shift);
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const auto o = grad.options<Options>();
    grad[0] = apply<Roll>(g, Options{o.dim, o.shift ? g.shape()[o.dim] - o.shift : 0});
  }
};

/// `value` around a tensor: before[d] and after[d] entries of dimension d; negative ones cut.
struct Pad {
  template <class T>
  struct Options {
    Dims before, after;
    T value;
  };
  static constexpr const char* name = "pad";
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& x, Options<T> o) {
    Dims sizes = x.shape(), common = sizes;
    for (int d = 0; d < x.dim(); ++d) {
      std::int64_t& n = sizes[d];
      if (__builtin_add_overflow(n, o.before[d], &n) || __builtin_add_overflow(n, o.after[d], &n) || n < 0) {
        throw ShapeError(text({"pad: cannot pad ", x.shape(), " by ", o.before, " before and ", o.after, " after"}));
      }
      common[d] = std::max<std::int64_t>(
          x.shape()[d] + std::min<std::int64_t>(o.before[d], 0) + std::min<std::int64_t>(o.after[d], 0), 0);
    }
    const Tensor<T> y = full<T>(sizes, o.value);
    if (common.contains(0)) return y;
    const T* from = x.data();
    T* to = y.data();
    for (int d = 0; d < x.dim(); ++d) {
      if (o.before[d] < 0) from -= o.before[d] * x.strides()[d];
      else to += o.before[d] * y.strides()[d];
    }
    cpu::copy<T, T>(x.dim(), common.data(), {to, y.strides().data()}, {from, x.strides().data()});
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    Options<T> back = grad.options<Options<T>>();
    back.value = T(0);
    for (std::int64_t& n : back.before) n = -n;
    for (std::int64_t& n : back.after) n = -n;
    grad[0] = apply<Pad>(g, back);
  }
};

/// One triangle of the matrices of the last two dimensions.
struct Triangle {
  struct Options {
    std::int64_t diagonal;
    bool upper;
  };
  static constexpr const char* name = "triangle";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, Options o) {
    const Tensor<T> y = Cast<T, T>::forward(ctx, x);
    const std::int64_t rows = x.size(-2), columns = x.size(-1);
    if (y.numel() > 0) {
      cpu::keep_triangle(static_cast<char*>(y.data_ptr()), sizeof(T), y.numel() / (rows * columns), rows, columns,
                         o.diagonal, o.upper);
    }
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<Triangle>(g, grad.options<Options>());
  }
};

}  // namespace op

/// Backwards along `dims`: a copy. Throws IndexError on a wrong dimension or one named twice. See torch.flip.
template <TensorLike X>
tensor_t<X> flip(const X& x, const Dims& dims) {
  std::uint32_t flipped = 0;
  for (std::int64_t dim : dims) {
    const std::uint32_t bit = 1u << wrap_dim("flip", dim, x.dim());
    if (flipped & bit) throw IndexError(text({"flip: expected each dimension once, got ", dims}));
    flipped |= bit;
  }
  return apply<op::Flip>(static_cast<const tensor_t<X>&>(x), flipped);
}

/// Entry i of dimension dims[k] goes to i + shifts[k], and around; without `dims`, along the flattened tensor. Throws
/// ShapeError unless there is a shift for each dimension. See torch.roll.
template <TensorLike X>
tensor_t<X> roll(const X& x, const Dims& shifts, const Dims& dims = {}) {
  if (dims.empty() && shifts.size() == 1) return view(roll(flatten(x), shifts, {0}), x.shape());
  if (shifts.size() != dims.size()) {
    throw ShapeError(text({"roll: expected a shift for each dimension, got ", shifts, " for ", dims}));
  }
  tensor_t<X> y = x;
  for (int k = 0; k < dims.size(); ++k) {
    const int d = detail::part_dim("roll", x.shape(), dims[k]);
    const std::int64_t n = std::max<std::int64_t>(x.shape()[d], 1), shift = shifts[k] % n;
    y = apply<op::Roll>(y, op::Roll::Options{d, shift < 0 ? shift + n : shift});
  }
  return y;
}

namespace detail {

/// The positions that are read along a dimension of size n, padded.
inline Tensor<std::int64_t> padded_positions(PadMode mode, std::int64_t n, std::int64_t before, std::int64_t after) {
  // A mirror image has no second edge, a circle goes round once at most.
  const std::int64_t most = mode == PadMode::reflect    ? n - 1
                            : mode == PadMode::circular ? n
                            : n > 0                     ? before + after
                                                        : 0;
  if (before < 0 || after < 0 || before > most || after > most) {
    throw ShapeError(
        text({"pad: expected from 0 to ", most, " entries around a size of ", n, ", got ", before, " and ", after}));
  }
  const Tensor<std::int64_t> from = empty<std::int64_t>({n + before + after});
  for (std::int64_t k = 0; k < from.numel(); ++k) {
    std::int64_t i = k - before;
    switch (mode) {
      case PadMode::reflect: i = i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i; break;
      case PadMode::circular: i = i < 0 ? i + n : i >= n ? i - n : i; break;
      default: i = std::clamp<std::int64_t>(i, 0, n - 1);
    }
    from.data()[k] = i;
  }
  return from;
}

}  // namespace detail

/// `value`, or what `mode` says, around `x`. `pads` are pairs, before and after, of the last dimension, then of the
/// one before it, ...: {left, right, top, bottom}. Constant padding may be negative, which cuts; reflect takes less
/// than the size, circular no more than it. Throws ShapeError otherwise. See torch.nn.functional.pad.
template <TensorLike X>
tensor_t<X> pad(const X& x, const std::vector<std::int64_t>& pads, PadMode mode = PadMode::constant,
                element_t<X> value = element_t<X>(0)) {
  using T = element_t<X>;
  if (pads.size() % 2 != 0 || pads.size() / 2 > std::size_t(x.dim())) {
    throw ShapeError(text({"pad: expected pairs for at most ", x.dim(), " dimensions of ", x.shape(), ", got ",
                           pads.size(), " numbers"}));
  }
  op::Pad::Options<T> o{x.shape(), x.shape(), value};
  for (int d = 0; d < x.dim(); ++d) {
    const std::size_t k = 2 * std::size_t(x.dim() - 1 - d);
    o.before[d] = k < pads.size() ? pads[k] : 0;
    o.after[d] = k < pads.size() ? pads[k + 1] : 0;
    constexpr std::int64_t limit = std::int64_t(1) << 60;  // sums stay far from overflow
    if (std::max(o.before[d], o.after[d]) > limit || std::min(o.before[d], o.after[d]) < -limit) {
      throw ShapeError(text({"pad: cannot pad by ", o.before[d], " and ", o.after[d]}));
    }
  }
  if (mode == PadMode::constant) return apply<op::Pad>(static_cast<const Tensor<T>&>(x), o);
  Tensor<T> y = x;
  for (int d = 0; d < x.dim(); ++d) {
    if (o.before[d] == 0 && o.after[d] == 0) continue;
    y = index_select(y, d, detail::padded_positions(mode, x.shape()[d], o.before[d], o.after[d]));
  }
  return y;
}

namespace detail {
template <TensorLike X>
tensor_t<X> triangle(const char* op, const X& x, std::int64_t diagonal, bool upper) {
  if (x.dim() < 2) throw ShapeError(text({op, ": expected at least 2 dimensions, got ", x.shape()}));
  // A diagonal far outside is as good as one just outside, and does not overflow.
  const std::int64_t limited = std::clamp(diagonal, -x.size(-2) - 1, x.size(-1) + 1);
  return apply<op::Triangle>(static_cast<const tensor_t<X>&>(x), op::Triangle::Options{limited, upper});
}
}  // namespace detail

/// The matrices of the last two dimensions with 0 above the diagonal, which is `diagonal` to the right of the main
/// one. Throws ShapeError below 2 dimensions. See torch.tril.
template <TensorLike X>
tensor_t<X> tril(const X& x, std::int64_t diagonal = 0) {
  return detail::triangle("tril", x, diagonal, false);
}
/// The same with 0 below the diagonal. See torch.triu.
template <TensorLike X>
tensor_t<X> triu(const X& x, std::int64_t diagonal = 0) {
  return detail::triangle("triu", x, diagonal, true);
}

namespace detail {

/// `x`, contiguous, as [outer, n, rest], whose middle is repeated `times` as a block and, in the shape `to`, laid out.
template <class T>
Tensor<T> repeat_block(const Tensor<T>& x, std::int64_t outer, std::int64_t rest, std::int64_t times, const Shape& to) {
  return reshape(expand(reshape(x, {outer, 1, rest}), {outer, times, rest}), to);
}

inline std::int64_t product(const Shape& shape, int begin, int end) {
  std::int64_t n = 1;
  for (int d = begin; d < end; ++d) n *= shape[d];
  return n;
}

}  // namespace detail

/// A copy in which `x` stands times[d] times along dimension d; there may be more `times` than dimensions, which are
/// then added in front. Throws ShapeError if there are fewer, or one is negative. See torch.Tensor.repeat.
template <TensorLike X>
tensor_t<X> repeat(const X& x, const Dims& times) {
  const int lead = times.size() - x.dim();
  if (lead < 0) {
    throw ShapeError(text({"repeat: expected at least ", x.dim(), " numbers for ", x.shape(), ", got ", times}));
  }
  Dims sizes = x.shape();
  for (int i = 0; i < lead; ++i) sizes.insert(0, 1);
  tensor_t<X> y = reshape(x, sizes);
  for (int d = sizes.size() - 1; d >= 0; --d) {
    if (times[d] == 1) continue;
    if (times[d] < 0 || __builtin_mul_overflow(sizes[d], times[d], &sizes[d])) {
      throw ShapeError(text({"repeat: cannot repeat ", x.shape(), " ", times, " times"}));
    }
    const std::int64_t outer = detail::product(y.shape(), 0, d), rest = detail::product(y.shape(), d, y.dim());
    y = detail::repeat_block(y, outer, rest, times[d], sizes);
  }
  return y.impl()->storage.get() == x.impl()->storage.get() ? clone(y) : y;
}

/// As repeat, but fewer `times` than dimensions are those of the last ones. See torch.tile.
template <TensorLike X>
tensor_t<X> tile(const X& x, const Dims& times) {
  Dims all = times;
  while (all.size() < x.dim()) all.insert(0, 1);
  return repeat(x, all);
}

/// A copy in which every entry of dimension `dim` stands `times` times, one beside the other. Throws ShapeError if
/// `times` is negative. See torch.repeat_interleave.
template <TensorLike X>
tensor_t<X> repeat_interleave(const X& x, std::int64_t times, std::int64_t dim) {
  const int d = detail::part_dim("repeat_interleave", x.shape(), dim);
  Dims sizes = x.shape();
  if (times < 0 || __builtin_mul_overflow(sizes[d], times, &sizes[d])) {
    throw ShapeError(text({"repeat_interleave: cannot repeat ", x.shape(), " ", times, " times"}));
  }
  const std::int64_t outer = detail::product(x.shape(), 0, d + 1), rest = detail::product(x.shape(), d + 1, x.dim());
  const tensor_t<X> y = detail::repeat_block(static_cast<const tensor_t<X>&>(x), outer, rest, times, sizes);
  return y.impl()->storage.get() == x.impl()->storage.get() ? clone(y) : y;
}

}  // namespace TENET_CONFIG
}  // namespace tenet
