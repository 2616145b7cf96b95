// Products with a sparse matrix, whose elements that are not 0 stand row after row.
#pragma once

#include <tenet/core/parallel.hpp>
#include <tenet/kernels/cpu/vector.hpp>
#include <tenet/kernels/cpu/workspace.hpp>

#include <algorithm>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Elements [starts[r], starts[r + 1]) are those of row r.
template <class T>
struct SparseMatrix {
  int64_t rows, cols;
  const int64_t* starts;
  const int32_t* columns;
  const T* values;
  int64_t count() const { return starts[rows]; }
};

template <class T>
struct SparseKernels {
  int64_t width;  // columns of a tile
  void (*dot)(const SparseMatrix<T>& m, int64_t begin, int64_t end, const T* x, T* y);
  void (*tile)(const SparseMatrix<T>& m, int64_t begin, int64_t end, const T* x, int64_t count, T* y, int64_t y_step);
  void (*scatter)(const SparseMatrix<T>& m, const T* g, T* dx);
};

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#define TENET_KERNEL_FILE <tenet/kernels/cpu/sparse_body.hpp>
#include <tenet/kernels/cpu/for_each_isa.hpp>
#undef TENET_KERNEL_FILE

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

template <class T>
const SparseKernels<T>& sparse_kernels() {
#if TENET_X86
  if (isa() == Isa::avx512) return avx512::sparse_table<T>;
  if (isa() == Isa::avx2) return avx2::sparse_table<T>;
#endif
  return baseline::sparse_table<T>;
}

namespace detail {

inline constexpr int64_t sparse_grain = int64_t{1} << 20;  // products a piece of parallel work
inline constexpr int64_t sparse_narrow = 4;                // fewer columns are not worth a tile

// to[i][c] = from[c][i] for `count` columns c; 0 for the others of the tile.
template <class T>
void columns_to_tile(int64_t n, int64_t width, int64_t count, const T* from, T* to) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < width; ++c) to[i * width + c] = c < count ? from[c * n + i] : T(0);
  }
}

}  // namespace detail

/// y = x m^T: x [n, m.cols] -> y [n, m.rows].
template <class T>
void sparse_product(const SparseMatrix<T>& m, int64_t n, const T* x, T* y) {
  const SparseKernels<T>& kernels = sparse_kernels<T>();
  const int64_t a_row = m.count() / std::max<int64_t>(m.rows, 1) + 1;  // elements
  for (int64_t first = 0, count; first < n; first += count) {
    count = std::min(n - first, kernels.width);
    const T* const from = x + first * m.cols;
    T* const to = y + first * m.rows;
    if (count < detail::sparse_narrow) {
      count = 1;
      parallel_for(m.rows, detail::sparse_grain / a_row + 1,
                   [&](int64_t begin, int64_t end) { kernels.dot(m, begin, end, from, to); });
      continue;
    }
    T* const tile = scratch<T>(Scratch::gemm_panels, m.cols * kernels.width);
    detail::columns_to_tile(m.cols, kernels.width, count, from, tile);
    parallel_for(m.rows, detail::sparse_grain / (a_row * kernels.width) + 1,
                 [&](int64_t begin, int64_t end) { kernels.tile(m, begin, end, tile, count, to, m.rows); });
  }
}

/// dx = g m: g [n, m.rows] -> dx [n, m.cols].
template <class T>
void sparse_product_transposed(const SparseMatrix<T>& m, int64_t n, const T* g, T* dx) {
  const SparseKernels<T>& kernels = sparse_kernels<T>();
  const int64_t width = kernels.width, tiles = (n + width - 1) / width;
  parallel_for(tiles, detail::sparse_grain / (m.count() * width + 1) + 1, [&](int64_t begin, int64_t end) {
    T* const from = scratch<T>(Scratch::gemm_panels, m.rows * width);
    T* const to = scratch<T>(Scratch::gemm_sums, m.cols * width);
    for (int64_t first = begin * width; first < std::min(n, end * width); first += width) {
      const int64_t count = std::min(n - first, width);
      T* const out = dx + first * m.cols;
      if (count < detail::sparse_narrow) {
        std::fill_n(out, count * m.cols, T(0));
        for (int64_t c = 0; c < count; ++c) {
          for (int64_t r = 0; r < m.rows; ++r) {
            const T value = g[(first + c) * m.rows + r];
            for (int64_t k = m.starts[r]; k < m.starts[r + 1]; ++k)
              out[c * m.cols + m.columns[k]] += m.values[k] * value;
          }
        }
        continue;
      }
      detail::columns_to_tile(m.rows, width, count, g + first * m.rows, from);
      std::fill_n(to, m.cols * width, T(0));
      kernels.scatter(m, from, to);
      for (int64_t c = 0; c < count; ++c) {
        for (int64_t i = 0; i < m.cols; ++i) out[c * m.cols + i] = to[i * width + c];
      }
    }
  });
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
