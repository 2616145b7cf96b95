// Initialization of parameters, in place and unrecorded. See torch.nn.init.
#pragma once

#include <tenet/core/random.hpp>
#include <tenet/ops/inplace.hpp>

#include <cmath>

namespace tenet::nn::init {

/// Which of the two sizes of a weight the kaiming initializations keep the variance for.
enum class FanMode { in, out };

inline namespace TENET_CONFIG {

using tenet::normal_;
using tenet::uniform_;

/// The number of inputs and outputs of one unit of a weight [out, in, receptive field...]. Throws ShapeError for
/// fewer than two dimensions.
struct Fan {
  double in, out;
  double of(FanMode mode) const { return mode == FanMode::in ? in : out; }
  explicit Fan(const Shape& weight) {
    if (weight.size() < 2) throw ShapeError(text({"init: fan-in and fan-out need two dimensions, got ", weight}));
    double field = 1;
    for (int i = 2; i < weight.size(); ++i) field *= double(weight[i]);
    in = double(weight[1]) * field;
    out = double(weight[0]) * field;
  }
};

/// Every element `value`.
template <FloatElement T>
void constant_(const Tensor<T>& t, double value) {
  const no_grad guard;
  t.fill_(T(value));
}
template <FloatElement T>
void zeros_(const Tensor<T>& t) {
  constant_(t, 0);
}
template <FloatElement T>
void ones_(const Tensor<T>& t) {
  constant_(t, 1);
}

/// Uniform in [-b, b] with b = gain sqrt(6 / (fan_in + fan_out)). Glorot and Bengio, 2010.
template <FloatElement T>
void xavier_uniform_(const Tensor<T>& t, double gain = 1, Generator& generator = default_generator()) {
  const Fan fan(t.shape());
  const double b = gain * std::sqrt(6 / (fan.in + fan.out));
  uniform_(t, -b, b, generator);
}

/// Normal with deviation gain sqrt(2 / (fan_in + fan_out)). Glorot and Bengio, 2010.
template <FloatElement T>
void xavier_normal_(const Tensor<T>& t, double gain = 1, Generator& generator = default_generator()) {
  const Fan fan(t.shape());
  normal_(t, 0, gain * std::sqrt(2 / (fan.in + fan.out)), generator);
}

/// Uniform in [-b, b] with b = sqrt(6 / ((1 + a^2) fan)), for a leaky ReLU of slope `a` behind it; a = 0 for ReLU.
/// He et al., 2015.
template <FloatElement T>
void kaiming_uniform_(const Tensor<T>& t, double a = 0, FanMode mode = FanMode::in,
                      Generator& generator = default_generator()) {
  const double b = std::sqrt(6 / ((1 + a * a) * Fan(t.shape()).of(mode)));
  uniform_(t, -b, b, generator);
}

/// Normal with deviation sqrt(2 / ((1 + a^2) fan)). He et al., 2015.
template <FloatElement T>
void kaiming_normal_(const Tensor<T>& t, double a = 0, FanMode mode = FanMode::in,
                     Generator& generator = default_generator()) {
  normal_(t, 0, std::sqrt(2 / ((1 + a * a) * Fan(t.shape()).of(mode))), generator);
}

/// A new tensor, uniform in [-1 / sqrt(fan_in), 1 / sqrt(fan_in)]: what torch.nn.Linear and Conv2d start with,
/// weights and biases.
template <FloatElement T>
Tensor<T> layer_default(const Shape& shape, double fan_in, Generator& generator = default_generator()) {
  Tensor<T> t = empty<T>(shape);
  const double b = fan_in > 0 ? 1 / std::sqrt(fan_in) : 0;
  uniform_(t, -b, b, generator);
  return t;
}

}  // namespace TENET_CONFIG
}  // namespace tenet::nn::init
