// The formats of weights that quantization stores, for loading them.
#pragma once

#include <tenet/quant/int8.hpp>

namespace tenet::quant {
inline namespace TENET_CONFIG {

/// load(model, "int8.safetensors", {.formats = quant::formats()}).
template <class T = float>
std::vector<nn::WeightReader<T>> formats() {
  return {{Int8Weight<T>::format_name, &Int8Weight<T>::read}};
}

}  // namespace TENET_CONFIG
}  // namespace tenet::quant
