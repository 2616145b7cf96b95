// Quantization-aware training: layers compute with the values that int8 will have, and learn to live with them.
#pragma once

#include <tenet/quant/int8.hpp>
#include <tenet/quant/layers.hpp>

namespace tenet::quant {

struct TrainingOptions {
  bool per_channel = true;              ///< a scale for each output of a layer, not one for all
  double averaging_constant = 0.01;     ///< the part of a new batch in the averages of the input's bounds
  std::vector<std::string> names = {};  ///< patterns of the layers ("encoder.*"); none: all of the given types
};

inline namespace TENET_CONFIG {

/// A dense weight that is rounded to int8 where it is used, and so is the layer's input, to uint8; gradients go
/// straight through. The input's bounds are exponential averages of those of the batches that gradients are recorded
/// for. See torch.ao.quantization.FakeQuantize.
template <class T = float>
struct FakeQuantizedWeight final : nn::WeightFormat<T> {
  static_assert(std::is_same_v<T, float>, "quantization-aware training is for layers of float");
  static constexpr const char* format_name = "fake_int8";

  mutable nn::Buffer<float> bounds;  // [2] of the input; out of order while none was seen
  nn::Buffer<float> settings;        // [2]: the averaging constant, and 1 for a scale for each output
  Shape of;

  FakeQuantizedWeight() = default;
  /// Throws Error for an averaging constant outside (0, 1].
  FakeQuantizedWeight(const Shape& shape, const TrainingOptions& options)
      : bounds(from_vector<float>({1, -1})),
        settings(from_vector<float>({float(options.averaging_constant), options.per_channel ? 1.0f : 0.0f})),
        of(shape) {
    check();
  }

  bool per_channel() const { return settings(1) != 0; }
  bool seen() const { return bounds(0) <= bounds(1); }
  QuantParams input_params() const { return choose_qparams(bounds(0), bounds(1)); }

  std::string_view name() const override { return format_name; }
  Shape shape() const override { return of; }
  bool keeps_parameter() const override { return true; }
  Tensor<T> dense(const Tensor<T>& parameter) const override {
    const Tensor<T> now = parameter.detach();
    if (per_channel()) return fake_quantize(parameter, choose_channel_qparams(now), int8_levels);
    return fake_quantize(parameter, choose_qparams(now, int8_levels, true), int8_levels);
  }
  std::shared_ptr<nn::WeightFormat<T>> clone() const override { return std::make_shared<FakeQuantizedWeight>(*this); }
  void collect(const std::string& prefix, std::vector<nn::StateSlot>& slots) override {
    slots.push_back(this->slot(prefix, "bounds", bounds));
    slots.push_back(this->slot(prefix, "settings", settings));
  }
  bool fits(const nn::StateDict& part) const override { return bool(read(of, part)); }
  /// See nn::WeightReader.
  static std::shared_ptr<nn::WeightFormat<T>> read(const Shape& shape, const nn::StateDict& part) {
    detail::only(format_name, part, {"bounds", "settings"});
    auto w = std::make_shared<FakeQuantizedWeight>();
    w->of = shape;
    w->bounds = nn::Buffer<float>(detail::stored<float>(format_name, part, "bounds", {2}));
    w->settings = nn::Buffer<float>(detail::stored<float>(format_name, part, "settings", {2}));
    w->check();
    return w;
  }

  Tensor<T> linear(const Tensor<T>& x, const Tensor<T>& parameter, const Tensor<T>& bias) const override {
    return tenet::linear(rounded(x), dense(parameter), bias);
  }
  Tensor<T> conv2d(const Tensor<T>& x, const Tensor<T>& parameter, const Tensor<T>& bias,
                   const tenet::Conv2dOptions& options) const override {
    return tenet::conv2d(rounded(x), dense(parameter), bias, options);
  }

 private:
  void check() const {
    if (!(settings(0) > 0 && settings(0) <= 1)) {
      throw Error(text({format_name, ": expected an averaging constant in (0, 1], got ", settings(0)}));
    }
    if (!std::isfinite(bounds(0)) || !std::isfinite(bounds(1))) {
      throw Error(text({format_name, ": expected finite bounds, got ", bounds(0), " and ", bounds(1)}));
    }
  }
  Tensor<T> rounded(const Tensor<T>& x) const {
    if (is_grad_enabled() && x.numel() > 0) {
      const cpu::Bounds b = detail::bounds(format_name, x.detach());
      const float part = seen() ? settings(0) : 1.0f;
      if (!seen()) bounds(0) = bounds(1) = 0;
      bounds(0) += part * (b.low - bounds(0));
      bounds(1) += part * (b.high - bounds(1));
    }
    return seen() ? fake_quantize(x, input_params()) : x;
  }
};

/// Makes the layers of the given types train for int8: `prepare_qat_<nn::Conv2d, nn::Linear>(model)`. Their parameters
/// stay, so that an optimizer may hold them already. Batch normalizations are folded first (fold_batch_norm_), for
/// int8 rounds the weights that a layer has then. Throws Error for a layer whose weight is not dense, and for a
/// pattern that describes no layer; nothing is changed then. See torch.ao.quantization.prepare_qat.
template <template <class> class... Layers, nn::IsModule M>
M& prepare_qat_(M& model, const TrainingOptions& options = {}) {
  const std::vector<detail::NamedWeight> chosen = detail::weights_of<Layers...>("prepare_qat", model, options.names);
  for (const auto& [name, weight] : chosen) {
    if (weight->format()) {
      throw Error(text({"prepare_qat: layer '", name, "' has a weight of format ", weight->format_name()}));
    }
  }
  for (const auto& [name, weight] : chosen) {
    weight->set_format(std::make_shared<FakeQuantizedWeight<float>>(weight->shape(), options));
  }
  return model;
}

/// Turns what was trained for int8 into it: static quantization. Throws Error for a layer that saw no values, and
/// changes nothing then. See torch.ao.quantization.convert.
template <nn::IsModule M>
M& convert_(M& model) {
  using Trained = FakeQuantizedWeight<float>;
  const no_grad guard;
  std::vector<std::pair<nn::Weight<float>*, std::shared_ptr<Int8Weight<float>>>> made;
  model.each_weight("", [&]<class T>(const std::string& name, nn::Weight<T>& weight) {
    if constexpr (std::is_same_v<T, float>) {
      if (weight.format_name() != Trained::format_name) return;
      const auto& format = static_cast<const Trained&>(*weight.format());
      if (!format.seen()) throw Error(text({"convert: no data reached ", name}));
      const Tensor<float> dense = static_cast<const Tensor<float>&>(weight).detach();
      made.emplace_back(&weight, std::make_shared<Int8Weight<float>>(dense, format.per_channel()));
      made.back().second->set_input(format.input_params());
    }
  });
  for (auto& [weight, format] : made) weight->set_format(std::move(format));
  return model;
}

/// A copy of the model, converted: `auto int8 = quant::convert(trained)`.
template <nn::IsModule M>
M convert(const M& model) {
  M copy = model.clone();
  convert_(copy);
  return copy;
}

}  // namespace TENET_CONFIG
}  // namespace tenet::quant
