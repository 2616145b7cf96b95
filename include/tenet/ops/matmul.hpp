// Matrix products: matmul of any ranks, and linear, the product of a layer.
#pragma once

#include <tenet/kernels/cpu/gemm.hpp>
#include <tenet/ops/autocast.hpp>
#include <tenet/ops/grad_math.hpp>
#include <tenet/ops/view.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace detail {

/// The last two dimensions of `x` as a matrix.
template <class T>
cpu::MatrixView<T> matrix(const Tensor<T>& x) {
  const int d = x.dim();
  return {x.data(), x.strides()[d - 2], x.strides()[d - 1]};
}

}  // namespace detail

namespace op {

/// [m, k] x [k, n], or as many of them: [b, m, k] x [b, k, n].
struct MatMul {
  static constexpr const char* name = "matmul";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& a, const Tensor<T>& b) {
    ctx.keep(a, ctx.wants(1));
    ctx.keep(b, ctx.wants(0));
    Dims shape = a.shape();
    shape[a.dim() - 1] = b.size(-1);
    Tensor<T> y = empty<T>(shape);
    const std::int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
    if (a.dim() == 2) {
      cpu::gemm<T>(m, n, k, detail::matrix(a), detail::matrix(b), y.data(), n);
    } else {
      cpu::gemm_batched<T>(a.size(0), m, n, k, detail::matrix(a), a.strides()[0], detail::matrix(b), b.strides()[0],
                           y.data(), n, m * n);
    }
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    if (grad.wants(0)) grad[0] = apply<MatMul>(g, transpose(grad.kept<T>(1), -2, -1));
    if (grad.wants(1)) grad[1] = apply<MatMul>(transpose(grad.kept<T>(0), -2, -1), g);
  }
};

/// y = x w^T + b for x [m, in], w [out, in] and b [out] or none.
struct Linear {
  static constexpr const char* name = "linear";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b) {
    ctx.keep(x, ctx.wants(1));
    ctx.keep(w, ctx.wants(0));
    const std::int64_t m = x.shape()[0], k = x.shape()[1], n = w.shape()[0];
    Tensor<T> y = empty<T>({m, n});
    const Tensor<T> bias = b ? packed(b) : b;
    cpu::gemm<T>(m, n, k, detail::matrix(x), detail::matrix(w).transposed(), y.data(), n,
                 {.col_bias = bias ? bias.data() : nullptr});
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    if (grad.wants(0)) grad[0] = apply<MatMul>(g, grad.kept<T>(1));
    if (grad.wants(1)) grad[1] = apply<MatMul>(t(g), grad.kept<T>(0));
    if (grad.wants(2)) grad[2] = g;
  }
};

}  // namespace op

namespace detail {

/// Two matrices, or two batches of them; in low precision under autocast, and so is run_linear().
template <class T>
Tensor<T> run_matmul(const Tensor<T>& a, const Tensor<T>& b) {
  if constexpr (std::is_same_v<T, float>) {
    if (state::autocast) return state::autocast->matmul(a, b);
  }
  return apply<op::MatMul>(a, b);
}

template <class T>
Tensor<T> run_linear(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b) {
  if constexpr (std::is_same_v<T, float>) {
    if (state::autocast) return state::autocast->linear(x, w, b);
  }
  return apply<op::Linear>(x, w, b);
}

}  // namespace detail

/// The product of two tensors, by rank:
///   [k] x [k] -> []                      [m, k] x [k, n] -> [m, n]
///   [m, k] x [k] -> [m]                  [k] x [k, n] -> [n]
///   [..., m, k] x [..., k, n] -> [..., m, n], the leading dimensions broadcast.
/// Throws ShapeError if the inner sizes differ, an operand is a scalar, or the batches do not broadcast.
/// See torch.matmul.
template <TensorLike A, TensorLike B>
tensor_t<A> matmul(const A& a, const B& b) {
  using T = element_t<A>;
  static_assert(std::is_same_v<T, element_t<B>>, "operands of different element types: convert one with to<T>()");
  const Tensor<T>&x = a, &y = b;
  if (x.dim() == 0 || y.dim() == 0 || x.size(-1) != y.size(y.dim() == 1 ? 0 : -2)) {
    throw ShapeError(text({"matmul: cannot multiply ", x.shape(), " by ", y.shape()}));
  }
  if (x.dim() == 1) {
    const Tensor<T> product = matmul(unsqueeze(x, 0), y.dim() == 1 ? unsqueeze(y, 1) : y);
    return y.dim() == 1 ? reshape(product, {}) : squeeze(product, -2);
  }
  if (y.dim() == 1) return squeeze(matmul(x, unsqueeze(y, 1)), -1);
  if (x.dim() == 2 && y.dim() == 2) return detail::run_matmul(x, y);
  Dims rows = x.shape();  // of the result
  if (y.dim() == 2) {
    // One matrix for the whole batch: a single product of all rows.
    rows[x.dim() - 1] = y.shape()[1];
    return reshape(detail::run_matmul(flatten(x, 0, -2), y), rows);
  }
  const auto batch_of = [](const Shape& s) {
    Dims lead = s;
    lead.resize(s.size() - 2);
    return Shape(lead);
  };
  const Shape batch = broadcast_shapes("matmul", batch_of(x.shape()), batch_of(y.shape()));
  const auto batched = [&](const Tensor<T>& t) {
    Dims sizes = batch;
    sizes.push_back(t.size(-2));
    sizes.push_back(t.size(-1));
    return reshape(expand(t, sizes), {batch.numel(), t.size(-2), t.size(-1)});
  };
  Dims sizes = batch;
  sizes.push_back(x.size(-2));
  sizes.push_back(y.size(-1));
  return reshape(detail::run_matmul(batched(x), batched(y)), sizes);
}

/// y = x w^T + b: x [..., in], w [out, in], b [out] or undefined -> [..., out]. Throws ShapeError where they do
/// not fit. See torch.nn.functional.linear.
template <TensorLike X, TensorLike W, TensorLike B = Tensor<element_t<X>>>
tensor_t<X> linear(const X& x, const W& weight, const B& bias = {}) {
  using T = element_t<X>;
  const Tensor<T>&w = weight, &b = bias;
  if (w.dim() != 2) throw ShapeError(text({"linear: expected a weight [out, in], got ", w.shape()}));
  if (x.dim() == 0 || x.size(-1) != w.shape()[1]) {
    throw ShapeError(text({"linear: expected ", w.shape()[1], " input features, got input ", x.shape()}));
  }
  if (b && !(b.shape() == Shape{w.shape()[0]})) {
    throw ShapeError(text({"linear: expected a bias [", w.shape()[0], "], got ", b.shape()}));
  }
  if (x.dim() == 2) return detail::run_linear<T>(x, w, b);
  Dims sizes = x.shape();
  sizes[x.dim() - 1] = w.shape()[0];
  const Tensor<T>& all = x;
  const Tensor<T> rows = x.dim() == 1 ? unsqueeze(all, 0) : flatten(all, 0, -2);
  return reshape(detail::run_linear(rows, w, b), sizes);
}

}  // namespace TENET_CONFIG

template <class T>
TENET_TAG inline Tensor<T> Tensor<T>::matmul(const Tensor& other) const {
  return tenet::matmul(*this, other);
}

}  // namespace tenet
