// The low copies of weights: made once, while a weight does not change and the outermost autocast lasts.
#pragma once

#include <tenet/kernels/cpu/widened.hpp>
#include <tenet/ops/copy.hpp>

#include <vector>

namespace tenet::amp {

/// A weight, the version it was copied at, and the copy.
struct LowWeight {
  ImplRef weight;
  std::uint32_t version;
  AnyTensor low;
};

/// What an outermost autocast holds.
struct LowWeights {
  std::vector<LowWeight> all;
  std::size_t next = 0;  // weights are used in the order of the model, again and again: where to look first
};

}  // namespace tenet::amp

namespace tenet::state {
inline constinit thread_local amp::LowWeights* low_weights = nullptr;
}

namespace tenet {
inline namespace TENET_CONFIG {
namespace detail {

/// `x` with each element rounded to Low, row-major; never recorded.
template <class Low>
Tensor<Low> rounded(const Tensor<float>& x) {
  const Tensor<float> from = packed(x);
  Tensor<Low> low = empty<Low>(x.shape());
  cpu::convert_all(x.numel(), low.data(), static_cast<const float*>(from.data()));
  return low;
}

/// rounded(x), from the copies that autocast holds if `x` is a leaf that requires a gradient.
template <class Low>
Tensor<Low> lowered(const Tensor<float>& x) {
  amp::LowWeights* held = state::low_weights;
  if (!held || !x.impl()->requires_grad || x.impl()->is_view) return rounded<Low>(x);
  const std::size_t n = held->all.size();
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t at = (held->next + i) % n;
    amp::LowWeight& w = held->all[at];
    if (w.weight.get() != x.impl() || w.low.dtype() != dtype_of<Low>) continue;
    held->next = at + 1;
    if (w.version != x.version()) {
      w.low = rounded<Low>(x);
      w.version = x.version();
    }
    return Tensor<Low>(w.low);
  }
  Tensor<Low> low = rounded<Low>(x);
  held->all.push_back({x.ref(), x.version(), low});
  return low;
}

}  // namespace detail
}  // namespace TENET_CONFIG
}  // namespace tenet
