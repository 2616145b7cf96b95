// Dynamic quantization: weights of int8, inputs quantized batch by batch. It needs no data beforehand.
#pragma once

#include <tenet/quant/int8.hpp>
#include <tenet/quant/layers.hpp>

namespace tenet::quant {

struct DynamicOptions {
  bool per_channel = false;             ///< a scale for each output of a layer, not one for all
  std::vector<std::string> names = {};  ///< patterns of the layers ("encoder.*"); none: all of the given types
};

inline namespace TENET_CONFIG {

/// Gives the layers of the given types weights of int8: `quantize_dynamic_<nn::Linear>(model)`. Throws Error for a
/// pattern that describes no layer, and for weights that are not finite; nothing is changed then. Each layer's input is
/// quantized by the bounds of its batch, to uint8, and the products are exact. See
/// torch.ao.quantization.quantize_dynamic.
template <template <class> class... Layers, nn::IsModule M>
M& quantize_dynamic_(M& model, const DynamicOptions& options = {}) {
  detail::change_formats<Layers...>("quantize_dynamic", model, options.names, [&](const Tensor<float>& w) {
    return std::make_shared<Int8Weight<float>>(w, options.per_channel);
  });
  return model;
}

/// A copy of the model, quantized: `auto int8 = quant::quantize_dynamic<nn::Linear>(model)`.
template <template <class> class... Layers, nn::IsModule M>
M quantize_dynamic(const M& model, const DynamicOptions& options = {}) {
  M copy = model.clone();
  quantize_dynamic_<Layers...>(copy, options);
  return copy;
}

}  // namespace TENET_CONFIG
}  // namespace tenet::quant
