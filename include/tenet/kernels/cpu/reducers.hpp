// What a reduction computes: a state, how an element enters it, how two states become one, and its result.
//
//   State<T>           what is kept while elements of type T are seen
//   identity<T>()      the state of no elements
//   step(s, x, i)      `s` after element x, the i-th of its output
//   merge(a, b)        the state of a's elements followed by b's
//   finish(s, count)   the result
//   ordered            whether i has to count in row-major order
//   block(n, x, first) where there is a quicker way: the state of a contiguous run of elements
#pragma once

#include <tenet/kernels/cpu/integer.hpp>
#include <tenet/kernels/cpu/rows.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Sum, in accumulate_t<T>. Of no elements: 0.
struct Sum {
  static constexpr bool ordered = false;
  template <class T>
  using State = accumulate_t<T>;
  template <class T>
  static State<T> identity() {
    return 0;
  }
  template <class S, class T>
  TENET_ALWAYS_INLINE S step(S s, T x, int64_t) const {
    return wrapping_add(s, S(x));
  }
  template <class S>
  TENET_ALWAYS_INLINE S merge(S a, S b) const {
    return wrapping_add(a, b);
  }
  template <class S>
  S finish(S s, int64_t) const {
    return s;
  }
};

/// Sum of squares.
struct SumSquares : Sum {
  template <class S, class T>
  TENET_ALWAYS_INLINE S step(S s, T x, int64_t) const {
    TENET_NO_CONTRACTION
    return s + S(x) * S(x);
  }
};

/// Product. Of no elements: 1.
struct Product {
  static constexpr bool ordered = false;
  template <class T>
  using State = accumulate_t<T>;
  template <class T>
  static State<T> identity() {
    return 1;
  }
  template <class S, class T>
  TENET_ALWAYS_INLINE S step(S s, T x, int64_t) const {
    return wrapping_mul(s, S(x));
  }
  template <class S>
  TENET_ALWAYS_INLINE S merge(S a, S b) const {
    return wrapping_mul(a, b);
  }
  template <class S>
  S finish(S s, int64_t) const {
    return s;
  }
};

/// Greatest element; NaN when there is one. Of no elements: the least value of the type.
struct Max {
  static constexpr bool ordered = false;
  template <class T>
  using State = T;
  template <class T>
  static T identity() {
    using L = std::numeric_limits<T>;
    return L::has_infinity ? -L::infinity() : L::lowest();
  }
  template <class T>
  TENET_ALWAYS_INLINE T step(T s, T x, int64_t) const {
    return merge(s, x);
  }
  template <class T>
  TENET_ALWAYS_INLINE T merge(T a, T b) const {
    return ((b > a) | (b != b)) ? b : a;
  }
  template <class T>
  T finish(T s, int64_t) const {
    return s;
  }
};

/// Least element; NaN when there is one. Of no elements: the greatest value of the type.
struct Min {
  static constexpr bool ordered = false;
  template <class T>
  using State = T;
  template <class T>
  static T identity() {
    using L = std::numeric_limits<T>;
    return L::has_infinity ? L::infinity() : L::max();
  }
  template <class T>
  TENET_ALWAYS_INLINE T step(T s, T x, int64_t) const {
    return merge(s, x);
  }
  template <class T>
  TENET_ALWAYS_INLINE T merge(T a, T b) const {
    return ((b < a) | (b != b)) ? b : a;
  }
  template <class T>
  T finish(T s, int64_t) const {
    return s;
  }
};

/// Whether any element is not zero (NaN is not). Of no elements: false.
struct Any {
  static constexpr bool ordered = false;
  template <class T>
  using State = bool;
  template <class T>
  static bool identity() {
    return false;
  }
  template <class T>
  TENET_ALWAYS_INLINE bool step(bool s, T x, int64_t) const {
    return s | (x != T(0));
  }
  TENET_ALWAYS_INLINE bool merge(bool a, bool b) const { return a | b; }
  bool finish(bool s, int64_t) const { return s; }
};

/// Whether no element is zero. Of no elements: true.
struct All {
  static constexpr bool ordered = false;
  template <class T>
  using State = bool;
  template <class T>
  static bool identity() {
    return true;
  }
  template <class T>
  TENET_ALWAYS_INLINE bool step(bool s, T x, int64_t) const {
    return s & (x != T(0));
  }
  TENET_ALWAYS_INLINE bool merge(bool a, bool b) const { return a & b; }
  bool finish(bool s, int64_t) const { return s; }
};

/// The value and place of an extreme element; index -1: none seen yet.
template <class T>
struct Extreme {
  T value;
  int64_t index;
};

/// Place of the greatest (least) element in the row-major order of the reduced dimensions; the first of equal ones;
/// that of the first NaN when there is one. Of no elements: -1.
template <bool Greatest>
struct ArgExtreme {
  static constexpr bool ordered = true;
  template <class T>
  using State = Extreme<T>;
  template <class T>
  static State<T> identity() {
    return {T(0), -1};
  }
  template <class T>
  TENET_ALWAYS_INLINE Extreme<T> step(Extreme<T> s, T x, int64_t i) const {
    return merge(s, Extreme<T>{x, i});
  }
  template <class T>
  TENET_ALWAYS_INLINE Extreme<T> merge(Extreme<T> a, Extreme<T> b) const {
    if (a.index < 0 || b.index < 0) return b.index < 0 ? a : b;
    const bool nan_a = a.value != a.value, nan_b = b.value != b.value;
    const bool better = Greatest ? b.value > a.value : b.value < a.value;
    const bool equal = (nan_a && nan_b) || a.value == b.value;
    return (better && !nan_a) || (nan_b && !nan_a) || (equal && b.index < a.index) ? b : a;
  }
  template <class T>
  requires std::is_floating_point_v<T> Extreme<T> block(int64_t n, const T* x, int64_t first)
  const {
    const T value = detail::row_reduce(std::conditional_t<Greatest, Max, Min>(), n, x);
    int64_t i = 0;
    if (value == value) {
      while (x[i] != value) ++i;
    } else {
      while (x[i] == x[i]) ++i;
    }
    return {x[i], first + i};
  }
  template <class T>
  int64_t finish(Extreme<T> s, int64_t) const {
    return s.index;
  }
};

namespace detail {

struct SumSquaresAround : Sum {
  double mean;
  template <class S, class T>
  TENET_ALWAYS_INLINE S step(S s, T x, int64_t) const {
    TENET_NO_CONTRACTION
    const S d = S(x) - S(mean);
    return s + d * d;
  }
};

}  // namespace detail

/// Number, mean and sum of squared deviations of some elements.
template <class A>
struct Moments {
  A count, mean, deviation;
};

/// Variance: the sum of squared deviations from the mean over max(0, count - correction), NaN when both are 0.
/// A run takes two passes, single elements Welford's step; states are merged as in Chan, Golub, LeVeque, "Updating
/// formulae and a pairwise algorithm for computing sample variances", 1979.
struct Var {
  static constexpr bool ordered = false;
  double correction = 1;
  template <class T>
  using State = Moments<accumulate_t<T>>;
  template <class T>
  static State<T> identity() {
    return {0, 0, 0};
  }
  template <class A, class T>
  TENET_ALWAYS_INLINE Moments<A> step(Moments<A> s, T x, int64_t) const {
    TENET_NO_CONTRACTION
    const A count = s.count + 1, delta = A(x) - s.mean, mean = s.mean + delta / count;
    return {count, mean, s.deviation + delta * (A(x) - mean)};
  }
  template <class A>
  TENET_ALWAYS_INLINE Moments<A> merge(Moments<A> a, Moments<A> b) const {
    if (a.count == 0 || b.count == 0) return a.count == 0 ? b : a;
    const A count = a.count + b.count, delta = b.mean - a.mean, share = b.count / count;
    return {count, a.mean + delta * share, a.deviation + b.deviation + delta * delta * a.count * share};
  }
  template <class T>
  requires std::is_floating_point_v<T> Moments<T> block(int64_t n, const T* x, int64_t)
  const {
    const T mean = detail::row_reduce(Sum{}, n, x) / T(n);
    return {T(n), mean, detail::row_reduce(detail::SumSquaresAround{{}, mean}, n, x)};
  }
  template <class A>
  A finish(Moments<A> s, int64_t count) const {
    const double over = double(count) - correction;
    return A(double(s.deviation) / (over > 0 ? over : 0));
  }
};

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
