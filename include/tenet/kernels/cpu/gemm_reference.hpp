// The matrix product written as its definition: the oracle of the tests. Also the types of a product.
#pragma once

#include <tenet/core/dtype.hpp>

#include <cstdint>
#include <type_traits>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// A matrix in memory: element (i, j) is data[i * row_stride + j * col_stride]. Strides count elements, 0 repeats.
template <class T>
struct MatrixView {
  const T* data;
  int64_t row_stride, col_stride;

  MatrixView transposed() const { return {data, col_stride, row_stride}; }
  MatrixView at(int64_t i, int64_t j) const { return {data + i * row_stride + j * col_stride, row_stride, col_stride}; }
};

/// What a product adds to its sums: the old result, a value a row, a value a column.
template <class T>
struct GemmOptions {
  bool accumulate = false;
  const T* row_bias = nullptr;  // [m]
  const T* col_bias = nullptr;  // [n]
};

/// What the reference sums in: double for floating types, wrapping unsigned numbers for integers.
template <class T>
using reference_sum_t = std::conditional_t<FloatElement<T>, double, std::uint64_t>;

/// c[m, n] (row-major, row stride ldc) = a[m, k] * b[k, n] (+ c) (+ biases), one element after the other.
template <class T>
TENET_NOINLINE void gemm_reference(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, T* c, int64_t ldc,
                                   const GemmOptions<T>& options = {}) {
  using Wide = reference_sum_t<T>;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T& out = c[i * ldc + j];
      Wide sum = options.accumulate ? static_cast<Wide>(out) : Wide(0);
      if (options.row_bias) sum += static_cast<Wide>(options.row_bias[i]);
      if (options.col_bias) sum += static_cast<Wide>(options.col_bias[j]);
      for (int64_t p = 0; p < k; ++p) {
        sum += static_cast<Wide>(a.data[i * a.row_stride + p * a.col_stride]) *
               static_cast<Wide>(b.data[p * b.row_stride + j * b.col_stride]);
      }
      out = static_cast<T>(sum);
    }
  }
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
