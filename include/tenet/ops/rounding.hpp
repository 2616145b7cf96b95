// floor, ceil, round and trunc of each element. Integers and bool are what they are; gradients are 0.
#pragma once

#include <tenet/ops/unary.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace op {

// Not always inlined: g++ would then leave the library's functions as calls.
struct Floor : StepOp<Floor> {
  static constexpr const char* name = "floor";
  auto f(auto x) const { return std::floor(x); }
};
struct Ceil : StepOp<Ceil> {
  static constexpr const char* name = "ceil";
  auto f(auto x) const { return std::ceil(x); }
};
struct Round : StepOp<Round> {
  static constexpr const char* name = "round";
  auto f(auto x) const { return std::nearbyint(x); }
};
struct Trunc : StepOp<Trunc> {
  static constexpr const char* name = "trunc";
  auto f(auto x) const { return std::trunc(x); }
};

}  // namespace op

namespace detail {
template <class Op, TensorLike X>
tensor_t<X> round_elements(X&& x) {
  if constexpr (FloatElement<element_t<X>>) return apply<Op>(as_tensor(std::forward<X>(x)), Op{});
  else return x;
}
}  // namespace detail

/// The largest integer not above x.
template <TensorLike X>
tensor_t<X> floor(X&& x) {
  return detail::round_elements<op::Floor>(std::forward<X>(x));
}
/// The smallest integer not below x.
template <TensorLike X>
tensor_t<X> ceil(X&& x) {
  return detail::round_elements<op::Ceil>(std::forward<X>(x));
}
/// The nearest integer; of two, the even one.
template <TensorLike X>
tensor_t<X> round(X&& x) {
  return detail::round_elements<op::Round>(std::forward<X>(x));
}
/// x without its fraction.
template <TensorLike X>
tensor_t<X> trunc(X&& x) {
  return detail::round_elements<op::Trunc>(std::forward<X>(x));
}

}  // namespace TENET_CONFIG
}  // namespace tenet
