// Fully connected layers.
#pragma once

#include <tenet/nn/init.hpp>
#include <tenet/nn/module.hpp>
#include <tenet/nn/weight.hpp>

namespace tenet::nn {

struct LinearOptions {
  bool bias = true;
};

/// y = x W^T + b: [..., in] -> [..., out]. weight [out, in] and bias [out] start uniform in
/// [-1 / sqrt(in), 1 / sqrt(in)]. Throws ShapeError for negative sizes and inputs that do not fit.
/// See torch.nn.Linear.
template <class T = float>
struct Linear : Module<Linear<T>> {
  Weight<T> weight;
  Parameter<T> bias;
  TENET_MODULE(weight, bias)

  TENET_TAG TENET_COLD Linear(std::int64_t in, std::int64_t out, LinearOptions options = {})
      : weight(init::layer_default<T>({out, in}, double(in))) {
    if (options.bias) bias = Parameter<T>(init::layer_default<T>({out}, double(in)));
  }
  TENET_TAG Tensor<T> forward(const Tensor<T>& x) const { return weight.linear(x, bias); }
};

}  // namespace tenet::nn
