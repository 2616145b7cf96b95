// Operations that move tensors between ranks, differentiable: what one does forward, its partner does backward.
//   copy_to      the same tensor for each rank     <->  reduce_from  the sum over the ranks
//   scatter_to   each rank's part of a tensor      <->  gather_from  the parts of all ranks
//
// They stand at the border of a region in which the ranks compute different parts of one result, as in Shoeybi et al.,
// "Megatron-LM", 2019. Outside all ranks have the same tensors and gradients, bit by bit. All ranks run the same
// operations in the same order, backward as well.
#pragma once

#include <tenet/ops/index.hpp>
#include <tenet/ops/inplace.hpp>
#include <tenet/parallel/communicator_ref.hpp>

namespace tenet::parallel {
inline namespace TENET_CONFIG {

namespace detail {

/// The options of these operations.
struct Exchange {
  CommunicatorRef comm;
  int dim = 0;
};

}  // namespace detail

namespace op {

struct ReduceFrom;

struct CopyTo {
  static constexpr const char* name = "copy_to";
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& x, detail::Exchange) {
    return Tensor<T>(tenet::detail::make_view(*x.impl(), x.shape(), x.strides(), 0));
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<ReduceFrom>(g, grad.options<detail::Exchange>());
  }
};

struct ReduceFrom {
  static constexpr const char* name = "reduce_from";
  static constexpr bool reuses = true;
  template <class X>
  static tensor_t<X> forward(Context& ctx, X&& x, detail::Exchange e) {
    using T = element_t<X>;
    if constexpr (sizeof(T) == 2) {  // halves add up in float
      const Tensor<float> sum = tenet::op::Cast<T, float>::forward(ctx, x);
      e.comm.all_reduce(sum.data(), sum.numel(), name);
      return tenet::op::Cast<float, T>::forward(ctx, sum);
    } else {
      const Tensor<T> sum = tenet::detail::writable(std::forward<X>(x));
      e.comm.all_reduce(sum.data(), sum.numel(), name);
      return sum;
    }
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<CopyTo>(g, grad.options<detail::Exchange>());
  }
};

struct GatherFrom;

struct ScatterTo {
  static constexpr const char* name = "scatter_to";
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& x, detail::Exchange e) {
    const std::int64_t n = x.shape()[e.dim] / e.comm.size();
    return Tensor<T>(
        tenet::detail::view_part(*x.impl(), {.dim = e.dim, .start = e.comm.rank() * n, .step = 1, .length = n}));
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<GatherFrom>(g, grad.options<detail::Exchange>());
  }
};

struct GatherFrom {
  static constexpr const char* name = "gather_from";
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& x, detail::Exchange e) {
    const Tensor<T> mine = packed(x);
    Dims sizes = x.shape();
    sizes.insert(0, e.comm.size());
    const Tensor<T> parts = empty<T>(sizes);
    e.comm.all_gather(mine.data(), parts.data(), x.numel() * std::int64_t(sizeof(T)), name);
    const std::int64_t n = x.shape()[e.dim];
    sizes = x.shape();
    sizes[e.dim] = n * e.comm.size();
    const Tensor<T> y = empty<T>(sizes);
    for (int r = 0; r < e.comm.size(); ++r) narrow(y, e.dim, r * n, n).copy_(parts[r]);
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<ScatterTo>(g, grad.options<detail::Exchange>());
  }
};

}  // namespace op

/// `x`, which all ranks have, for each rank to compute its part from. Its gradient is the sum over the ranks.
template <TensorLike X>
tensor_t<X> copy_to(const X& x, CommunicatorRef comm) {
  return apply<op::CopyTo>(static_cast<const tensor_t<X>&>(x), detail::Exchange{comm});
}

/// The sum of the ranks' tensors, of one shape, on all of them. Throws Error where shapes differ in size.
template <TensorLike X>
tensor_t<X> reduce_from(X&& x, CommunicatorRef comm) {
  return apply<op::ReduceFrom>(as_tensor(std::forward<X>(x)), detail::Exchange{comm});
}

/// This rank's part of `x`, which all ranks have: of dimension `dim`, cut into equal parts in the order of the ranks. A
/// view. Throws IndexError on a wrong dimension, ShapeError where the ranks do not divide it.
template <TensorLike X>
tensor_t<X> scatter_to(const X& x, CommunicatorRef comm, std::int64_t dim = -1) {
  const int d = tenet::detail::part_dim("scatter_to", x.shape(), dim);
  if (x.shape()[d] % comm.size()) {
    throw ShapeError(text(
        {"scatter_to: expected a size of dimension ", d, " that ", comm.size(), " ranks divide, got ", x.shape()}));
  }
  return apply<op::ScatterTo>(static_cast<const tensor_t<X>&>(x), detail::Exchange{comm, d});
}

/// The ranks' tensors, of one shape, joined along `dim` in the order of the ranks, on all of them. Throws IndexError on
/// a wrong dimension, Error where shapes differ in size.
template <TensorLike X>
tensor_t<X> gather_from(const X& x, CommunicatorRef comm, std::int64_t dim = -1) {
  const int d = tenet::detail::part_dim("gather_from", x.shape(), dim);
  return apply<op::GatherFrom>(static_cast<const tensor_t<X>&>(x), detail::Exchange{comm, d});
}

}  // namespace TENET_CONFIG
}  // namespace tenet::parallel
