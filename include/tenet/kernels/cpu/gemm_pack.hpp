// Panels: pieces of B copied so that an inner kernel reads them from one end to the other.
#pragma once

#include <tenet/kernels/cpu/gemm_kernels.hpp>

#include <algorithm>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Units that a panel of k rows takes: a vector more than it holds, which packing may overwrite.
template <class U, class S>
int64_t panel_size(const PackKernels<U, S>& kernels, int64_t k, int64_t width) {
  return (k + unit_depth<U> - 1) / unit_depth<U> * width + kernels.lanes;
}

/// Cuts b[k, cols] into panels of `width` columns, each stored as [units along k, width] and filled up with zeros.
template <class S, class U>
TENET_NOINLINE void pack_panels(const PackKernels<U, S>& kernels, int64_t k, int64_t cols, MatrixView<S> b, U* out,
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
    const MatrixView<S> panel = b.at(0, q * width);
    U* const to = out + q * step;
    if (valid < width) std::fill_n(to, step, U{});
    if (b.row_stride == 1 && valid >= kernels.lanes) {
      for (int64_t j = 0; j < valid; j += kernels.lanes) {
        const int64_t at = j + kernels.lanes <= valid ? j : valid - kernels.lanes;
        kernels.transpose_rows(k, panel.at(0, at).data, b.col_stride, to + at, width);
      }
      continue;
    }
    for (int64_t j = 0; j < valid; ++j) {
      U* unit = to + j;
      for (int64_t p = 0; p < k; p += unit_depth<U>, unit += width) {
        *unit = gather_unit<U>(panel.at(p, j).data, b.row_stride, k - p);
      }
    }
  }
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
