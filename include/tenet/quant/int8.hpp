// Weights of 8 bits, and arithmetic of 8 bits with them.
//
// The input of a layer becomes integers too: by the bounds of each batch (dynamic quantization), or by bounds found
// beforehand (static quantization). Sums are exact and are scaled once, so answers are the same on every processor.
#pragma once

#include <tenet/kernels/cpu/conv2d_int8.hpp>
#include <tenet/kernels/cpu/gemm_int8_panels.hpp>
#include <tenet/quant/affine.hpp>
#include <tenet/quant/linear_shape.hpp>

#include <mutex>
#include <optional>

namespace tenet::quant {
inline namespace TENET_CONFIG {

namespace detail {

/// What products take from a weight [out, ...] of 8 bits, made once and again when the weight changes.
template <class S>
class Int8Panels {
 public:
  struct Ready {
    const void* values;
    std::uint32_t version;
    Tensor<std::int32_t> sums;  // over each output
    int kind = -1;              // of the panels
    std::int64_t groups = 0;    // of the convolution that they are for; 0: linear
    Tensor<std::int32_t> panels;
    const std::uint32_t* panel_data() const {
      return panels ? static_cast<const std::uint32_t*>(panels.data_ptr()) : nullptr;
    }
  };

  Int8Panels() = default;
  Int8Panels(const Int8Panels&) {}  // a copy of the weight makes its own
  Int8Panels& operator=(const Int8Panels&) = delete;

  /// For products of few rows, which need no panels.
  std::shared_ptr<const Ready> of(const Tensor<S>& values) {
    const std::lock_guard lock(mutex_);
    if (!is_fresh(values)) ready_ = std::make_shared<Ready>(start(values));
    return ready_;
  }
  std::shared_ptr<const Ready> for_linear(const Tensor<S>& values) {
    return with_panels(values, 0, [&](std::int64_t out, std::int64_t k) {
      Tensor<std::int32_t> panels = empty<std::int32_t>({cpu::int8_panels_size<S>(out, k)});
      cpu::pack_int8_panels<S>(out, k, {values.data(), 1, k}, units(panels));
      return panels;
    });
  }
  std::shared_ptr<const Ready> for_conv2d(const Tensor<S>& values, const cpu::Conv2dShape& s) {
    return with_panels(values, s.groups, [&](std::int64_t, std::int64_t) {
      Tensor<std::int32_t> panels = empty<std::int32_t>({cpu::conv2d_int8_weight_size<S>(s)});
      cpu::pack_conv2d_int8_weight(s, values.data(), units(panels));
      return panels;
    });
  }

 private:
  static std::uint32_t* units(const Tensor<std::int32_t>& t) { return static_cast<std::uint32_t*>(t.data_ptr()); }
  bool is_fresh(const Tensor<S>& values) const {
    return ready_ && ready_->values == values.data() && ready_->version == values.version();
  }
  static Ready start(const Tensor<S>& values) {
    const std::int64_t out = values.shape()[0], k = out ? values.numel() / out : 0;
    Ready next{values.data(), values.version(), empty<std::int32_t>({out}), -1, 0, {}};
    for (std::int64_t i = 0; i < out; ++i) {
      std::uint32_t sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += std::uint32_t(std::int32_t(values.data()[i * k + p]));
      next.sums.data()[i] = std::int32_t(sum);
    }
    return next;
  }
  template <class F>
  std::shared_ptr<const Ready> with_panels(const Tensor<S>& values, std::int64_t groups, F pack) {
    const std::lock_guard lock(mutex_);
    const int kind = cpu::int8_panels_kind();
    const bool fresh = is_fresh(values);
    if (fresh && ready_->kind == kind && ready_->groups == groups) return ready_;
    auto next = std::make_shared<Ready>(fresh ? *ready_ : start(values));
    const std::int64_t out = values.shape()[0];
    next->kind = kind, next->groups = groups, next->panels = pack(out, values.numel() / out);
    ready_ = next;
    return next;
  }

  std::mutex mutex_;
  std::shared_ptr<const Ready> ready_;
};

/// What becomes of the sums of a product: the zero point of the input is taken out, and they are multiplied by both
/// scales. `output`: what the result is quantized by, or {1, 0} where it is numbers.
template <class T>
struct Int8Scaling {
  Tensor<T> scale;                  // [out], or [1] for all
  Tensor<T> bias;                   // [out], or undefined
  Tensor<std::int32_t> correction;  // [out]: -zero_point times the sum of each row
  cpu::ScaleOptions options;

  Int8Scaling(QuantParams input, const Tensor<T>& scales, const Tensor<std::int32_t>& sums, const Tensor<T>& add,
              QuantParams output)
      : scale(empty<T>(scales.shape())), correction(empty<std::int32_t>(sums.shape())) {
    for (std::int64_t i = 0; i < scales.numel(); ++i) {
      scale.data()[i] = input.scale * scales.data()[i] / output.scale;
    }
    const auto zero = std::uint32_t(input.zero_point);
    for (std::int64_t i = 0; i < sums.numel(); ++i) {
      correction.data()[i] = std::int32_t(0u - zero * std::uint32_t(sums.data()[i]));
    }
    if (add) {
      bias = empty<T>(add.shape());
      const Tensor<T> from = packed(add);
      for (std::int64_t i = 0; i < add.numel(); ++i) bias.data()[i] = from.data()[i] / output.scale;
    }
    options = {scale.data(), scales.numel() != 1, correction.data(), bias ? bias.data() : nullptr, output.zero_point};
  }
};

/// The parameters that a stored format has for its "input" or "output"; none if there are none.
inline std::optional<QuantParams> stored_params(const char* format, const nn::StateDict& part, const std::string& of) {
  const std::string scale = of + "_scale", zero_point = of + "_zero_point";
  if (!nn::detail::find(part, scale) && !nn::detail::find(part, zero_point)) return {};
  return QuantParams{stored<float>(format, part, scale, {1})(0),
                     stored<std::int32_t>(format, part, zero_point, {1})(0)};
}

}  // namespace detail

/// A weight of int8, symmetric, with one scale or one for each output. Layers with it are not differentiable.
template <class T = float>
struct Int8Weight final : nn::WeightFormat<T> {
  static_assert(std::is_same_v<T, float>, "int8 weights are for layers of float");
  static constexpr const char* format_name = "int8";

  nn::Buffer<std::int8_t> values;
  nn::Buffer<float> scales;                   // [1], or [out]
  nn::Buffer<float> input_scale;              // [1]; undefined where each batch has its own
  nn::Buffer<std::int32_t> input_zero_point;  // [1]
  nn::Buffer<float> output_scale;             // [1]; undefined where results are numbers
  nn::Buffer<std::int32_t> output_zero_point;

  Int8Weight() = default;
  /// Quantizes `weight`. Throws Error if a value is not finite.
  Int8Weight(const Tensor<float>& weight, bool per_channel) {
    if (per_channel) {
      const ChannelParams p = choose_channel_qparams(weight);
      values = nn::Buffer<std::int8_t>(quantize(weight, p));
      scales = nn::Buffer<float>(p.scales);
    } else {
      const QuantParams p = choose_qparams(weight, int8_levels, true);
      values = nn::Buffer<std::int8_t>(quantize<std::int8_t>(weight, p));
      scales = nn::Buffer<float>(full<float>({1}, p.scale));
    }
  }

  /// Fixes what inputs are quantized by: static quantization.
  void set_input(QuantParams p) { set(p, input_scale, input_zero_point); }
  bool is_static() const { return bool(input_scale); }
  /// What the layer's results are quantized by where an Activation flows through it; see pass_integers_().
  void set_output(QuantParams p) { set(p, output_scale, output_zero_point); }
  void clear_output() { output_scale = {}, output_zero_point = {}; }
  bool gives_integers() const { return bool(output_scale); }

  std::string_view name() const override { return format_name; }
  Shape shape() const override { return values.shape(); }
  Tensor<T> dense(const Tensor<T>&) const override {
    if (scales.numel() == 1) return dequantize(values, QuantParams{scales(0), 0});
    return dequantize(values, ChannelParams{scales, zeros<std::int32_t>(scales.shape()), 0});
  }
  std::shared_ptr<nn::WeightFormat<T>> clone() const override { return std::make_shared<Int8Weight>(*this); }
  void collect(const std::string& prefix, std::vector<nn::StateSlot>& slots) override {
    slots.push_back(this->slot(prefix, "values", values));
    slots.push_back(this->slot(prefix, "scales", scales));
    if (is_static()) {
      slots.push_back(this->slot(prefix, "input_scale", input_scale));
      slots.push_back(this->slot(prefix, "input_zero_point", input_zero_point));
    }
    if (gives_integers()) {
      slots.push_back(this->slot(prefix, "output_scale", output_scale));
      slots.push_back(this->slot(prefix, "output_zero_point", output_zero_point));
    }
  }
  bool fits(const nn::StateDict& part) const override {
    const auto other = std::static_pointer_cast<Int8Weight>(read(shape(), part));
    return other->scales.shape() == scales.shape() && other->is_static() == is_static() &&
           other->gives_integers() == gives_integers();
  }
  /// See nn::WeightReader.
  static std::shared_ptr<nn::WeightFormat<T>> read(const Shape& shape, const nn::StateDict& part) {
    detail::only(format_name, part,
                 {"values", "scales", "input_scale", "input_zero_point", "output_scale", "output_zero_point"});
    auto w = std::make_shared<Int8Weight>();
    const AnyTensor* scales = nn::detail::find(part, "scales");
    const std::int64_t channels = scales && scales->numel() == 1 ? 1 : shape.size() ? shape[0] : 0;
    w->values = nn::Buffer<std::int8_t>(detail::stored<std::int8_t>(format_name, part, "values", shape));
    w->scales = nn::Buffer<float>(detail::stored<float>(format_name, part, "scales", {channels}));
    detail::check_scales(format_name, w->scales);
    if (const auto p = detail::stored_params(format_name, part, "input")) w->set_input(*p);
    if (const auto p = detail::stored_params(format_name, part, "output")) w->set_output(*p);
    return w;
  }

  Tensor<T> linear(const Tensor<T>& x, const Tensor<T>& parameter, const Tensor<T>& bias) const override {
    if (!sums_fit()) return tenet::linear(x.detach(), dense(parameter), detached(bias));
    return linear_as<T>(x, input_params("linear", x), bias);
  }
  Tensor<T> conv2d(const Tensor<T>& x, const Tensor<T>& parameter, const Tensor<T>& bias,
                   const tenet::Conv2dOptions& options) const override {
    if (!sums_fit()) return tenet::conv2d(x.detach(), dense(parameter), detached(bias), options);
    return conv2d_as<T>(x, input_params("conv2d", x), bias, options);
  }

  /// Whether products are computed with integers: longer sums could leave 32 bits.
  bool sums_fit() const {
    std::int64_t k = 1;
    for (int d = 1; d < values.dim(); ++d) k *= values.shape()[d];
    return k >= 1 && k <= 65536;
  }
  /// What an input is quantized by. Throws Error if a value is not finite.
  QuantParams input_params(const char* op, const Tensor<T>& x) const {
    if (is_static()) return {input_scale(0), input_zero_point(0)};
    if (x.numel() == 0) return {};
    const cpu::Bounds b = detail::bounds(op, x);
    return choose_qparams(b.low, b.high);
  }
  QuantParams output_params() const { return {output_scale(0), output_zero_point(0)}; }

  /// linear() of numbers, which `input` quantizes, or of integers, which it has quantized. C: float, or uint8_t for
  /// integers by output_params().
  template <class C, class X>
  Tensor<C> linear_as(const Tensor<X>& x, QuantParams input, const Tensor<T>& bias) const {
    const std::int64_t rows = detail::linear_rows(x.shape(), values.shape(), bias);
    const std::int64_t out = values.shape()[0], in = values.shape()[1];
    Tensor<C> y = empty<C>(detail::linear_output(x.shape(), out));
    if (y.numel() == 0) return y;
    Tensor<std::uint8_t> q;
    if constexpr (std::is_same_v<X, T>) q = quantize(x, input);
    else q = packed(x);
    const auto ready = rows > 4 ? panels_.for_linear(values) : panels_.of(values);
    const detail::Int8Scaling<T> scaling(input, scales, ready->sums, bias, result_params<C>());
    cpu::gemm_int8<std::uint8_t, C>(rows, out, in, {q.data(), in, 1}, {values.data(), 1, in}, y.data(), out,
                                    scaling.options, rows > 4 ? ready->panel_data() : nullptr);
    return y;
  }
  /// The same of conv2d().
  template <class C, class X>
  Tensor<C> conv2d_as(const Tensor<X>& x, QuantParams input, const Tensor<T>& bias,
                      const tenet::Conv2dOptions& options) const {
    if (x.dim() == 3) return squeeze(conv2d_as<C>(unsqueeze(x, 0), input, bias, options), 0);
    const cpu::Conv2dShape s = tenet::detail::conv2d_shape(x.shape(), values.shape(), options);
    if (bias && !(bias.shape() == Shape{s.o})) {
      throw ShapeError(text({"conv2d: expected a bias [", s.o, "], got ", bias.shape()}));
    }
    Tensor<C> y = empty<C>(tenet::detail::output_shape(s));
    if (y.numel() == 0) return y;
    detail::check("int8", input, uint8_levels);
    const auto ready = panels_.for_conv2d(values, s);
    const detail::Int8Scaling<T> scaling(input, scales, ready->sums, bias, result_params<C>());
    const bool finite = cpu::conv2d_int8<std::int8_t>(s, packed(x).data(), detail::kernel_options(input, uint8_levels),
                                                      ready->panel_data(), scaling.options, y.data());
    detail::check_values("conv2d", x.shape(), finite);
    return y;
  }

 private:
  static void set(QuantParams p, nn::Buffer<float>& scale, nn::Buffer<std::int32_t>& zero_point) {
    detail::check(format_name, p, uint8_levels);
    scale = nn::Buffer<float>(full<float>({1}, p.scale));
    zero_point = nn::Buffer<std::int32_t>(full<std::int32_t>({1}, p.zero_point));
  }
  static Tensor<T> detached(const Tensor<T>& t) { return t ? t.detach() : t; }

  /// Of a result of C.
  template <class C>
  QuantParams result_params() const {
    if constexpr (std::is_same_v<C, T>) return {};
    const QuantParams p = output_params();
    detail::check("int8", p, uint8_levels);  // the buffers may have been written to
    return p;
  }

  mutable detail::Int8Panels<std::int8_t> panels_;
};

}  // namespace TENET_CONFIG
}  // namespace tenet::quant
