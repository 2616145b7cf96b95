// A layer whose input is watched: it computes as before.
#pragma once

#include <tenet/nn/weight.hpp>
#include <tenet/quant/observer.hpp>

namespace tenet::quant {
inline namespace TENET_CONFIG {

/// The weight in the format it had, with an observer of the layer's input. It stores nothing.
template <class T = float>
struct ObservedWeight final : nn::WeightFormat<T> {
  static constexpr const char* format_name = "observed";

  std::shared_ptr<nn::WeightFormat<T>> inner;  // null: dense
  Shape of;
  mutable Observer<T> input;

  ObservedWeight(const nn::Weight<T>& weight, const ObserverOptions& options)
      : inner(weight.format() ? weight.format()->clone() : nullptr), of(weight.full_shape()), input(options) {}
  ObservedWeight(const ObservedWeight& o)
      : nn::WeightFormat<T>(o), inner(o.inner ? o.inner->clone() : nullptr), of(o.of), input(o.input) {}

  std::string_view name() const override { return format_name; }
  Shape shape() const override { return of; }
  bool keeps_parameter() const override { return !inner || inner->keeps_parameter(); }
  Tensor<T> dense(const Tensor<T>& parameter) const override { return inner ? inner->dense(parameter) : parameter; }
  std::shared_ptr<nn::WeightFormat<T>> clone() const override { return std::make_shared<ObservedWeight>(*this); }
  void collect(const std::string& prefix, std::vector<nn::StateSlot>& slots) override {
    if (inner) inner->collect(prefix, slots);
  }
  Tensor<T> linear(const Tensor<T>& x, const Tensor<T>& parameter, const Tensor<T>& bias) const override {
    input.observe(x);
    return inner ? inner->linear(x, parameter, bias) : tenet::linear(x, parameter, bias);
  }
  Tensor<T> conv2d(const Tensor<T>& x, const Tensor<T>& parameter, const Tensor<T>& bias,
                   const tenet::Conv2dOptions& options) const override {
    input.observe(x);
    return inner ? inner->conv2d(x, parameter, bias, options) : tenet::conv2d(x, parameter, bias, options);
  }
};

}  // namespace TENET_CONFIG
}  // namespace tenet::quant
