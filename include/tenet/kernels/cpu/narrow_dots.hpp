// Products of few rows with a matrix of few bits: its numbers are made in registers, where they are multiplied.
#pragma once

#include <tenet/core/parallel.hpp>
#include <tenet/kernels/cpu/convert.hpp>
#include <tenet/kernels/cpu/vector.hpp>

#include <algorithm>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// A matrix [rows, columns] whose rows are cut into groups of `group_size`, the last may be shorter. A group of n
/// numbers is stored as n int8_t or bfloat16, or, if Q is uint8_t, as pack_int4() packs n integers of 4 bits; groups
/// follow each other, each row at row_step. scales [rows, groups] of the groups, or null for 1.
template <class Q>
struct NarrowMatrix {
  int64_t columns, group_size;
  const Q* values;
  int64_t row_step;
  const float* scales;
  int64_t groups() const { return (columns - 1) / group_size + 1; }
};

/// Rows that a matrix is multiplied by, and where the results go: y[m][row of the matrix].
struct NarrowRows {
  static constexpr int64_t most = 4;
  const float* x[most];
  float* y[most];
  const float* bias;  // of each row of the matrix, or null
};

template <class Q>
struct NarrowDotKernels {
  using Kernel = void (*)(const NarrowMatrix<Q>& w, int64_t begin, int64_t end, const NarrowRows& rows);
  Kernel one, all;  // of the rows
};

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#define TENET_KERNEL_FILE <tenet/kernels/cpu/narrow_dots_body.hpp>
#include <tenet/kernels/cpu/for_each_isa.hpp>
#undef TENET_KERNEL_FILE

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

template <class Q>
const NarrowDotKernels<Q>& narrow_dot_kernels() {
#if TENET_X86
  if (isa() == Isa::avx512) return avx512::narrow_dot_table<Q>;
  if (isa() == Isa::avx2) return avx2::narrow_dot_table<Q>;
#endif
  return baseline::narrow_dot_table<Q>;
}

/// y[m, j] = x[m, :] * w[j, :] + bias[j] for the `out` rows w[j, :] of a matrix; 1 <= m <= NarrowRows::most; bias may
/// be null.
template <class Q>
void narrow_dots(const NarrowMatrix<Q>& w, int64_t out, int64_t m, const float* x, float* y, const float* bias) {
  NarrowRows rows;
  for (int64_t r = 0; r < NarrowRows::most; ++r) {
    const int64_t row = std::min(r, m - 1);  // rows that are not there repeat the last
    rows.x[r] = x + row * w.columns, rows.y[r] = y + row * out;
  }
  rows.bias = bias;
  const NarrowDotKernels<Q>& kernels = narrow_dot_kernels<Q>();
  const auto dots = m == 1 ? kernels.one : kernels.all;
  parallel_for(out, (int64_t{1} << 16) / w.columns + 1, [&](int64_t begin, int64_t end) { dots(w, begin, end, rows); });
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
