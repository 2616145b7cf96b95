// Sums, means and counts over any dimensions.
//
// `dims` names the dimensions to go over, counted from the end when negative; none named means all. With
// `keepdim` they stay as size 1, else they go. Each function throws IndexError on a dimension that `x` lacks or
// that is named twice. Half and bfloat16 are accumulated in float.
#pragma once

#include <tenet/ops/grad_math.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

/// The dimensions a reduction goes over (bit d: dimension d), and whether they stay as size 1.
struct Reduced {
  std::uint32_t dims;
  bool keepdim;

  bool has(int d) const { return dims >> d & 1; }
};

/// Reads `dims` for a tensor of `rank` dimensions.
inline Reduced reduced_dims(const char* op, const Dims& dims, bool keepdim, int rank) {
  std::uint32_t all = 0;
  for (std::int64_t d : dims) {
    const std::uint32_t bit = 1u << wrap_dim(op, d, rank);
    if (all & bit) throw IndexError(text({op, ": expected each dimension once, got ", dims}));
    all |= bit;
  }
  const std::uint32_t existing = (1u << rank) - 1;
  return {(dims.empty() ? existing : all) & existing, keepdim};
}

/// The shape that is left of `shape`.
inline Shape reduced_shape(const Shape& shape, Reduced r) {
  Dims out;
  for (int d = 0; d < shape.size(); ++d) {
    if (!r.has(d)) out.push_back(shape[d]);
    else if (r.keepdim) out.push_back(1);
  }
  return out;
}

/// The number of elements that become one.
inline std::int64_t reduced_count(const Shape& shape, Reduced r) {
  std::int64_t n = 1;
  for (int d = 0; d < shape.size(); ++d) {
    if (r.has(d)) n *= shape[d];
  }
  return n;
}

/// Runs a reducer of kernels/cpu/reducers.hpp.
template <class Out, class R, class T>
Tensor<Out> reduce(R reducer, const Tensor<T>& x, Reduced r) {
  Tensor<Out> y = empty<Out>(reduced_shape(x.shape(), r));
  cpu::reduce(reducer, x.dim(), x.shape().data(), source(x), r.dims, y.data());
  return y;
}

namespace op {

struct Sum {
  static constexpr const char* name = "sum";
  template <class T>
  static Tensor<sum_t<T>> forward(Context&, const Tensor<T>& x, Reduced r) {
    return reduce<sum_t<T>>(cpu::Sum{}, x, r);
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = spread(g, grad.input_shape(0), grad.options<Reduced>());
  }
};

/// The way back of a sum: every element of a result stands for all that it was made of.
struct Spread {
  struct Options {
    Shape shape;
    Reduced reduced;
  };
  static constexpr const char* name = "spread";
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& y, Options to) {
    Strides strides;
    for (int d = 0, from = 0; d < to.shape.size(); ++d) {
      strides.push_back(to.reduced.has(d) ? 0 : y.strides()[from]);
      if (!to.reduced.has(d) || to.reduced.keepdim) ++from;
    }
    Tensor<T> x(make_alias(*y.impl(), to.shape, strides, 0));
    x.impl()->is_view = true;
    return x;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<Sum>(g, grad.options<Options>().reduced);
  }
};

}  // namespace op

/// A view of `y`, the result of a reduction, in the shape of what was reduced.
template <class T>
Tensor<T> spread(const Tensor<T>& y, const Shape& shape, Reduced r) {
  return apply<op::Spread>(y, op::Spread::Options{shape, r});
}

namespace op {

/// x / by: a count need not fit the element type.
struct DivideBy : UnaryOp<DivideBy> {
  static constexpr const char* name = "divide_by";
  static constexpr Keeps keeps = Keeps::nothing;
  double by = 1;
  explicit DivideBy(double n) : by(n) {}
  template <class T>
  TENET_ALWAYS_INLINE T f(T x) const {
    return x / T(by);
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<DivideBy>(g, grad.options<DivideBy>());
  }
};

/// The sum over some dimensions divided by a number, in the type it is accumulated in.
struct Mean {
  struct Options {
    Reduced reduced;
    double count;
  };
  static constexpr const char* name = "mean";
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& x, Options o) {
    const Tensor<cpu::compute_t<T>> sums = reduce<cpu::compute_t<T>>(cpu::Sum{}, x, o.reduced);
    Tensor<T> y = empty<T>(sums.shape());
    detail::run_unary(detail::Function<DivideBy>{DivideBy(o.count)}, y, sums);
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    const Options& o = grad.options<Options>();
    grad[0] = spread(apply<DivideBy>(g, DivideBy(o.count)), grad.input_shape(0), o.reduced);
  }
};

}  // namespace op

namespace detail {

struct CountNonzero : cpu::Sum {
  template <class T>
  using State = std::int64_t;
  template <class T>
  static std::int64_t identity() {
    return 0;
  }
  template <class T>
  std::int64_t step(std::int64_t s, T x, std::int64_t) const {
    return s + (x != T(0));
  }
};

template <class Out, class R, TensorLike X>
Tensor<Out> count(const char* op, R reducer, const X& x, const Dims& dims, bool keepdim) {
  return reduce<Out>(reducer, static_cast<const tensor_t<X>&>(x), reduced_dims(op, dims, keepdim, x.dim()));
}

}  // namespace detail

/// Sums; integers and bool add up in int64. Of no elements: 0. See torch.sum.
template <TensorLike X>
Tensor<sum_t<element_t<X>>> sum(const X& x, const Dims& dims = {}, bool keepdim = false) {
  return apply<op::Sum>(static_cast<const tensor_t<X>&>(x), reduced_dims("sum", dims, keepdim, x.dim()));
}

/// Arithmetic means of floating elements. Of no elements: NaN. See torch.mean.
template <TensorLike X>
tensor_t<X> mean(const X& x, const Dims& dims = {}, bool keepdim = false) {
  static_assert(FloatElement<element_t<X>>, "mean of integers: convert to a floating type first, as to<float>(x)");
  const Reduced r = reduced_dims("mean", dims, keepdim, x.dim());
  return apply<op::Mean>(static_cast<const tensor_t<X>&>(x), op::Mean::Options{r, double(reduced_count(x.shape(), r))});
}

/// Whether any element is not 0 (NaN is not). Of no elements: false. See torch.any.
template <TensorLike X>
Tensor<bool> any(const X& x, const Dims& dims = {}, bool keepdim = false) {
  return detail::count<bool>("any", cpu::Any{}, x, dims, keepdim);
}

/// Whether no element is 0. Of no elements: true. See torch.all.
template <TensorLike X>
Tensor<bool> all(const X& x, const Dims& dims = {}, bool keepdim = false) {
  return detail::count<bool>("all", cpu::All{}, x, dims, keepdim);
}

/// How many elements are not 0. See torch.count_nonzero.
template <TensorLike X>
Tensor<std::int64_t> count_nonzero(const X& x, const Dims& dims = {}, bool keepdim = false) {
  return detail::count<std::int64_t>("count_nonzero", detail::CountNonzero{}, x, dims, keepdim);
}

}  // namespace TENET_CONFIG

template <class T>
TENET_TAG inline Tensor<sum_t<T>> Tensor<T>::sum() const {
  return tenet::sum(*this);
}
template <class T>
TENET_TAG inline Tensor<sum_t<T>> Tensor<T>::sum(const Dims& dims, bool keepdim) const {
  return tenet::sum(*this, dims, keepdim);
}
template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::mean() const {
  return tenet::mean(*this);
}
template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::mean(const Dims& dims, bool keepdim) const {
  return tenet::mean(*this, dims, keepdim);
}

}  // namespace tenet
