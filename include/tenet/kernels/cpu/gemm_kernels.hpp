// The inner kernels of the matrix product, one table for each instruction set.
#pragma once

#include <tenet/kernels/cpu/gemm_reference.hpp>
#include <tenet/kernels/cpu/gemm_units.hpp>
#include <tenet/kernels/cpu/isa.hpp>
#include <tenet/kernels/cpu/tile_heights.hpp>
#include <tenet/kernels/cpu/vector.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// One tile of C: M rows of A times a panel of B, both in units over k.
template <class A, class B = A, class C = unit_sum_t<A>>
struct GemmTile {
  int64_t k;
  const A* a;
  int64_t a_row, a_step;  // between rows, and along k
  const B* b;
  int64_t b_step;  // along k; the columns are adjacent. For dot kernels: between the columns, k is adjacent
  C* c;
  int64_t c_row, c_col;
  int64_t cols;  // columns to write. Fewer than a vector are computed as two vectors nevertheless
  bool accumulate;
  const C *row_bias, *col_bias;
  B* panel = nullptr;  // where the columns of B are copied to, as a panel for the tiles below
};

/// Writes `rows` rows of finished sums one by one, where vectors do not fit C.
template <class A, class B, class C>
TENET_NOINLINE void finish_tile(const GemmTile<A, B, C>& t, int64_t rows, const C* sums, int64_t sums_row) {
  const auto finish = [&](int64_t i, int64_t j) {
    C& c = t.c[i * t.c_row + j * t.c_col];
    C sum = sums[i * sums_row + j];
    if (t.accumulate) sum += c;
    if (t.row_bias) sum += t.row_bias[i];
    if (t.col_bias) sum += t.col_bias[j];
    c = sum;
  };
  if (t.c_col == 1) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < t.cols; ++j) finish(i, j);
    }
  } else {
    for (int64_t j = 0; j < t.cols; ++j) {
      for (int64_t i = 0; i < rows; ++i) finish(i, j);
    }
  }
}

/// Kernels for panels in units U of matrices of elements S.
template <class U, class S>
struct PackKernels {
  using Unit = U;
  int64_t lanes;  // units of a vector
  // `lanes` rows of k elements become columns of units.
  void (*transpose_rows)(int64_t k, const S* in, int64_t row, U* out, int64_t step);
  // [vectors - 1]: k rows are cut into panels.
  void (*copy_panels[2])(int64_t k, int64_t panels, const S* in, int64_t row, U* out, int64_t width, int64_t out_panel);
};

/// Tiles of products of units A with units B.
template <class A, class B>
struct TileKernels {
  using Tile = void (*)(const GemmTile<A, B>&);
  TileHeights heights;
  Tile tile[TileHeights::most];  // [height - 1]: 2 vectors wide
};

/// Products of few rows, for which elements SA and SB are read in place.
template <class A, class B, class SA, class SB>
struct ThinKernels {
  using Dot = void (*)(const GemmTile<SA, SB, unit_sum_t<A>>&);
  Dot dot[4];              // [height - 1], of 1 and 4 rows: A and B contiguous along k, which counts elements
  int64_t dot_columns[4];  // columns of C
  // c[n] += 8 rows of B, or one, times elements of A.
  void (*add_rows[2])(int64_t n, const SA* a, int64_t a_step, const SB* b, int64_t b_row, unit_sum_t<A>* c);
};

/// All of them for a product of elements SA and SB in units A and B.
template <class A, class B, class SA, class SB>
struct UnitKernels {
  PackKernels<A, SA> pack_a;
  PackKernels<B, SB> pack_b;
  TileKernels<A, B> tiles;
  ThinKernels<A, B, SA, SB> thin;
};

/// All of them for elements that are multiplied as they are.
template <class T>
struct GemmKernels : PackKernels<T, T>, TileKernels<T, T>, ThinKernels<T, T, T, T> {};

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#define TENET_KERNEL_FILE <tenet/kernels/cpu/gemm_units_body.hpp>
#include <tenet/kernels/cpu/for_each_isa.hpp>
#undef TENET_KERNEL_FILE
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

/// Those of a product in units A and B of elements SA and SB. Quads and pairs of bfloat16 are for machines whose
/// has_dots() tells so.
template <class A, class B, class SA, class SB>
const UnitKernels<A, B, SA, SB>& unit_kernels() {
#if TENET_X86
  if constexpr (needs_dots<A>) {
    return avx512::unit_kernels<A, B, SA, SB>;
  } else {
    if (isa() == Isa::avx512) return avx512::unit_kernels<A, B, SA, SB>;
    if (isa() == Isa::avx2) return avx2::unit_kernels<A, B, SA, SB>;
    return baseline::unit_kernels<A, B, SA, SB>;
  }
#else
  return baseline::unit_kernels<A, B, SA, SB>;
#endif
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
