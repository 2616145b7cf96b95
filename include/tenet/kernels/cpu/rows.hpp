// Building blocks of kernels that go over the rows of a matrix: reductions and exponentials of one row.
//
// Element i always enters lane i modulo the number of lanes, and the lanes are merged in a fixed order, so that a row's
// result does not depend on the instruction set.
#pragma once

#include <tenet/kernels/cpu/math.hpp>

#include <cstring>
#include <memory>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace detail {

inline constexpr int row_lanes = 32;

// Merges `Lanes` states into s[0], halves onto halves; the constant bounds let it be vectorized.
template <int Lanes, class Op, class State>
TENET_ALWAYS_INLINE void merge_lanes(const Op& op, State* s) {
  if constexpr (Lanes > 1) {
    for (int j = 0; j < Lanes / 2; ++j) s[j] = op.merge(s[j], s[j + Lanes / 2]);
    merge_lanes<Lanes / 2>(op, s);
  }
}

struct Plus {
  template <class C>
  TENET_ALWAYS_INLINE C merge(C a, C b) const {
    return a + b;
  }
};

// *out = the reduction (see reducers.hpp) of n >= row_lanes elements, the first of which is the one numbered `first`.
template <class R, class C, class State>
struct RowReduce {
  static constexpr bool unrolls = true;
  TENET_ALWAYS_INLINE static void run(R op, int64_t n, const C* x, int64_t first, State* out) {
    State s[row_lanes];
    TENET_LOOP
    for (int j = 0; j < row_lanes; ++j) s[j] = op.step(R::template identity<C>(), x[j], first + j);
    int64_t i = row_lanes;
    for (; i + row_lanes <= n; i += row_lanes) {
      TENET_LOOP
      for (int j = 0; j < row_lanes; ++j) s[j] = op.step(s[j], x[i + j], first + i + j);
    }
    for (int j = 0; i + j < n; ++j) s[j] = op.step(s[j], x[i + j], first + i + j);
    merge_lanes<row_lanes>(op, s);
    *out = s[0];
  }
};

// *sum = sum of a * b.
template <class C>
struct RowDot {
  static constexpr bool unrolls = true;
  TENET_ALWAYS_INLINE static void run(int64_t n, const C* a, const C* b, C* sum) {
    TENET_NO_CONTRACTION
    C s[row_lanes] = {};
    int64_t i = 0;
    for (; i + row_lanes <= n; i += row_lanes) {
      TENET_LOOP
      for (int j = 0; j < row_lanes; ++j) s[j] += a[i + j] * b[i + j];
    }
    for (int j = 0; i + j < n; ++j) s[j] += a[i + j] * b[i + j];
    merge_lanes<row_lanes>(Plus{}, s);
    *sum = s[0];
  }
};

inline constexpr int exp_lanes = 16;

// *sum = sum of e^(x - shift); y, unless null, gets the terms. The last elements are filled up to all lanes, for a
// scalar exponential takes as long as a vector of them.
template <class C>
struct RowExp {
  static constexpr bool unrolls = true;
  TENET_ALWAYS_INLINE static void step(const C* x, C shift, C* y, C* s) {
    TENET_LOOP
    for (int j = 0; j < exp_lanes; ++j) {
      y[j] = math::exp(x[j] - shift);
      s[j] += y[j];
    }
  }
  TENET_ALWAYS_INLINE static void run(int64_t n, const C* x, C shift, C* y, C* sum) {
    C s[exp_lanes] = {}, rest[exp_lanes], terms[exp_lanes];
    int64_t i = 0;
    for (; i + exp_lanes <= n; i += exp_lanes) step(x + i, shift, y ? y + i : terms, s);
    if (i < n) {
      const std::size_t bytes = std::size_t(n - i) * sizeof(C);
      for (int j = 0; j < exp_lanes; ++j) rest[j] = -std::numeric_limits<C>::infinity();
      std::memcpy(rest, x + i, bytes);
      step(rest, shift, terms, s);
      if (y) std::memcpy(y + i, terms, bytes);
    }
    merge_lanes<exp_lanes>(Plus{}, s);
    *sum = s[0];
  }
};

template <class R, class C>
auto row_reduce(R op, int64_t n, const C* x, int64_t first = 0) {
  using State = typename R::template State<C>;
  State state = R::template identity<C>();
  if (n < row_lanes) {
    for (int64_t i = 0; i < n; ++i) state = op.step(state, x[i], first + i);
  } else if constexpr (std::is_floating_point_v<State>) {
    vectorized<RowReduce<R, C, State>>(op, n, x, first, &state);
  } else {
    run_baseline<RowReduce<R, C, State>>(op, n, x, first, &state);
  }
  return state;
}

template <class C>
C row_dot(int64_t n, const C* a, const C* b) {
  C sum;
  vectorized<RowDot<C>>(n, a, b, &sum);
  return sum;
}

template <class C>
C row_exp(int64_t n, const C* x, C shift, C* y) {
  C sum;
  vectorized<RowExp<C>>(n, x, shift, y, &sum);
  return sum;
}

// A row of T as a row of compute_t<T>: itself, or a converted copy.
template <class T>
class Row {
 public:
  using C = compute_t<T>;
  static constexpr bool converts = !std::is_same_v<C, T>;

  explicit Row(int64_t n) : n_(n), copy_(converts ? std::make_unique_for_overwrite<C[]>(std::size_t(n)) : nullptr) {}

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
