// Finds the layers between which integers can flow.
#pragma once

#include <tenet/nn/summary.hpp>
#include <tenet/quant/activation.hpp>

#include <tuple>

namespace tenet::quant {
inline namespace TENET_CONFIG {

namespace detail {

/// What a model gives is read as numbers.
template <class R>
void read_result(const R& result) {
  if constexpr (is_activation<R>) {
    result.dequantize();
  } else if constexpr (requires { std::tuple_size<R>::value; }) {
    std::apply([](const auto&... part) { (read_result(part), ...); }, result);
  }
}

}  // namespace detail

/// Lets integers flow between the layers of int8 of a model whose forward takes an Activation, and does nothing to
/// others. The model runs once on `example`, and each layer whose results only layers with fixed input scales read, at
/// once or behind relu, pooling and views, gives integers from then on, by the parameters of those that read them: the
/// relu then comes with the rounding. Other layers give numbers. quantize_static_() does this; call it after convert_()
/// and for models that were quantized without it.
template <nn::IsModule M>
M& pass_integers_(M& model, const Tensor<float>& example) {
  if constexpr (requires { model.forward(Activation<float>(example)); }) {
    std::vector<nn::ModuleSlot> modules;
    model.collect_modules("", 0, modules);
    const nn::detail::EvaluationScope evaluation(modules);
    const no_grad guard;
    const auto readings = std::make_shared<detail::Readings<float>>();
    detail::read_result(model(Activation<float>(example).watched(readings)));
    model.each_weight("", [&]<class T>(const std::string&, nn::Weight<T>& weight) {
      if constexpr (std::is_same_v<T, float>) {
        if (weight.format_name() != Int8Weight<T>::format_name) return;
        auto* const layer = static_cast<Int8Weight<T>*>(weight.format());
        layer->clear_output();
        for (const auto& r : readings->results) {
          if (r.layer == layer && r.as_integers && !r.as_numbers) layer->set_output(r.params);
        }
      }
    });
  }
  return model;
}

}  // namespace TENET_CONFIG
}  // namespace tenet::quant
