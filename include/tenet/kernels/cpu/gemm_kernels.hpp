// The inner kernels of the matrix product, one table for each instruction set.
#pragma once

#include <tenet/kernels/cpu/gemm_reference.hpp>
#include <tenet/kernels/cpu/isa.hpp>
#include <tenet/kernels/cpu/tile_heights.hpp>
#include <tenet/kernels/cpu/vector.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// One tile of C: M rows of A times a panel of B, both over k.
template <class T>
struct GemmTile {
  int64_t k;
  const T* a;
  int64_t a_row, a_step;  // between rows, and along k
  const T* b;
  int64_t b_step;  // along k; the columns are adjacent. For dot kernels: between the columns, k is adjacent
  T* c;
  int64_t c_row, c_col;
  int64_t cols;  // columns to write: the kernel computes as many as it is wide
  bool accumulate;
  const T *row_bias, *col_bias;
};

/// Writes `rows` rows of finished sums where vectors do not fit C: at its right edge, or to a transposed C.
template <class T>
TENET_NOINLINE void finish_tile(const GemmTile<T>& t, int64_t rows, const T* sums, int64_t sums_row) {
  for (int64_t j = 0; j < t.cols; ++j) {
    for (int64_t i = 0; i < rows; ++i) {
      T& c = t.c[i * t.c_row + j * t.c_col];
      T sum = sums[i * sums_row + j];
      if (t.accumulate) sum += c;
      if (t.row_bias) sum += t.row_bias[i];
      if (t.col_bias) sum += t.col_bias[j];
      c = sum;
    }
  }
}

template <class T>
struct GemmKernels {
  using Tile = void (*)(const GemmTile<T>&);
  int64_t lanes;  // elements of a vector
  TileHeights heights;
  Tile tile[TileHeights::most];  // [height - 1]: 2 vectors wide
  // c[n] += 8 rows of B, or one, times elements of A.
  void (*add_rows[2])(int64_t n, const T* a, int64_t a_step, const T* b, int64_t b_row, T* c);
  Tile dot[4];             // [height - 1], of 1 and 4 rows: A and B contiguous along k
  int64_t dot_columns[4];  // columns of C
  // `lanes` rows of k elements become columns.
  void (*transpose_rows)(int64_t k, const T* in, int64_t row, T* out, int64_t step);
  // [vectors - 1]: k rows are cut into panels.
  void (*copy_panels[2])(int64_t k, int64_t panels, const T* in, int64_t row, T* out, int64_t width, int64_t out_panel);
};

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#define TENET_KERNEL_FILE <tenet/kernels/cpu/gemm_body.hpp>
#include <tenet/kernels/cpu/for_each_isa.hpp>
#undef TENET_KERNEL_FILE

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// The kernels for the instruction set in use.
template <class T>
const GemmKernels<T>& gemm_kernels() {
  switch (isa()) {
#if TENET_X86
    case Isa::avx512: return avx512::gemm_kernels<T>;
    case Isa::avx2: return avx2::gemm_kernels<T>;
#endif
    default: return baseline::gemm_kernels<T>;
  }
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
