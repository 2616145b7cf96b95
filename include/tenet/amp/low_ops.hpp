// Products whose operands are rounded to a type of half precision: sums and results are float.
//
// The low copies are what is kept for backward, in half the memory; backward rounds the gradient too and multiplies in
// the same way. Rounding passes gradients on as if it were not there.
#pragma once

#include <tenet/amp/low_weights.hpp>
#include <tenet/kernels/cpu/conv2d_low.hpp>
#include <tenet/ops/conv2d.hpp>
#include <tenet/ops/matmul.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace detail {

/// A matrix [m, k] or a batch of them [b, m, k] as an operand, perhaps turned around.
template <class Low>
struct LowOperand {
  const Tensor<Low>& x;
  bool turned = false;

  cpu::MatrixView<Low> view() const { return turned ? matrix(x).transposed() : matrix(x); }
  std::int64_t rows() const { return x.size(turned ? -1 : -2); }
  std::int64_t cols() const { return x.size(turned ? -2 : -1); }
  std::int64_t step() const { return x.dim() == 3 ? x.strides()[0] : 0; }
};

/// a b + bias, the bias one number a column.
template <class Low>
Tensor<float> low_product(LowOperand<Low> a, LowOperand<Low> b, const Tensor<float>& bias = {}) {
  const std::int64_t m = a.rows(), k = a.cols(), n = b.cols(), batch = a.x.dim() == 3 ? a.x.size(0) : 1;
  const Tensor<float> y = a.x.dim() == 3 ? empty<float>({batch, m, n}) : empty<float>({m, n});
  cpu::gemm_batched<Low>(batch, m, n, k, a.view(), a.step(), b.view(), b.step(), y.data(), n, m * n,
                         {.col_bias = bias ? bias.data() : nullptr});
  return y;
}

/// Backward of a low operation keeps no way back to the operands themselves.
inline void check_once(const char* op) {
  if (state::grad_enabled) {
    throw NotImplemented(text({op, ": under autocast it cannot be differentiated twice; compute it outside"}));
  }
}

}  // namespace detail

namespace op {

/// op::MatMul in low precision.
template <class Low>
struct LowMatMul {
  static constexpr const char* name = "matmul";
  static Tensor<float> forward(Context& ctx, const Tensor<float>& a, const Tensor<float>& b) {
    const Tensor<Low> low_a = detail::lowered<Low>(a), low_b = detail::lowered<Low>(b);
    ctx.keep(low_a, ctx.wants(1));
    ctx.keep(low_b, ctx.wants(0));
    return detail::low_product<Low>({low_a}, {low_b});
  }
  static void backward(Grad grad, const Tensor<float>& g) {
    detail::check_once(name);
    const Tensor<Low> low_g = detail::rounded<Low>(g);
    if (grad.wants(0)) grad[0] = detail::low_product<Low>({low_g}, {grad.kept<Low>(1), true});
    if (grad.wants(1)) grad[1] = detail::low_product<Low>({grad.kept<Low>(0), true}, {low_g});
  }
};

/// op::Linear in low precision; the bias is added in float.
template <class Low>
struct LowLinear {
  static constexpr const char* name = "linear";
  static Tensor<float> forward(Context& ctx, const Tensor<float>& x, const Tensor<float>& w, const Tensor<float>& b) {
    const Tensor<Low> low_x = detail::lowered<Low>(x), low_w = detail::lowered<Low>(w);
    ctx.keep(low_x, ctx.wants(1));
    ctx.keep(low_w, ctx.wants(0));
    return detail::low_product<Low>({low_x}, {low_w, true}, b ? packed(b) : b);
  }
  static void backward(Grad grad, const Tensor<float>& g) {
    detail::check_once(name);
    if (grad.wants(2)) grad[2] = g;
    if (!grad.wants(0) && !grad.wants(1)) return;
    const Tensor<Low> low_g = detail::rounded<Low>(g);
    if (grad.wants(0)) grad[0] = detail::low_product<Low>({low_g}, {grad.kept<Low>(1)});
    if (grad.wants(1)) grad[1] = detail::low_product<Low>({low_g, true}, {grad.kept<Low>(0)});
  }
};

/// op::Conv2d in low precision; the bias is added in float.
template <class Low>
struct LowConv2d {
  static constexpr const char* name = "conv2d";
  static Tensor<float> forward(Context& ctx, const Tensor<float>& x, const Tensor<float>& w, const Tensor<float>& b,
                               const detail::Conv2dShape& s) {
    const Tensor<Low> low_x = detail::lowered<Low>(x), low_w = detail::lowered<Low>(w);
    ctx.keep(low_x, ctx.wants(1));
    ctx.keep(low_w, ctx.wants(0));
    const Tensor<float> y = empty<float>(detail::output_shape(s)), bias = b ? packed(b) : b;
    cpu::conv2d_forward_low<Low>(s, low_x.data(), low_w.data(), bias ? bias.data() : nullptr, y.data());
    return y;
  }
  static void backward(Grad grad, const Tensor<float>& g) {
    detail::check_once(name);
    const auto& s = grad.options<detail::Conv2dShape>();
    if (grad.wants(2)) grad[2] = reshape(sum_to(g, {1, s.o, 1, 1}), {s.o});
    if (!grad.wants(0) && !grad.wants(1)) return;
    const Tensor<Low> low_g = detail::rounded<Low>(g);
    if (grad.wants(0)) {
      const Tensor<float> dx = empty<float>(detail::input_shape(s));
      cpu::conv2d_backward_data_low<Low>(s, low_g.data(), grad.kept<Low>(1).data(), dx.data());
      grad[0] = dx;
    }
    if (grad.wants(1)) {
      const Tensor<float> dw = empty<float>(detail::weight_shape(s));
      cpu::conv2d_backward_weight_low<Low>(s, grad.kept<Low>(0).data(), low_g.data(), dw.data());
      grad[1] = dw;
    }
  }
};

}  // namespace op

}  // namespace TENET_CONFIG
}  // namespace tenet
