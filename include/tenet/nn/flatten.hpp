// Layers that only change the shape, or nothing.
#pragma once

#include <tenet/nn/module.hpp>
#include <tenet/ops/view.hpp>

namespace tenet::nn {

/// Merges the dimensions from `start_dim` to `end_dim` into one: [n, c, h, w] -> [n, c h w]. See torch.nn.Flatten.
struct Flatten : Module<Flatten> {
  std::int64_t start_dim, end_dim;
  TENET_MODULE()

  TENET_TAG explicit Flatten(std::int64_t start = 1, std::int64_t end = -1) : start_dim(start), end_dim(end) {}

  template <class X>
  TENET_TAG auto forward(const X& x) const -> decltype(flatten(x, start_dim, end_dim)) {
    return flatten(x, start_dim, end_dim);
  }
};

/// Gives its input back. See torch.nn.Identity.
struct Identity : Module<Identity> {
  TENET_MODULE()

  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(X&& x) const {
    return std::forward<X>(x);
  }
  template <class X>
  requires(!TensorLike<X>) TENET_TAG X forward(X x)
  const { return x; }
};

}  // namespace tenet::nn
