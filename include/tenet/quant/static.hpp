// Static quantization: what inputs are quantized by is found beforehand, from some data.
#pragma once

#include <tenet/nn/summary.hpp>
#include <tenet/quant/int8.hpp>
#include <tenet/quant/layers.hpp>
#include <tenet/quant/observed.hpp>

namespace tenet::quant {

struct StaticOptions {
  bool per_channel = true;              ///< a scale for each output of a layer, not one for all
  ObserverOptions observer = {};        ///< of the inputs
  std::vector<std::string> names = {};  ///< patterns of the layers ("encoder.*"); none: all of the given types
};

inline namespace TENET_CONFIG {

namespace detail {

/// Runs the model on each batch: a tensor, or what a DataLoader gives, whose first part it is.
template <class M, class Data>
void run_all(M& model, Data&& data) {
  std::vector<nn::ModuleSlot> modules;
  model.collect_modules("", 0, modules);
  const nn::detail::EvaluationScope evaluation(modules);
  const no_grad guard;
  for (auto&& batch : data) {
    if constexpr (TensorLike<decltype(batch)>) {
      model(batch);
    } else {
      auto&& [inputs, targets] = batch;
      model(inputs);
    }
  }
}

}  // namespace detail

/// Gives the layers of the given types weights of int8 and fixed input scales:
///   quant::quantize_static_<nn::Conv2d, nn::Linear>(model, loader);
/// `data` is a range of batches, tensors or pairs that begin with one, on which the model runs first, in evaluation
/// mode, and observes. Throws Error for a layer that saw no values, and as quantize_dynamic_; the model is as it was
/// then. See torch.ao.quantization.quantize.
template <template <class> class... Layers, nn::IsModule M, class Data>
M& quantize_static_(M& model, Data&& data, const StaticOptions& options = {}) {
  M watched = model.clone();
  detail::each_layer<Layers...>("quantize_static", watched, options.names, [&](const std::string&, auto& layer) {
    layer.weight.set_format(std::make_shared<ObservedWeight<float>>(layer.weight, options.observer));
  });
  detail::run_all(watched, data);
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
  return model;
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
