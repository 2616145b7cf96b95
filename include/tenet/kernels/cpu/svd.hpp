// Singular values by rotations.
#pragma once

#include <tenet/kernels/cpu/vectorize.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace detail {

/// out = {a . a, b . b, a . b}.
struct RowProducts {
  static constexpr bool unrolls = true;
  template <class T>
  TENET_ALWAYS_INLINE static void run(int64_t n, const T* a, const T* b, T* out) {
    TENET_NO_CONTRACTION
    constexpr int lanes = 8;
    T aa[lanes] = {}, bb[lanes] = {}, ab[lanes] = {};
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      TENET_LOOP
      for (int l = 0; l < lanes; ++l) {
        aa[l] += a[i + l] * a[i + l];
        bb[l] += b[i + l] * b[i + l];
        ab[l] += a[i + l] * b[i + l];
      }
    }
    for (; i < n; ++i) aa[0] += a[i] * a[i], bb[0] += b[i] * b[i], ab[0] += a[i] * b[i];
    out[0] = out[1] = out[2] = T(0);
    for (int l = 0; l < lanes; ++l) out[0] += aa[l], out[1] += bb[l], out[2] += ab[l];
  }
};

/// a, b = c a - s b, s a + c b.
struct RotateRows {
  template <class T>
  TENET_ALWAYS_INLINE static void run(int64_t n, T* a, T* b, T c, T s) {
    TENET_NO_CONTRACTION
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) {
      const T x = a[i], y = b[i];
      a[i] = c * x - s * y;
      b[i] = s * x + c * y;
    }
  }
};

}  // namespace detail

/// a [m, n] = transposed(u) (the new a), where u [m, m] is orthogonal and the rows of the new a are orthogonal to each
/// other, the longest first: their lengths are the singular values. m <= n. Jacobi's rotations from one side: Hestenes,
/// "Inversion of matrices by biorthogonalization", 1958. The time grows as m^2 n.
template <class T>
void orthogonal_rows(int64_t m, int64_t n, T* a, T* u) {
  constexpr int most_sweeps = 60;  // some 10 are needed
  const T small = std::numeric_limits<T>::epsilon() * 8;
  const int64_t width = n + m;  // a row of a, then one of u
  std::vector<T> rows(std::size_t(m * width));
  for (int64_t i = 0; i < m; ++i) {
    std::copy_n(a + i * n, n, rows.data() + i * width);
    rows[std::size_t(i * width + n + i)] = T(1);
  }
  bool rotated = true;
  for (int sweep = 0; rotated && sweep < most_sweeps; ++sweep) {
    rotated = false;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = i + 1; j < m; ++j) {
        T *const p = rows.data() + i * width, *const q = rows.data() + j * width;
        T products[3];
        vectorized<detail::RowProducts>(n, static_cast<const T*>(p), static_cast<const T*>(q), products + 0);
        const T ab = products[2];
        if (!(std::abs(ab) > small * std::sqrt(products[0] * products[1]))) continue;
        const T zeta = (products[1] - products[0]) / (2 * ab);
        const T t = (zeta < 0 ? T(-1) : T(1)) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const T c = 1 / std::sqrt(1 + t * t);
        vectorized<detail::RotateRows>(width, p, q, c, c * t);
        rotated = true;
      }
    }
  }
  std::vector<T> length(static_cast<std::size_t>(m));
  for (int64_t i = 0; i < m; ++i) {
    const T* row = rows.data() + i * width;
    length[std::size_t(i)] = std::inner_product(row, row + n, row, T(0));
  }
  std::vector<int64_t> order(static_cast<std::size_t>(m));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t x, int64_t y) { return length[std::size_t(x)] > length[std::size_t(y)]; });
  for (int64_t i = 0; i < m; ++i) {
    const T* row = rows.data() + order[std::size_t(i)] * width;
    std::copy_n(row, n, a + i * n);
    std::copy_n(row + n, m, u + i * m);
  }
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
