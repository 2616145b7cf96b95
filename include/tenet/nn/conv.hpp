// Convolution layers.
#pragma once

#include <tenet/nn/init.hpp>
#include <tenet/nn/module.hpp>
#include <tenet/nn/weight.hpp>

namespace tenet::nn {

struct Conv2dOptions {
  Pair stride = 1;
  Pair padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};

/// [n, in, h, w] -> [n, out, oh, ow]; see conv2d(). weight [out, in / groups, kh, kw] and bias [out] start uniform
/// in [-1 / sqrt(f), 1 / sqrt(f)], f = in / groups * kh * kw. Throws ShapeError if the groups do not divide the
/// channels, and for inputs that do not fit. See torch.nn.Conv2d.
template <class T = float>
struct Conv2d : Module<Conv2d<T>> {
  Weight<T> weight;
  Parameter<T> bias;
  Conv2dOptions options;
  TENET_MODULE(weight, bias)

  TENET_TAG TENET_COLD Conv2d(std::int64_t in, std::int64_t out, Pair kernel_size, Conv2dOptions o = {}) : options(o) {
    if (o.groups < 1 || in % o.groups || out % o.groups) {
      throw ShapeError(text({"Conv2d: ", o.groups, " groups do not divide ", in, " and ", out, " channels"}));
    }
    const double fan_in = double(in / o.groups) * double(kernel_size.h) * double(kernel_size.w);
    weight = Weight<T>(init::layer_default<T>({out, in / o.groups, kernel_size.h, kernel_size.w}, fan_in));
    if (o.bias) bias = Parameter<T>(init::layer_default<T>({out}, fan_in));
  }
  TENET_TAG Tensor<T> forward(const Tensor<T>& x) const {
    return weight.conv2d(
        x, bias,
        {.stride = options.stride, .padding = options.padding, .dilation = options.dilation, .groups = options.groups});
  }
};

}  // namespace tenet::nn
