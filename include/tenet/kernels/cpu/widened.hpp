// half and bfloat16 operands as float, and the results back: heavy kernels sum in float and round once.
#pragma once

#include <tenet/core/parallel.hpp>
#include <tenet/kernels/cpu/convert.hpp>
#include <tenet/kernels/cpu/gemm_reference.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Converts `count` contiguous elements on several threads.
template <class To, class From>
void convert_all(int64_t count, To* out, const From* in) {
  parallel_for(count, int64_t{1} << 16,
               [&](int64_t begin, int64_t end) { convert(end - begin, out + begin, in + begin); });
}

/// Copies `in` as float to out[rows * cols], by rows or by columns as it lies, and tells how the copy lies.
template <class T>
MatrixView<float> widen(int64_t rows, int64_t cols, MatrixView<T> in, float* out) {
  if (in.row_stride == 1 && in.col_stride != 1) return widen(cols, rows, in.transposed(), out).transposed();
  parallel_for(rows, (int64_t{1} << 16) / (cols + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* row = in.data + i * in.row_stride;
      if (in.col_stride == 1) {
        convert(cols, out + i * cols, row);
      } else {
        for (int64_t j = 0; j < cols; ++j) out[i * cols + j] = cast<float>(row[j * in.col_stride]);
      }
    }
  });
  return {out, cols, 1};
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
