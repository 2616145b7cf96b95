// Dual<T, Inputs>: a number and its derivatives by some of the inputs of a function: what a function that is given to
// map() computes with, see ops/map.hpp.
//
// `Inputs` has bit k set where the number depends on input k. What an input has no part in costs nothing, and cannot
// turn its derivative into NaN. Dual<T> is a plain number. T is float, double, or a Dual again: for derivatives of
// derivatives.
#pragma once

#include <tenet/kernels/cpu/math.hpp>

#include <numbers>
#include <utility>

namespace tenet {
inline namespace TENET_CONFIG {

template <class T, unsigned Inputs = 0>
struct Dual {
  using Number = T;
  static constexpr unsigned inputs = Inputs;
  static constexpr int count = __builtin_popcount(Inputs);

  T value;
  T slopes[count > 0 ? count : 1];  // by rising input

  Dual() = default;
  /// A constant.
  TENET_ALWAYS_INLINE Dual(T v) : value(v), slopes{} {}
  template <class V>
  requires(std::is_arithmetic_v<V> && !std::is_same_v<V, T>) TENET_ALWAYS_INLINE Dual(V v) : Dual(T(v)) {}
  /// A value and one derivative for each input.
  template <class... D>
  requires(sizeof...(D) == std::size_t(count) && count > 0) TENET_ALWAYS_INLINE Dual(T v, D... d)
      : value(v), slopes{d...} {}
  /// A number of fewer inputs.
  template <unsigned Fewer>
  requires(Fewer != Inputs && (Fewer & ~Inputs) == 0) TENET_ALWAYS_INLINE Dual(const Dual<T, Fewer>& x)
      : Dual(x, std::make_integer_sequence<int, count>()) {}

  /// The derivative by input K.
  template <int K>
  TENET_ALWAYS_INLINE T slope() const {
    if constexpr (depends<K>()) return slopes[__builtin_popcount(Inputs & ((1u << K) - 1))];
    else return T(0);
  }
  template <int K>
  static constexpr bool depends() {
    return (Inputs >> K & 1u) != 0;
  }
  /// The input of the J-th derivative.
  static constexpr int input(int j) {
    unsigned rest = Inputs;
    for (; j > 0; --j) rest &= rest - 1;
    return __builtin_ctz(rest);
  }

 private:
  template <unsigned Fewer, int... J>
  TENET_ALWAYS_INLINE Dual(const Dual<T, Fewer>& x, std::integer_sequence<int, J...>)
      : value(x.value), slopes{x.template slope<input(J)>()...} {}
};

namespace detail {

template <class X>
inline constexpr bool is_dual = false;
template <class T, unsigned Inputs>
inline constexpr bool is_dual<Dual<T, Inputs>> = true;

template <class T>
TENET_ALWAYS_INLINE Dual<T> as_dual(const T& x) {
  return x;
}
template <class T, unsigned Inputs>
TENET_ALWAYS_INLINE Dual<T, Inputs> as_dual(const Dual<T, Inputs>& x) {
  return x;
}
template <class T, class V>
requires(std::is_arithmetic_v<V> && !std::is_same_v<V, T>) TENET_ALWAYS_INLINE Dual<T> as_dual(V x) { return T(x); }

/// What the numbers are made of in the end: float or double.
template <class T>
struct scalar_of {
  using type = T;
};
template <class T, unsigned Inputs>
struct scalar_of<Dual<T, Inputs>> : scalar_of<T> {};
template <class T>
using scalar_t = typename scalar_of<T>::type;

/// Operands of which one is a Dual and the other one too, or a plain number.
template <class A, class B>
concept DualOperands = (is_dual<A> && (is_dual<B> || std::is_arithmetic_v<B>)) ||
                       (std::is_arithmetic_v<A> && is_dual<B>);

template <class A, class B>
struct Operands {
  A a;
  B b;
};
/// Both operands as Duals.
template <class X, class Y>
TENET_ALWAYS_INLINE auto both(const X& x, const Y& y) {
  using T = typename std::conditional_t<is_dual<X>, X, Y>::Number;
  return Operands<decltype(as_dual<T>(x)), decltype(as_dual<T>(y))>{as_dual<T>(x), as_dual<T>(y)};
}

// The derivative by input K of a result whose slope is p in a, and q in b.
template <int K, class T, class P, unsigned A, class Q, unsigned B>
TENET_ALWAYS_INLINE T chain_one(const P& p, const Dual<T, A>& a, const Q& q, const Dual<T, B>& b) {
  TENET_NO_CONTRACTION
  constexpr bool by_a = Dual<T, A>::template depends<K>(), by_b = Dual<T, B>::template depends<K>();
  if constexpr (by_a && by_b) return p * a.template slope<K>() + q * b.template slope<K>();
  else if constexpr (by_a) return p * a.template slope<K>();
  else return q * b.template slope<K>();
}
template <class T, class P, unsigned A, class Q, unsigned B, int... J>
TENET_ALWAYS_INLINE Dual<T, A | B> chain(const T& y, const P& p, const Dual<T, A>& a, const Q& q, const Dual<T, B>& b,
                                         std::integer_sequence<int, J...>) {
  return {y, chain_one<Dual<T, A | B>::input(J)>(p, a, q, b)...};
}
/// The result y of an operation whose slope is p in a, and q in b.
template <class T, class P, unsigned A, class Q, unsigned B>
TENET_ALWAYS_INLINE Dual<T, A | B> chain(const T& y, const P& p, const Dual<T, A>& a, const Q& q, const Dual<T, B>& b) {
  return chain(y, p, a, q, b, std::make_integer_sequence<int, Dual<T, A | B>::count>());
}
template <class T, class P, unsigned A>
TENET_ALWAYS_INLINE Dual<T, A> chain(const T& y, const P& p, const Dual<T, A>& a) {
  return chain(y, p, a, p, Dual<T>());
}

template <class T, unsigned A, unsigned B, int... J>
TENET_ALWAYS_INLINE Dual<T, A | B> select(bool c, const Dual<T, A>& a, const Dual<T, B>& b,
                                          std::integer_sequence<int, J...>) {
  using Y = Dual<T, A | B>;
  return {c ? a.value : b.value, c ? a.template slope<Y::input(J)>() : b.template slope<Y::input(J)>()...};
}
/// a if c, else b, with its derivatives.
template <class T, unsigned A, unsigned B>
TENET_ALWAYS_INLINE Dual<T, A | B> select(bool c, const Dual<T, A>& a, const Dual<T, B>& b) {
  return select(c, a, b, std::make_integer_sequence<int, Dual<T, A | B>::count>());
}

/// What is assigned to a variable that depends on `Inputs`.
template <unsigned Inputs, class X>
TENET_ALWAYS_INLINE const X& same_inputs(const X& x) {
  static_assert(X::inputs == Inputs,
                "map: a variable cannot take in further inputs, by += for example: make a new one");
  return x;
}

template <class T, unsigned A, unsigned B>
TENET_ALWAYS_INLINE Dual<T, A | B> maximum(const Dual<T, A>& a, const Dual<T, B>& b) {
  const Dual<T, A | B> shared = chain(b.value, T(0.5f), a, T(0.5f), b);
  const Dual<T, A | B> rest = select(a.value == b.value, shared, b);
  const bool larger = a.value > b.value, nan = a.value != a.value;
  return select(larger | nan, a, rest);
}

}  // namespace detail

// ---- arithmetic and comparisons, of Duals and plain numbers

template <class T, unsigned A>
TENET_ALWAYS_INLINE Dual<T, A> operator+(const Dual<T, A>& a) {
  return a;
}
template <class T, unsigned A>
TENET_ALWAYS_INLINE Dual<T, A> operator-(const Dual<T, A>& a) {
  return detail::chain(T(-a.value), -1, a);
}
template <class X, class Y>
requires detail::DualOperands<X, Y> TENET_ALWAYS_INLINE auto operator+(const X& x, const Y& y) {
  const auto [a, b] = detail::both(x, y);
  return detail::chain(a.value + b.value, 1, a, 1, b);
}
template <class X, class Y>
requires detail::DualOperands<X, Y> TENET_ALWAYS_INLINE auto operator-(const X& x, const Y& y) {
  const auto [a, b] = detail::both(x, y);
  return detail::chain(a.value - b.value, 1, a, -1, b);
}
template <class X, class Y>
requires detail::DualOperands<X, Y> TENET_ALWAYS_INLINE auto operator*(const X& x, const Y& y) {
  const auto [a, b] = detail::both(x, y);
  return detail::chain(a.value * b.value, b.value, a, a.value, b);
}
template <class X, class Y>
requires detail::DualOperands<X, Y> TENET_ALWAYS_INLINE auto operator/(const X& x, const Y& y) {
  const auto [a, b] = detail::both(x, y);
  const auto ratio = a.value / b.value, p = 1 / b.value;
  return detail::chain(ratio, p, a, -ratio * p, b);
}
template <class T, unsigned A, class Y>
TENET_ALWAYS_INLINE Dual<T, A>& operator+=(Dual<T, A>& x, const Y& y) {
  return x = detail::same_inputs<A>(x + y);
}
template <class T, unsigned A, class Y>
TENET_ALWAYS_INLINE Dual<T, A>& operator-=(Dual<T, A>& x, const Y& y) {
  return x = detail::same_inputs<A>(x - y);
}
template <class T, unsigned A, class Y>
TENET_ALWAYS_INLINE Dual<T, A>& operator*=(Dual<T, A>& x, const Y& y) {
  return x = detail::same_inputs<A>(x * y);
}
template <class T, unsigned A, class Y>
TENET_ALWAYS_INLINE Dual<T, A>& operator/=(Dual<T, A>& x, const Y& y) {
  return x = detail::same_inputs<A>(x / y);
}
template <class X, class Y>
requires detail::DualOperands<X, Y> TENET_ALWAYS_INLINE bool operator==(const X& x, const Y& y) {
  const auto [a, b] = detail::both(x, y);
  return a.value == b.value;
}
template <class X, class Y>
requires detail::DualOperands<X, Y> TENET_ALWAYS_INLINE bool operator<(const X& x, const Y& y) {
  const auto [a, b] = detail::both(x, y);
  return a.value < b.value;
}
template <class X, class Y>
requires detail::DualOperands<X, Y> TENET_ALWAYS_INLINE bool operator>(const X& x, const Y& y) {
  const auto [a, b] = detail::both(x, y);
  return a.value > b.value;
}
template <class X, class Y>
requires detail::DualOperands<X, Y> TENET_ALWAYS_INLINE bool operator<=(const X& x, const Y& y) {
  const auto [a, b] = detail::both(x, y);
  return a.value <= b.value;
}
template <class X, class Y>
requires detail::DualOperands<X, Y> TENET_ALWAYS_INLINE bool operator>=(const X& x, const Y& y) {
  const auto [a, b] = detail::both(x, y);
  return a.value >= b.value;
}

// ---- functions, with the names of those of tensors

template <class T, unsigned A>
TENET_ALWAYS_INLINE Dual<T, A> exp(const Dual<T, A>& x) {
  using cpu::math::exp;
  const T y = exp(x.value);
  return detail::chain(y, y, x);
}
template <class T, unsigned A>
TENET_ALWAYS_INLINE Dual<T, A> expm1(const Dual<T, A>& x) {
  using cpu::math::expm1;
  const T y = expm1(x.value);
  return detail::chain(y, y + 1, x);
}
template <class T, unsigned A>
TENET_ALWAYS_INLINE Dual<T, A> log(const Dual<T, A>& x) {
  using cpu::math::log;
  return detail::chain(log(x.value), 1 / x.value, x);
}
template <class T, unsigned A>
TENET_ALWAYS_INLINE Dual<T, A> log1p(const Dual<T, A>& x) {
  using cpu::math::log1p;
  return detail::chain(log1p(x.value), 1 / (1 + x.value), x);
}
template <class T, unsigned A>
TENET_ALWAYS_INLINE Dual<T, A> sqrt(const Dual<T, A>& x) {
  using cpu::math::sqrt;
  const T y = sqrt(x.value);
  return detail::chain(y, T(0.5f) / y, x);
}
template <class T, unsigned A>
TENET_ALWAYS_INLINE Dual<T, A> tanh(const Dual<T, A>& x) {
  using cpu::math::tanh;
  const T y = tanh(x.value);
  return detail::chain(y, 1 - y * y, x);
}
template <class T, unsigned A>
TENET_ALWAYS_INLINE Dual<T, A> sigmoid(const Dual<T, A>& x) {
  using cpu::math::sigmoid;
  const T y = sigmoid(x.value);
  return detail::chain(y, y * (1 - y), x);
}
template <class T, unsigned A>
TENET_ALWAYS_INLINE Dual<T, A> erf(const Dual<T, A>& x) {
  using cpu::math::erf, cpu::math::exp;
  const T y = erf(x.value);
  if constexpr (A == 0) return y;
  else return detail::chain(y, T(2 * std::numbers::inv_sqrtpi) * exp(-x.value * x.value), x);
}
/// The standard library's, which is not vectorized; cos and pow too.
template <class T, unsigned A>
TENET_ALWAYS_INLINE Dual<T, A> sin(const Dual<T, A>& x) {
  using cpu::math::cos, cpu::math::sin;
  const T y = sin(x.value);
  if constexpr (A == 0) return y;
  else return detail::chain(y, cos(x.value), x);
}
template <class T, unsigned A>
TENET_ALWAYS_INLINE Dual<T, A> cos(const Dual<T, A>& x) {
  using cpu::math::cos, cpu::math::sin;
  const T y = cos(x.value);
  if constexpr (A == 0) return y;
  else return detail::chain(y, -sin(x.value), x);
}
template <class T, unsigned A>
TENET_ALWAYS_INLINE Dual<T, A> square(const Dual<T, A>& x) {
  return x * x;
}
/// Slope 0 at 0.
template <class T, unsigned A>
TENET_ALWAYS_INLINE Dual<T, A> relu(const Dual<T, A>& x) {
  return detail::select(x.value <= 0, Dual<T>(), x);
}
/// Slope 0 at 0.
template <class T, unsigned A>
TENET_ALWAYS_INLINE Dual<T, A> abs(const Dual<T, A>& x) {
  const T sign = x.value > 0 ? T(1) : x.value < 0 ? T(-1) : T(0);
  return detail::chain(x.value > 0 ? x.value : 0 - x.value, sign, x);
}
/// a^b. Slope 0 in a where b is 0, and in b where a is 0 and b >= 0.
template <class T, unsigned A, class V>
requires std::is_arithmetic_v<V> TENET_ALWAYS_INLINE Dual<T, A> pow(const Dual<T, A>& a, V b) {
  using cpu::math::pow;
  const auto exponent = detail::scalar_t<T>(b);
  if (exponent == 2) return a * a;
  const T y = pow(a.value, exponent);
  if constexpr (A == 0) return y;
  else return detail::chain(y, exponent == 0 ? T(0) : exponent * pow(a.value, exponent - 1), a);
}
template <class T, unsigned B, class V>
requires std::is_arithmetic_v<V> TENET_ALWAYS_INLINE Dual<T, B> pow(V a, const Dual<T, B>& b) {
  using cpu::math::pow;
  const auto base = detail::scalar_t<T>(a);
  const T y = pow(base, b.value);
  if constexpr (B == 0) return y;
  else return detail::chain(y, base == 0 && b.value >= 0 ? T(0) : y * cpu::math::log(base), b);
}
template <class T, unsigned A, unsigned B>
TENET_ALWAYS_INLINE Dual<T, A | B> pow(const Dual<T, A>& a, const Dual<T, B>& b) {
  using cpu::math::log, cpu::math::pow;
  const T y = pow(a.value, b.value);
  if constexpr ((A | B) == 0) return y;
  else {
    const T p = b.value == 0 ? T(0) : b.value * pow(a.value, b.value - 1);
    const T q = a.value == 0 && b.value >= 0 ? T(0) : y * log(a.value);
    return detail::chain(y, p, a, q, b);
  }
}
/// The larger or smaller one; NaN if one is. Equals share the slope.
template <class X, class Y>
requires detail::DualOperands<X, Y> TENET_ALWAYS_INLINE auto maximum(const X& x, const Y& y) {
  const auto [a, b] = detail::both(x, y);
  return detail::maximum(a, b);
}
template <class X, class Y>
requires detail::DualOperands<X, Y> TENET_ALWAYS_INLINE auto minimum(const X& x, const Y& y) {
  const auto [a, b] = detail::both(x, y);
  return -detail::maximum(-a, -b);
}
template <class X, class Y>
requires detail::DualOperands<X, Y> TENET_ALWAYS_INLINE auto max(const X& x, const Y& y) { return maximum(x, y); }
template <class X, class Y>
requires detail::DualOperands<X, Y> TENET_ALWAYS_INLINE auto min(const X& x, const Y& y) { return minimum(x, y); }
/// x if the condition holds, else y, with the slopes of the one chosen alone.
template <class X, class Y>
requires detail::DualOperands<X, Y> TENET_ALWAYS_INLINE auto where(bool condition, const X& x, const Y& y) {
  const auto [a, b] = detail::both(x, y);
  return detail::select(condition, a, b);
}

}  // namespace TENET_CONFIG
}  // namespace tenet
