// Weight-only quantization: smaller weights, arithmetic in float.
#pragma once

#include <tenet/quant/bfloat16_weight.hpp>
#include <tenet/quant/groups.hpp>
#include <tenet/quant/layers.hpp>

namespace tenet::quant {

struct WeightOptions {
  int bits = 8;                         ///< 4 or 8: integers; 16: bfloat16
  std::int64_t group_size = 64;         ///< neighbours in a row of the weight that share a scale: an even number
  std::vector<std::string> names = {};  ///< patterns of the layers ("encoder.*"); none: all of the given types
};

inline namespace TENET_CONFIG {

/// Gives the layers of the given types small weights: `quantize_weights_<nn::Linear>(model, {.bits = 4})`. Throws Error
/// for other bits, for a pattern that describes no layer, and for weights that are not finite; nothing is changed then.
template <template <class> class... Layers, nn::IsModule M>
M& quantize_weights_(M& model, const WeightOptions& options = {}) {
  using Format = std::shared_ptr<nn::WeightFormat<float>>;
  const auto make = [&](const Tensor<float>& w) -> Format {
    switch (options.bits) {
      case 4: return std::make_shared<GroupWeight<float, 4>>(w, options.group_size);
      case 8: return std::make_shared<GroupWeight<float, 8>>(w, options.group_size);
      case 16: return std::make_shared<Bfloat16Weight<float>>(w);
      default: throw Error(text({"quantize_weights: expected 4, 8 or 16 bits, got ", options.bits}));
    }
  };
  detail::change_formats<Layers...>("quantize_weights", model, options.names, make);
  return model;
}

/// A copy of the model with small weights.
template <template <class> class... Layers, nn::IsModule M>
M quantize_weights(const M& model, const WeightOptions& options = {}) {
  M copy = model.clone();
  quantize_weights_<Layers...>(copy, options);
  return copy;
}

}  // namespace TENET_CONFIG
}  // namespace tenet::quant
