// Static quantization: what inputs are quantized by is found beforehand, from some data.
#pragma once

#include <tenet/quant/layers.hpp>
#include <tenet/quant/observed.hpp>
#include <tenet/quant/pass_integers.hpp>

namespace tenet::quant {

struct StaticOptions {
  bool per_channel = true;              ///< a scale for each output of a layer, not one for all
  ObserverOptions observer = {};        ///< of the inputs
  std::vector<std::string> names = {};  ///< patterns of the layers ("encoder.*"); none: all of the given types
};

inline namespace TENET_CONFIG {

namespace detail {

/// Runs the model on each batch: a tensor, or what a DataLoader gives, whose first part it is. A copy of the first
/// batch of float; undefined if there is none.
template <class M, class Data>
Tensor<float> run_all(M& model, Data&& data) {
  std::vector<nn::ModuleSlot> modules;
  model.collect_modules("", 0, modules);
  const nn::detail::EvaluationScope evaluation(modules);
  const no_grad guard;
  Tensor<float> first;
  const auto run = [&]<class X>(const X& inputs) {
    if constexpr (std::is_base_of_v<Tensor<float>, X>) {
      if (!first) first = inputs.detach().clone();
    }
    model(inputs);
  };
  for (auto&& batch : data) {
    if constexpr (TensorLike<decltype(batch)>) {
      run(batch);
    } else {
      auto&& [inputs, targets] = batch;
      run(inputs);
    }
  }
  return first;
}

}  // namespace detail

/// Gives the layers of the given types weights of int8 and fixed input scales:
///   quant::quantize_static_<nn::Conv2d, nn::Linear>(model, loader);
/// `data` is a range of batches, tensors or pairs that begin with one, on which the model runs first, in evaluation
/// mode, and observes. If the model's forward takes an Activation (one that takes anything has to), integers then flow
/// through the model when it is called with one; see pass_integers_(). Throws Error for a layer that saw no values, and
/// as quantize_dynamic_; the model is as it was then. See torch.ao.quantization.quantize.
template <template <class> class... Layers, nn::IsModule M, class Data>
M& quantize_static_(M& model, Data&& data, const StaticOptions& options = {}) {
  M watched = model.clone();
  for (const auto& [name, weight] : detail::weights_of<Layers...>("quantize_static", watched, options.names)) {
    weight->set_format(std::make_shared<ObservedWeight<float>>(*weight, options.observer));
  }
  const Tensor<float> first = detail::run_all(watched, data);
  std::vector<std::pair<std::string, std::shared_ptr<Int8Weight<float>>>> made;
  watched.each_module([&]<class X>(const std::string& name, X& layer) {
    if constexpr ((detail::is_layer<Layers, X> || ...)) {
      if (layer.weight.format_name() != ObservedWeight<float>::format_name) return;
      const auto* observed = static_cast<const ObservedWeight<float>*>(layer.weight.format());
      if (!observed->input.seen()) throw Error(text({"quantize_static: no data reached layer '", name, "'"}));
      const no_grad guard;
      auto format = std::make_shared<Int8Weight<float>>(layer.weight.dense().detach(), options.per_channel);
      format->set_input(observed->input.params());
      made.emplace_back(name, std::move(format));
    }
  });
  std::size_t next = 0;
  model.each_module([&]<class X>(const std::string& name, X& layer) {
    if constexpr ((detail::is_layer<Layers, X> || ...)) {
      if (next < made.size() && made[next].first == name) layer.weight.set_format(std::move(made[next++].second));
    }
  });
  return first ? pass_integers_(model, first) : model;
}

/// A copy of the model, quantized.
template <template <class> class... Layers, nn::IsModule M, class Data>
M quantize_static(const M& model, Data&& data, const StaticOptions& options = {}) {
  M copy = model.clone();
  quantize_static_<Layers...>(copy, data, options);
  return copy;
}

}  // namespace TENET_CONFIG
}  // namespace tenet::quant
