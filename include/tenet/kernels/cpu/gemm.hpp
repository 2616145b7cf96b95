// Matrix products.
#pragma once

#include <tenet/core/parallel.hpp>
#include <tenet/kernels/cpu/gemm_reference.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// c[m, n] (row-major, row stride ldc) = a[m, k] * b[k, n] (+ c) (+ biases). Sizes may be 0; k == 0 sums to zero.
/// c must not overlap a, b or the biases. Bit-identical for any number of threads.
template <class T>
void gemm(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, T* c, int64_t ldc,
          const GemmOptions<T>& options = {}) {
  gemm_reference(m, n, k, a, b, c, ldc, options);
}

/// `batch` products; the steps are elements between consecutive matrices, 0 where one matrix serves all.
template <class T>
void gemm_batched(int64_t batch, int64_t m, int64_t n, int64_t k, MatrixView<T> a, int64_t a_step, MatrixView<T> b,
                  int64_t b_step, T* c, int64_t ldc, int64_t c_step, const GemmOptions<T>& options = {}) {
  for (int64_t i = 0; i < batch; ++i) {
    gemm(m, n, k, {a.data + i * a_step, a.row_stride, a.col_stride}, {b.data + i * b_step, b.row_stride, b.col_stride},
         c + i * c_step, ldc, options);
  }
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
