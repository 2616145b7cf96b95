// The formats of weights that quantization stores, for loading them.
#pragma once

#include <tenet/quant/bfloat16_weight.hpp>
#include <tenet/quant/groups.hpp>
#include <tenet/quant/int8.hpp>
#include <tenet/quant/qat.hpp>

namespace tenet::quant {
inline namespace TENET_CONFIG {

namespace detail {
template <class Format>
nn::WeightReader<float> reader() {
  return {Format::format_name, &Format::read};
}
}  // namespace detail

/// load(model, "int8.safetensors", {.formats = quant::formats()}).
template <class T = float>
std::vector<nn::WeightReader<T>> formats() {
  return {detail::reader<Int8Weight<T>>(), detail::reader<GroupWeight<T, 4>>(), detail::reader<GroupWeight<T, 8>>(),
          detail::reader<Bfloat16Weight<T>>(), detail::reader<FakeQuantizedWeight<T>>()};
}

}  // namespace TENET_CONFIG
}  // namespace tenet::quant
