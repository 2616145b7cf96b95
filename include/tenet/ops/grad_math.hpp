// The operations behind the engine's arithmetic on gradients.
#pragma once

#include <tenet/ops/apply.hpp>
#include <tenet/ops/arithmetic.hpp>
#include <tenet/ops/broadcast.hpp>
#include <tenet/ops/copy.hpp>

namespace tenet::autograd {
inline namespace TENET_CONFIG {

namespace detail {

template <class T>
bool has_nan(const AnyTensor& x) {
  for (T v : Tensor<T>(x).to_vector()) {
    if (v != v) return true;
  }
  return false;
}

}  // namespace detail

template <class T>
const GradMath& grad_math() {
  static constexpr GradMath math{
      [](const AnyTensor& a, const AnyTensor& b) -> AnyTensor { return add(Tensor<T>(a), Tensor<T>(b)); },
      [](const AnyTensor& to, const AnyTensor& from) { add_into(Tensor<T>(to), Tensor<T>(from)); },
      [](const AnyTensor& x, const Shape& shape) -> AnyTensor { return sum_to(Tensor<T>(x), shape); },
      [](const AnyTensor& x) -> AnyTensor { return clone(Tensor<T>(x)); },
      &detail::has_nan<T>,
  };
  return math;
}

}  // namespace TENET_CONFIG
}  // namespace tenet::autograd
