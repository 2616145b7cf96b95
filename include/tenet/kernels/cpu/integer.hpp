// Arithmetic that is defined for every integer: sums and products wrap around, and divisions round as told.
// Of the first four, floating types have their own.
#pragma once

#include <tenet/core/dtype.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

namespace detail {
// At least 32 bits, so that nothing is promoted to a signed type again.
template <class T>
using unsigned_t = std::conditional_t<(sizeof(T) > 4), std::uint64_t, std::uint32_t>;
}  // namespace detail

template <class T>
TENET_ALWAYS_INLINE constexpr T wrapping_add(T a, T b) {
  if constexpr (IntElement<T>) return T(detail::unsigned_t<T>(a) + detail::unsigned_t<T>(b));
  else return T(a + b);
}
template <class T>
TENET_ALWAYS_INLINE constexpr T wrapping_sub(T a, T b) {
  if constexpr (IntElement<T>) return T(detail::unsigned_t<T>(a) - detail::unsigned_t<T>(b));
  else return T(a - b);
}
template <class T>
TENET_ALWAYS_INLINE constexpr T wrapping_mul(T a, T b) {
  if constexpr (IntElement<T>) return T(detail::unsigned_t<T>(a) * detail::unsigned_t<T>(b));
  else return T(a * b);
}
template <class T>
TENET_ALWAYS_INLINE constexpr T wrapping_neg(T x) {
  if constexpr (IntElement<T>) return wrapping_sub(T(0), x);
  else return T(-x);
}

/// The remainder of a / b, b != 0: of the sign of `a`.
template <IntElement T>
constexpr T truncated_remainder(T a, T b) {
  return std::is_signed_v<T> && b == T(-1)
             ? T(0)
             : T(a % b);  // the lowest number has no negative: its quotient by -1 would overflow
}
/// The remainder of a / b, b != 0: of the sign of `b`.
template <IntElement T>
constexpr T floored_remainder(T a, T b) {
  const T r = truncated_remainder(a, b);
  return r != 0 && (r < T(0)) != (b < T(0)) ? T(r + b) : r;
}
/// a / b, b != 0, rounded down; wraps around for the lowest number by -1.
template <IntElement T>
constexpr T floored_quotient(T a, T b) {
  if (std::is_signed_v<T> && b == T(-1)) return wrapping_sub(T(0), a);
  const T q = T(a / b);
  return (a % b != 0 && (a < T(0)) != (b < T(0))) ? T(q - 1) : q;
}
/// x to the power n >= 0, wrapping around.
template <IntElement T>
constexpr T power(T x, std::int64_t n) {
  T y = 1;
  for (; n > 0; n /= 2) {
    if (n % 2) y = wrapping_mul(y, x);
    x = wrapping_mul(x, x);
  }
  return y;
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
