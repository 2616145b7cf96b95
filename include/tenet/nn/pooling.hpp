// Pooling layers.
#pragma once

#include <tenet/nn/module.hpp>
#include <tenet/ops/pool2d.hpp>

namespace tenet::nn {

/// The greatest element of each window: [n, c, h, w] -> [n, c, oh, ow]; see max_pool2d(). The stride defaults to
/// the kernel's size. See torch.nn.MaxPool2d.
struct MaxPool2d : Module<MaxPool2d> {
  using picks_greatest = void;
  MaxPool2dOptions options;
  TENET_MODULE()

  TENET_TAG explicit MaxPool2d(MaxPool2dOptions o) : options(o) {}
  TENET_TAG explicit MaxPool2d(Pair kernel_size, Pair stride = 0, Pair padding = 0)
      : options{.kernel_size = kernel_size, .stride = stride, .padding = padding} {}

  template <class X>
  TENET_TAG auto forward(const X& x) const -> decltype(max_pool2d(x, options)) {
    return max_pool2d(x, options);
  }
};

}  // namespace tenet::nn
