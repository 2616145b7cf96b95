// Layer normalization over the rows of contiguous matrices [rows, n] of float or double.
#pragma once

#include <tenet/kernels/cpu/reduce.hpp>
#include <tenet/kernels/cpu/update.hpp>

#include <algorithm>
#include <cmath>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

namespace detail {

template <class T>
struct NormalizeRow {
  T mean, over;
  TENET_ALWAYS_INLINE T operator()(T x, T weight, T bias) const {
    TENET_NO_CONTRACTION
    return (x - mean) * over * weight + bias;
  }
};

template <class T>
struct RowGradient {
  T mean, over, shift, slope;
  TENET_ALWAYS_INLINE T operator()(T x, T dy, T weight) const {
    TENET_NO_CONTRACTION
    return over * ((dy * weight - shift) - (x - mean) * over * slope);
  }
};

// sums[0] = sum of dy * weight, sums[1] = sum of dy * weight * h, with h the normalized x; dw += dy * h, db += dy.
template <class T>
struct RowGradientSums {
  static constexpr bool unrolls = true;
  static constexpr Isa widest = Isa::avx2;
  TENET_ALWAYS_INLINE static void lanes(int n, const T* x, const T* weight, T mean, T over, const T* dy, T* dw, T* db,
                                        T* sum, T* dot) {
    TENET_NO_CONTRACTION
    TENET_LOOP
    for (int j = 0; j < n; ++j) {
      const T h = (x[j] - mean) * over, g = dy[j] * weight[j];
      sum[j] += g;
      dot[j] += g * h;
      dw[j] += dy[j] * h;
      db[j] += dy[j];
    }
  }
  TENET_ALWAYS_INLINE static void run(int64_t n, const T* x, const T* weight, T mean, T over, const T* dy, T* dw, T* db,
                                      T* sums) {
    T sum[row_lanes] = {}, dot[row_lanes] = {};
    int64_t i = 0;
    for (; i + row_lanes <= n; i += row_lanes) {
      lanes(row_lanes, x + i, weight + i, mean, over, dy + i, dw + i, db + i, sum, dot);
    }
    lanes(int(n - i), x + i, weight + i, mean, over, dy + i, dw + i, db + i, sum, dot);
    merge_lanes<row_lanes>(Plus{}, sum);
    merge_lanes<row_lanes>(Plus{}, dot);
    sums[0] = sum[0], sums[1] = dot[0];
  }
};

}  // namespace detail

/// y = (x - mean) * rstd * weight[n] + bias[n], with the mean and 1 / sqrt(variance + eps) of each row, which go to
/// mean[rows] and rstd[rows].
template <class T>
void layer_norm(int64_t rows, int64_t n, const T* x, const T* weight, const T* bias, double eps, T* mean, T* rstd,
                T* y) {
  if (n == 0) return;
  parallel_for(rows, detail::row_grain(n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Moments<T> m = Var{}.block(n, x + r * n, 0);
      mean[r] = m.mean;
      rstd[r] = T(1 / std::sqrt(double(m.deviation) / double(n) + eps));
      map_contiguous(detail::NormalizeRow<T>{mean[r], rstd[r]}, n, y + r * n, x + r * n, weight, bias);
    }
  });
}

/// The gradients by x, weight and bias, dw[n] and db[n], given the mean and rstd of the rows. A null dx is not
/// computed.
template <class T>
void layer_norm_backward(int64_t rows, int64_t n, const T* x, const T* weight, const T* mean, const T* rstd,
                         const T* dy, T* dx, T* dw, T* db) {
  std::fill_n(dw, n, T(0));
  std::fill_n(db, n, T(0));
  if (rows == 0 || n == 0) return;
  // Each piece of rows has sums of dw and db of its own: a sixteenth of the rows' memory at the most.
  const int64_t grain = std::max<int64_t>(detail::row_grain(n), 32), pieces = (rows - 1) / grain + 1;
  const detail::States<T> states(2 * n * pieces);
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    T* own = states.get() + begin / grain * 2 * n;
    std::fill_n(own, 2 * n, T(0));
    for (int64_t r = begin; r < end; ++r) {
      T sums[2];
      const T *row = x + r * n, *gradient = dy + r * n;
      vectorized<detail::RowGradientSums<T>>(n, row, weight, mean[r], rstd[r], gradient, own, own + n,
                                             static_cast<T*>(sums));
      if (!dx) continue;
      map_contiguous(detail::RowGradient<T>{mean[r], rstd[r], sums[0] / T(n), sums[1] / T(n)}, n, dx + r * n, row,
                     gradient, weight);
    }
  });
  for (int64_t p = 0; p < pieces; ++p) {
    add_into(n, dw, states.get() + 2 * n * p);
    add_into(n, db, states.get() + 2 * n * p + n);
  }
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
