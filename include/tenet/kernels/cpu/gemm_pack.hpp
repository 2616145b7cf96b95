// Panels: pieces of B copied so that an inner kernel reads them from one end to the other.
#pragma once

#include <tenet/kernels/cpu/gemm_kernels.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Room that a panel of k rows takes: a vector more than its elements, which packing may overwrite.
template <class T>
int64_t panel_size(const GemmKernels<T>& kernels, int64_t k, int64_t width) {
  return k * width + kernels.lanes;
}

/// Cuts b[k, cols] into panels of `width` columns, each stored as [k, width] and filled up with zeros.
template <class T>
TENET_NOINLINE void pack_panels(const GemmKernels<T>& kernels, int64_t k, int64_t cols, MatrixView<T> b, T* out,
                                int64_t width) {
  const int64_t vectors = (width + kernels.lanes - 1) / kernels.lanes, reach = vectors * kernels.lanes;
  const int64_t step = panel_size(kernels, k, width);
  const int64_t whole = cols < reach ? 0 : (cols - reach) / width + 1;  // panels that vectors can read
  if (b.col_stride == 1 && vectors <= 2) {
    kernels.copy_panels[vectors - 1](k, whole, b.data, b.row_stride, out, width, step);
  } else if (b.row_stride == 1) {
    for (int64_t q = 0; q < whole; ++q) {
      for (int64_t j = reach - kernels.lanes; j >= 0; j -= kernels.lanes) {  // the last one has too much
        kernels.transpose_rows(k, b.data + (q * width + j) * b.col_stride, b.col_stride, out + q * step + j, width);
      }
    }
  }
  const bool done = (b.col_stride == 1 && vectors <= 2) || b.row_stride == 1;
  for (int64_t q = done ? whole : 0; q * width < cols; ++q) {
    const int64_t valid = cols - q * width < width ? cols - q * width : width;
    for (int64_t p = 0; p < k; ++p) {
      const T* from = b.data + p * b.row_stride + q * width * b.col_stride;
      T* to = out + q * step + p * width;
      for (int64_t j = 0; j < valid; ++j) to[j] = from[j * b.col_stride];
      for (int64_t j = valid; j < width; ++j) to[j] = T(0);
    }
  }
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
