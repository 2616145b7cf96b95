// Formats that keep a weight small and compute in float: it is expanded in registers for few rows of input, else a
// block at a time, in the cache.
#pragma once

#include <tenet/kernels/cpu/narrow_dots.hpp>
#include <tenet/quant/affine.hpp>
#include <tenet/quant/linear_shape.hpp>

namespace tenet::quant {
inline namespace TENET_CONFIG {

namespace detail {

/// Base of formats with expand(first row, rows, to): rows of the weight, seen as a matrix [out, k], as float; and with
/// matrix(): the same as a cpu::NarrowMatrix.
template <class Self, class T>
struct WeightOnly : nn::WeightFormat<T> {
  static_assert(std::is_same_v<T, float>, "small weights are for layers of float");

  std::string_view name() const override { return Self::format_name; }
  std::shared_ptr<nn::WeightFormat<T>> clone() const override {
    return std::make_shared<Self>(static_cast<const Self&>(*this));
  }
  Tensor<T> dense(const Tensor<T>&) const override {
    const Shape shape = this->shape();
    Tensor<T> w = empty<T>(shape);
    const std::int64_t rows = shape[0], k = rows ? w.numel() / rows : 0;
    if (k == 0) return w;
    parallel_for(rows, (std::int64_t{1} << 15) / k + 1, [&](std::int64_t begin, std::int64_t end) {
      self().expand(begin, end - begin, w.data() + begin * k);
    });
    return w;
  }
  /// Where gradients are recorded, they flow to the input and the bias.
  Tensor<T> linear(const Tensor<T>& x, const Tensor<T>& parameter, const Tensor<T>& bias) const override {
    const Shape shape = this->shape();
    const std::int64_t rows = linear_rows(x.shape(), shape, bias), out = shape[0], in = shape[1];
    const bool recorded = is_grad_enabled() && (x.requires_grad() || (bias && bias.requires_grad()));
    if (recorded || rows == 0 || out == 0 || in == 0) return tenet::linear(x, dense(parameter), bias);
    Tensor<T> y = empty<T>(linear_output(x.shape(), out));
    const Tensor<T> from = packed(x), add = bias ? packed(bias) : bias;
    if (rows <= cpu::NarrowRows::most) {
      cpu::narrow_dots(self().matrix(), out, rows, from.data(), y.data(), add ? add.data() : nullptr);
      return y;
    }
    const std::int64_t block = (std::int64_t{1} << 16) / in + 1;
    parallel_for(out, block, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; begin += block) {
        const std::int64_t n = std::min(block, end - begin);
        T* const w = cpu::scratch<T>(cpu::Scratch::linear_weight, block * in);
        self().expand(begin, n, w);
        cpu::gemm<T>(rows, n, in, {from.data(), in, 1}, {w, 1, in}, y.data() + begin, out,
                     {.col_bias = add ? add.data() + begin : nullptr});
      }
    });
    return y;
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

}  // namespace detail
}  // namespace TENET_CONFIG
}  // namespace tenet::quant
