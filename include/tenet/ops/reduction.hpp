// How the losses of single elements become one.
#pragma once

#include <tenet/ops/reduce.hpp>

namespace tenet {

/// What a loss function returns of the losses it computed: each of them, their mean or their sum.
enum class Reduction : std::uint8_t { none, mean, sum };

inline namespace TENET_CONFIG {

namespace detail {

inline void check_same_shape(const char* op, const Shape& x, const Shape& target) {
  if (!(x == target)) throw ShapeError(text({op, ": expected a target of shape ", x, ", got ", target}));
}

}  // namespace detail

/// `losses` as `reduction` tells; of no losses the mean is NaN and the sum 0.
template <class T>
Tensor<T> reduce_losses(const Tensor<T>& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::none: return losses;
    case Reduction::mean: return mean(losses);
    case Reduction::sum: return sum(losses);
  }
  throw Error("loss: not a Reduction");
}

}  // namespace TENET_CONFIG
}  // namespace tenet
