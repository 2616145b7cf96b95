// Low-rank adapters: a trained weight stays as it is, and a small product that is added to it trains.
#pragma once

#include <tenet/nn/init.hpp>
#include <tenet/nn/module.hpp>
#include <tenet/nn/weight.hpp>

#include <algorithm>

namespace tenet::nn {

struct LoraOptions {
  std::int64_t rank = 8;
  double alpha = 8;  ///< the product counts alpha / rank times
};

/// The layer's own weight [out, in, ...], which gets no gradient, plus scale * b [out, rank] a [rank, in, ...]. Hu et
/// al., "LoRA", 2021.
template <class T = float>
struct Lora final : WeightFormat<T> {
  Parameter<T> a, b;
  Buffer<T> scale;  ///< [1]

  /// `a` starts as the weight of a layer does, `b` at 0. Throws Error for a rank < 1.
  TENET_TAG Lora(const Shape& weight, const LoraOptions& o) {
    if (o.rank < 1) throw Error(text({"lora: expected a rank >= 1, got ", o.rank}));
    Dims sizes = weight;
    sizes[0] = o.rank;
    a = Parameter<T>(init::layer_default<T>(sizes, weight[0] ? double(weight.numel() / weight[0]) : 0));
    b = Parameter<T>(zeros<T>({weight[0], o.rank}));
    scale = Buffer<T>(full<T>({1}, T(o.alpha / double(o.rank))));
  }
  TENET_TAG std::string_view name() const override { return "lora"; }
  TENET_TAG Shape shape() const override {
    Dims sizes = a.shape();
    sizes[0] = b.size(0);
    return sizes;
  }
  TENET_TAG bool keeps_parameter() const override { return true; }
  TENET_TAG Tensor<T> dense(const Tensor<T>& parameter) const override {
    return parameter.detach() + reshape(matmul(b, flatten(a, 1)), shape()) * scale.data()[0];
  }
  TENET_TAG std::shared_ptr<WeightFormat<T>> clone() const override { return std::make_shared<Lora>(*this); }
  TENET_TAG void collect(const std::string& prefix, std::vector<StateSlot>& slots) override {
    slots.push_back(this->slot(prefix, "a", a));
    slots.push_back(this->slot(prefix, "b", b));
    slots.push_back(this->slot(prefix, "scale", scale));
  }
  TENET_TAG bool fits(const StateDict& part) const override {
    const AnyTensor* stored = detail::find(part, "b");
    return stored && stored->shape() == b.shape();
  }

  TENET_TAG Tensor<T> linear(const Tensor<T>& x, const Tensor<T>& parameter, const Tensor<T>& bias) const override {
    return tenet::linear(x, parameter.detach(), bias) + tenet::linear(tenet::linear(x, a), b) * scale.data()[0];
  }
  TENET_TAG Tensor<T> conv2d(const Tensor<T>& x, const Tensor<T>& parameter, const Tensor<T>& bias,
                             const tenet::Conv2dOptions& options) const override {
    if (options.groups != 1) return tenet::conv2d(x, dense(parameter), bias, options);
    const Tensor<T> low = tenet::conv2d(x, a, Tensor<T>(), options);
    return tenet::conv2d(x, parameter.detach(), bias, options) +
           tenet::conv2d(low, view(b, {b.size(0), b.size(1), 1, 1})) * scale.data()[0];
  }

  /// An adapter of the stored rank, to be filled from the state. Throws Error where it does not fit.
  TENET_TAG static std::shared_ptr<WeightFormat<T>> read(const Shape& shape, const StateDict& part) {
    const AnyTensor *stored_a = detail::find(part, "a"), *stored_b = detail::find(part, "b");
    if (!stored_a || !stored_b || stored_b->dim() != 2) throw Error("lora: expected factors a and b [out, rank]");
    Dims sizes = shape;
    sizes[0] = stored_b->size(1);
    if (!(stored_a->shape() == sizes) || stored_b->size(0) != shape[0]) {
      throw ShapeError(text(
          {"lora: expected an adapter of ", shape, ", got factors ", stored_a->shape(), " and ", stored_b->shape()}));
    }
    return std::make_shared<Lora>(shape, LoraOptions{.rank = sizes[0]});
  }
};

inline namespace TENET_CONFIG {

/// Freezes the dense weights of `module` and adds an adapter, which trains, to each; answers are the same at first.
/// Tied weights have one. Make optimizers afterwards. Biases train on. Throws Error for a rank < 1 and for a weight in
/// another format; nothing is changed then.
template <IsModule M>
void add_lora(M& module, const LoraOptions& options = {}) {
  module.each_weight("", [&](const std::string& name, auto& weight) {
    if (options.rank < 1 || weight.format()) {
      throw Error(text({"add_lora: expected a rank >= 1 and dense weights, got rank ", options.rank, " and ", name,
                        " kept as ", weight.format_name()}));
    }
  });
  std::vector<std::pair<const TensorImpl*, std::shared_ptr<void>>> made;
  module.each_weight("", [&]<class T>(const std::string&, Weight<T>& weight) {
    std::shared_ptr<WeightFormat<T>> format;
    for (const auto& [parameter, adapter] : made) {
      if (parameter == weight.impl()) format = std::static_pointer_cast<WeightFormat<T>>(adapter);
    }
    if (!format) {
      format = std::make_shared<Lora<T>>(weight.shape(), options);
      made.emplace_back(weight.impl(), format);
    }
    weight.set_format(std::move(format));
  });
}

/// Adds the adapters of `module` to its weights, which are dense again, train, and are the same tensors as before.
template <IsModule M>
void merge_lora(M& module) {
  const no_grad guard;
  std::vector<const TensorImpl*> merged;
  module.each_weight("", [&](const std::string&, auto& weight) {
    if (weight.format_name() != "lora") return;
    if (std::find(merged.begin(), merged.end(), weight.impl()) == merged.end()) {  // tied weights are one tensor
      weight.copy_(weight.dense());
      merged.push_back(weight.impl());
    }
    weight.set_format(nullptr);
  });
}

}  // namespace TENET_CONFIG
}  // namespace tenet::nn
