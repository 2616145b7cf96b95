// softmax, log_softmax and logsumexp.
//
// The kernels work on the rows of contiguous matrices: other dimensions are brought to the back and copied first.
#pragma once

#include <tenet/kernels/cpu/softmax.hpp>
#include <tenet/ops/reduce.hpp>
#include <tenet/ops/view.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace detail {

/// The size of the last dimension, and how many rows of it there are.
struct Rows {
  std::int64_t count, size;
  explicit Rows(const Shape& shape) : count(1), size(shape.empty() ? 1 : shape[shape.size() - 1]) {
    for (int d = 0; d + 1 < shape.size(); ++d) count *= shape[d];
  }
};

/// Sums over the last dimension, which stays.
template <class T>
Tensor<T> row_sums(const Tensor<T>& x) {
  return apply<op::Sum>(x, Reduced{x.dim() ? 1u << (x.dim() - 1) : 0, true});
}

}  // namespace detail

namespace op {

/// y * (g - sum(y * g)) along rows: the gradient of softmax by its result.
struct SoftmaxGrad {
  static constexpr const char* name = "softmax_grad";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& y, const Tensor<T>& g) {
    ctx.keep(y);
    ctx.keep(g, ctx.wants(0));
    Tensor<T> dx = empty<T>(y.shape());
    const detail::Rows rows(y.shape());
    cpu::softmax_backward(rows.count, rows.size, y.data(), g.data(), dx.data());
    return dx;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& gg) {
    using detail::row_sums;
    const Tensor<T> y = grad.kept<T>(0);
    if (grad.wants(0)) {
      const Tensor<T> g = grad.kept<T>(1);
      grad[0] = sub(mul(gg, sub(g, row_sums(mul(y, g)))), mul(g, row_sums(mul(y, gg))));
    }
    if (grad.wants(1)) grad[1] = apply<SoftmaxGrad>(y, contiguous(gg));
  }
};

struct Softmax {
  static constexpr const char* name = "softmax";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x) {
    ctx.keep_output();
    Tensor<T> y = empty<T>(x.shape());
    const detail::Rows rows(x.shape());
    cpu::softmax(rows.count, rows.size, x.data(), y.data());
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<SoftmaxGrad>(grad.output<T>(), contiguous(g));
  }
};

/// g - e^y * sum(g) along rows: the gradient of log_softmax by its result.
struct LogSoftmaxGrad {
  static constexpr const char* name = "log_softmax_grad";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& y, const Tensor<T>& g) {
    ctx.keep(y);
    ctx.keep(g, ctx.wants(0));
    Tensor<T> dx = empty<T>(y.shape());
    const detail::Rows rows(y.shape());
    cpu::log_softmax_backward(rows.count, rows.size, y.data(), g.data(), dx.data());
    return dx;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& gg) {
    using detail::row_sums;
    const Tensor<T> p = apply<Softmax>(grad.kept<T>(0)),
                    weighted = mul(p, gg);  // softmax(log_softmax(x)) is softmax(x)
    if (grad.wants(0)) grad[0] = neg(mul(weighted, row_sums(grad.kept<T>(1))));
    if (grad.wants(1)) grad[1] = sub(gg, row_sums(weighted));
  }
};

struct LogSoftmax {
  static constexpr const char* name = "log_softmax";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x) {
    ctx.keep_output();
    Tensor<T> y = empty<T>(x.shape());
    const detail::Rows rows(x.shape());
    cpu::log_softmax(rows.count, rows.size, x.data(), y.data());
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<LogSoftmaxGrad>(grad.output<T>(), contiguous(g));
  }
};

/// g * e^(x - y) of rows x and their logsumexp y, [..., 1]; 0 in rows of -inf.
struct LogSumExpGrad {
  static constexpr const char* name = "logsumexp_grad";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, const Tensor<T>& y, const Tensor<T>& g) {
    ctx.keep(x);
    ctx.keep(y);
    ctx.keep(g, ctx.wants(0) || ctx.wants(1));
    Tensor<T> dx = empty<T>(x.shape());
    const detail::Rows rows(x.shape());
    cpu::logsumexp_backward(rows.count, rows.size, x.data(), y.data(), g.data(), dx.data());
    return dx;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& gg) {
    using detail::row_sums;
    const Tensor<T> x = grad.kept<T>(0), y = grad.kept<T>(1);
    if (grad.wants(0) || grad.wants(1)) {
      const Tensor<T> both = mul(gg, apply<LogSumExpGrad>(x, y, grad.kept<T>(2)));
      if (grad.wants(0)) grad[0] = both;
      if (grad.wants(1)) grad[1] = neg(row_sums(both));
    }
    if (grad.wants(2)) grad[2] = row_sums(mul(gg, apply<LogSumExpGrad>(x, y, ones<T>(y.shape()))));
  }
};

struct LogSumExp {
  static constexpr const char* name = "logsumexp";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x) {
    ctx.keep(x);
    ctx.keep_output();
    Dims shape = x.shape();
    shape[shape.size() - 1] = 1;
    Tensor<T> y = empty<T>(shape);
    const detail::Rows rows(x.shape());
    cpu::logsumexp(rows.count, rows.size, x.data(), y.data());
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<LogSumExpGrad>(grad.kept<T>(0), grad.output<T>(), contiguous(g));
  }
};

}  // namespace op

namespace detail {

/// Runs an operation on rows along dimension `dim`.
template <class Op, TensorLike X>
tensor_t<X> along(const X& x, std::int64_t dim) {
  static_assert(FloatElement<element_t<X>>, "softmax of integers: convert to a floating type first, as to<float>(x)");
  const int d = wrap_dim(Op::name, dim, x.dim()), last = x.dim() - 1;
  if (d >= last) return apply<Op>(contiguous(x));
  return contiguous(movedim(apply<Op>(contiguous(movedim(x, d, last))), last, d));
}

}  // namespace detail

/// e^x / sum of e^x along `dim`. Throws IndexError on a wrong dimension. See torch.softmax.
template <TensorLike X>
tensor_t<X> softmax(const X& x, std::int64_t dim) {
  return detail::along<op::Softmax>(x, dim);
}

/// x - log(sum of e^x) along `dim`. Throws IndexError on a wrong dimension. See torch.log_softmax.
template <TensorLike X>
tensor_t<X> log_softmax(const X& x, std::int64_t dim) {
  return detail::along<op::LogSoftmax>(x, dim);
}

/// log(sum of e^x) over `dims`; with `dims`, `keepdim` and errors of sum (ops/reduce.hpp). Of no elements or -inf
/// alone: -inf, and then the gradient is 0. See torch.logsumexp.
template <TensorLike X>
tensor_t<X> logsumexp(const X& x, const Dims& dims = {}, bool keepdim = false) {
  static_assert(FloatElement<element_t<X>>, "logsumexp of integers: convert to a floating type first, as to<float>(x)");
  const Reduced r = reduced_dims("logsumexp", dims, keepdim, x.dim());
  Dims order, rows;
  for (int d = 0; d < x.dim(); ++d) {
    if (!r.has(d)) order.push_back(d), rows.push_back(x.shape()[d]);
  }
  for (int d = 0; d < x.dim(); ++d) {
    if (r.has(d)) order.push_back(d);
  }
  rows.push_back(reduced_count(x.shape(), r));
  return reshape(apply<op::LogSumExp>(contiguous(reshape(permute(x, order), rows))), reduced_shape(x.shape(), r));
}

}  // namespace TENET_CONFIG
}  // namespace tenet
