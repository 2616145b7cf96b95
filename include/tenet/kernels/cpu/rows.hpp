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

// The last elements of a row, filled up to all lanes.
template <class C>
TENET_ALWAYS_INLINE void load_rest(C* lanes, int64_t n, const C* x, C filler) {
  for (int j = 0; j < row_lanes; ++j) lanes[j] = filler;
  std::memcpy(lanes, x, std::size_t(n) * sizeof(C));
}

// *most = max(x), passing over NaN.
template <class C>
struct RowMax {
  TENET_ALWAYS_INLINE static void step(const C* x, C* m) {
    TENET_LOOP
    for (int j = 0; j < row_lanes; ++j) m[j] = x[j] > m[j] ? x[j] : m[j];
  }
  TENET_ALWAYS_INLINE static void run(int64_t n, const C* x, C* most) {
    constexpr C low = -std::numeric_limits<C>::infinity();
    C m[row_lanes], rest[row_lanes];
    for (int j = 0; j < row_lanes; ++j) m[j] = low;
    int64_t i = 0;
    for (; i + row_lanes <= n; i += row_lanes) step(x + i, m);
    if (i < n) {
      load_rest(rest, n - i, x + i, low);
      step(rest, m);
    }
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
  TENET_ALWAYS_INLINE static void step(const C* x, C shift, C* y, C* s) {
    TENET_LOOP
    for (int j = 0; j < row_lanes; ++j) {
      y[j] = math::exp(x[j] - shift);
      s[j] += y[j];
    }
  }
  TENET_ALWAYS_INLINE static void run(int64_t n, const C* x, C shift, C* y, C* sum) {
    C s[row_lanes] = {}, rest[row_lanes], terms[row_lanes];
    int64_t i = 0;
    for (; i + row_lanes <= n; i += row_lanes) step(x + i, shift, y ? y + i : terms, s);
    if (i < n) {
      load_rest(rest, n - i, x + i, -std::numeric_limits<C>::infinity());
      step(rest, shift, terms, s);
      if (y) std::memcpy(y + i, terms, std::size_t(n - i) * sizeof(C));
    }
    *sum = sum_lanes(s);
  }
};

// *sum = sum of f(a, b) over two rows, f(0, 0) being 0.
template <class F, class C>
struct RowSum {
  TENET_ALWAYS_INLINE static void step(const F& f, const C* a, const C* b, C* s) {
    TENET_LOOP
    for (int j = 0; j < row_lanes; ++j) s[j] += f(a[j], b[j]);
  }
  TENET_ALWAYS_INLINE static void run(F f, int64_t n, const C* a, const C* b, C* sum) {
    C s[row_lanes] = {}, rest_a[row_lanes], rest_b[row_lanes];
    int64_t i = 0;
    for (; i + row_lanes <= n; i += row_lanes) step(f, a + i, b + i, s);
    if (i < n) {
      load_rest(rest_a, n - i, a + i, C(0));
      load_rest(rest_b, n - i, b + i, C(0));
      step(f, rest_a, rest_b, s);
    }
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
