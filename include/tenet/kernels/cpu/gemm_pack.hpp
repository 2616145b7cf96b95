// Panels: pieces of B copied so that an inner kernel reads them from one end to the other.
#pragma once

#include <tenet/kernels/cpu/gemm_kernels.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Copies b[k, cols] to panel[k, width]; the columns beyond `cols` become zeros. cols <= width.
template <class T>
TENET_NOINLINE void pack_panel(const GemmKernels<T>& kernels, int64_t k, int64_t cols, MatrixView<T> b, T* panel,
                               int64_t width) {
  int64_t done = 0;
  if (b.row_stride == 1) {
    for (; done + kernels.lanes <= cols; done += kernels.lanes) {
      kernels.transpose_rows(k, b.data + done * b.col_stride, b.col_stride, panel + done, width);
    }
  } else if (b.col_stride == 1 && cols == width) {
    const std::size_t bytes = std::size_t(width) * sizeof(T);
    for (int64_t p = 0; p < k; ++p) __builtin_memcpy(panel + p * width, b.data + p * b.row_stride, bytes);
    return;
  }
  for (int64_t p = 0; p < k; ++p) {
    T* out = panel + p * width;
    const T* in = b.data + p * b.row_stride;
    for (int64_t j = done; j < cols; ++j) out[j] = in[j * b.col_stride];
    for (int64_t j = cols; j < width; ++j) out[j] = T(0);
  }
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
