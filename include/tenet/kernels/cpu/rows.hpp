// Building blocks of kernels that go over the rows of a matrix: sums, maxima and exponentials of one row.
//
// Element i always enters lane i modulo row_lanes, and the lanes are merged in a fixed order, so that a row's result
// does not depend on the instruction set.
#pragma once

#include <tenet/kernels/cpu/math.hpp>

#include <cstring>
#include <memory>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace detail {

inline constexpr int row_lanes = 16;

// Calls f(lanes of x) for each row_lanes elements, the last ones filled up, and writes what f made of them to y
// unless that is null.
template <class C, class F>
TENET_ALWAYS_INLINE void each_lanes(int64_t n, const C* x, C* y, C filler, F f) {
  C t[row_lanes];
  int64_t i = 0;
  for (; i + row_lanes <= n; i += row_lanes) {
    std::memcpy(t, x + i, sizeof t);
    f(t);
    if (y) std::memcpy(y + i, t, sizeof t);
  }
  if (i == n) return;
  const std::size_t rest = std::size_t(n - i) * sizeof(C);
  for (int j = 0; j < row_lanes; ++j) t[j] = filler;
  std::memcpy(t, x + i, rest);
  f(t);
  if (y) std::memcpy(y + i, t, rest);
}

// *most = max(x), passing over NaN.
template <class C>
struct RowMax {
  TENET_ALWAYS_INLINE static void run(int64_t n, const C* x, C* most) {
    constexpr C low = -std::numeric_limits<C>::infinity();
    C m[row_lanes];
    for (int j = 0; j < row_lanes; ++j) m[j] = low;
    each_lanes(
        n, x, static_cast<C*>(nullptr), low, [&](C * t) __attribute__((always_inline)) {
          for (int j = 0; j < row_lanes; ++j) m[j] = t[j] > m[j] ? t[j] : m[j];
        });
    for (int distance = row_lanes / 2; distance > 0; distance /= 2)
      for (int j = 0; j < distance; ++j) m[j] = m[j + distance] > m[j] ? m[j + distance] : m[j];
    *most = m[0];
  }
};

template <class C>
TENET_ALWAYS_INLINE C sum_lanes(C* s) {
  for (int distance = row_lanes / 2; distance > 0; distance /= 2)
    for (int j = 0; j < distance; ++j) s[j] += s[j + distance];
  return s[0];
}

// *sum = sum of e^(x - shift); y, unless null, gets the terms.
template <class C>
struct RowExp {
  TENET_ALWAYS_INLINE static void run(int64_t n, const C* x, C shift, C* y, C* sum) {
    C s[row_lanes] = {};
    each_lanes(
        n, x, y, -std::numeric_limits<C>::infinity(), [&](C * t) __attribute__((always_inline)) {
          for (int j = 0; j < row_lanes; ++j) {
            t[j] = math::exp(t[j] - shift);
            s[j] += t[j];
          }
        });
    *sum = sum_lanes(s);
  }
};

// *sum = sum of f(a, b) over two rows, f(0, 0) being 0.
template <class F, class C>
struct RowSum {
  TENET_ALWAYS_INLINE static void run(F f, int64_t n, const C* a, const C* b, C* sum) {
    C s[row_lanes] = {}, ta[row_lanes] = {}, tb[row_lanes] = {};
    int64_t i = 0;
    for (; i + row_lanes <= n; i += row_lanes) {
      TENET_LOOP
      for (int j = 0; j < row_lanes; ++j) s[j] += f(a[i + j], b[i + j]);
    }
    const std::size_t rest = std::size_t(n - i) * sizeof(C);
    std::memcpy(ta, a + i, rest);
    std::memcpy(tb, b + i, rest);
    for (int j = 0; j < row_lanes; ++j) s[j] += f(ta[j], tb[j]);
    *sum = sum_lanes(s);
  }
};

struct First {
  template <class C>
  TENET_ALWAYS_INLINE C operator()(C a, C) const {
    return a;
  }
};
struct Times {
  template <class C>
  TENET_ALWAYS_INLINE C operator()(C a, C b) const {
    return a * b;
  }
};

template <class C>
C row_max(int64_t n, const C* x) {
  C most;
  vectorized<RowMax<C>>(n, x, &most);
  return most;
}

template <class C>
C row_exp(int64_t n, const C* x, C shift, C* y) {
  C sum;
  vectorized<RowExp<C>>(n, x, shift, y, &sum);
  return sum;
}

template <class F, class C>
C row_sum(F f, int64_t n, const C* a, const C* b) {
  C sum;
  vectorized<RowSum<F, C>>(f, n, a, b, &sum);
  return sum;
}

// A row of T as a row of compute_t<T>: itself, or a converted copy.
template <class T>
class Row {
 public:
  using C = compute_t<T>;
  static constexpr bool converts = !std::is_same_v<C, T>;

  explicit Row(int64_t n) : n_(n), copy_(converts ? std::make_unique<C[]>(std::size_t(n)) : nullptr) {}

  const C* read(const T* row) {
    if constexpr (converts) {
      convert(n_, copy_.get(), row);
      return copy_.get();
    } else {
      return row;
    }
  }
  // Where to compute what `commit` then puts into `row`.
  C* write(T* row) {
    if constexpr (converts) {
      return copy_.get();
    } else {
      return row;
    }
  }
  void commit(T* row) {
    if constexpr (converts) convert(n_, row, copy_.get());
  }

 private:
  int64_t n_;
  std::unique_ptr<C[]> copy_;
};

// Rows of n elements for one piece of parallel work.
inline int64_t row_grain(int64_t n) { return n < 32768 ? 32768 / (n > 0 ? n : 1) : 1; }

}  // namespace detail
}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
