// The matrix product of float and double: blocks of C, panels of B, register tiles.
//
// The work is cut by sizes only, and every element sums over k in the same order in whichever block it lies: results
// are bit-identical for any number of threads.
#pragma once

#include <tenet/core/parallel.hpp>
#include <tenet/kernels/cpu/gemm_pack.hpp>
#include <tenet/kernels/cpu/vectorize.hpp>
#include <tenet/kernels/cpu/workspace.hpp>

#include <algorithm>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// A product with C in any orientation, so that the operands may exchange their roles. Elements of A and B are of
/// types A and B, sums of type C.
template <class A, class B = A, class C = A>
struct GemmProblem {
  int64_t m, n, k;
  MatrixView<A> a;
  MatrixView<B> b;
  C* c;
  int64_t c_row, c_col;
  bool accumulate;
  const C *row_bias, *col_bias;

  GemmProblem<B, A, C> transposed() const {
    return {n, m, k, b.transposed(), a.transposed(), c, c_col, c_row, accumulate, col_bias, row_bias};
  }

  /// The tile at (i, j) of C for k from p to p + depth: earlier parts of k are in C, biases come with the first.
  GemmTile<A, B, C> tile(int64_t i, int64_t j, int64_t p, int64_t depth) const {
    const MatrixView<A> rows = a.at(i, p);
    const MatrixView<B> columns = b.at(p, j);
    return {depth,
            rows.data,
            rows.row_stride,
            rows.col_stride,
            columns.data,
            columns.row_stride,
            c + i * c_row + j * c_col,
            c_row,
            c_col,
            0,
            accumulate || p > 0,
            row_bias && p == 0 ? row_bias + i : nullptr,
            col_bias && p == 0 ? col_bias + j : nullptr};
  }
};

/// The length of the pieces that cut `size` into the fewest pieces of at most `largest`, as equal as possible.
inline int64_t balanced(int64_t size, int64_t largest) {
  const int64_t pieces = (size + largest - 1) / largest;
  return (size + pieces - 1) / pieces;
}

/// Few rows, and both operands contiguous along k: dot products, for which nothing is worth packing.
template <class A, class B, class C, class Kernels>
void gemm_dots(const GemmProblem<A, B, C>& g, const Kernels& kernels) {
  // A piece of B stays in the second cache for all rows.
  const int64_t piece = std::max<int64_t>(12, (int64_t{4} << (g.m > 1 ? 16 : 19)) / (g.k * int64_t(sizeof(B))));
  parallel_for(g.n, piece / 12 * 12, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < g.m;) {
      const int64_t rows = TileHeights{0b1001}.fit(g.m - i), columns = kernels.dot_columns[rows - 1];
      for (int64_t j = begin; j < end;) {
        GemmTile<A, B, C> t = g.tile(i, j, 0, g.k);
        t.cols = end - j < columns ? 1 : columns;
        t.b_step = t.cols == 1 ? 0 : g.b.col_stride;
        kernels.dot[rows - 1](t);
        j += t.cols;
      }
      i += rows;
    }
  });
}

/// Few rows, and rows of B contiguous: scaled rows of B are added up.
template <class A, class B, class T, class Kernels>
void gemm_rows(const GemmProblem<A, B, T>& g, const Kernels& kernels) {
  const int64_t piece = std::max<int64_t>(512, (int64_t{1} << 19) / (g.m * g.k));
  parallel_for(g.n, piece, [&](int64_t begin, int64_t end) {
    const int64_t n = end - begin;
    T* const sums = scratch<T>(Scratch::gemm_panels, g.m * n);
    std::fill_n(sums, g.m * n, T(0));
    for (int64_t p = 0; p < g.k;) {
      const int64_t deep = g.k - p < 8 ? 1 : 8;
      for (int64_t i = 0; i < g.m; ++i) {
        kernels.add_rows[deep == 1](n, g.a.at(i, p).data, g.a.col_stride, g.b.at(p, begin).data, g.b.row_stride,
                                    sums + i * n);
      }
      p += deep;
    }
    GemmTile<A, B, T> t = g.tile(0, begin, 0, g.k);
    t.cols = n;
    finish_tile(t, g.m, sums, n);
  });
}

template <class T>
struct OuterProduct {
  static constexpr Isa widest = Isa::avx2;
  TENET_ALWAYS_INLINE static void run(int64_t m, int64_t n, const T* a, int64_t a_step, const T* b, T* c,
                                      int64_t c_row) {
    for (int64_t i = 0; i < m; ++i, a += a_step, c += c_row) {
      const T scale = *a;
      TENET_LOOP
      for (int64_t j = 0; j < n; ++j) c[j] = scale * b[j] + T(0);  // no -0, as in longer sums
    }
  }
};

/// A single product for each element: what takes time is to write C, and row after row takes the least.
template <class T>
void gemm_outer(const GemmProblem<T>& g) {
  parallel_for(g.m, (int64_t{1} << 15) / g.n + 1, [&](int64_t begin, int64_t end) {
    vectorized<OuterProduct<T>>(end - begin, g.n, g.a.at(begin, 0).data, g.a.row_stride, g.b.data,
                                g.c + begin * g.c_row, g.c_row);
  });
}

/// How the tiles cover C, and what is packed although it could be read in place.
struct Tiling {
  int64_t strip, width;
  bool pack_a, pack_b;
};

/// The tiles of C in rows [top, bottom) and columns [left, right), over k from p to p + deep.
template <class T>
void gemm_block(const GemmProblem<T>& g, const GemmKernels<T>& kernels, const Tiling& tiling, int64_t top,
                int64_t bottom, int64_t left, int64_t right, int64_t p, int64_t deep) {
  const int64_t width = tiling.width, strip = tiling.strip, strips = (bottom - top + strip - 1) / strip;
  const int64_t panel_step = panel_size(kernels, deep, width), strip_step = panel_size(kernels, deep, strip);
  T* const panel = scratch<T>(Scratch::gemm_panels, panel_step + strips * strip_step);
  T* const packed_a = panel + panel_step;
  if (tiling.pack_a) pack_panels(kernels, deep, bottom - top, g.a.at(top, p).transposed(), packed_a, strip);
  for (int64_t j = left; j < right;) {
    GemmTile<T> t = g.tile(top, j, p, deep);
    // Two equal panels at the end of the block, rather than one that is narrower than a vector.
    const int64_t rest = right - j;
    t.cols = rest <= width ? rest : rest < width + kernels.lanes ? (rest + 1) / 2 : width;
    if (tiling.pack_a) t.a_row = 1, t.a_step = strip;
    if (g.b.col_stride != 1 || t.cols < kernels.lanes) {
      pack_panels(kernels, deep, t.cols, g.b.at(p, j), panel, width);
      t.b = panel, t.b_step = width;
    } else if (tiling.pack_b) {
      t.panel = panel;  // the first tile packs what it reads
    }
    const GemmTile<T> corner = t;
    for (int64_t i = 0; i < bottom - top;) {
      const int64_t height = kernels.heights.fit(std::min(strip - i % strip, bottom - top - i));
      t.a = tiling.pack_a ? packed_a + i / strip * strip_step + i % strip : corner.a + i * corner.a_row;
      t.c = corner.c + i * corner.c_row;
      t.row_bias = corner.row_bias ? corner.row_bias + i : nullptr;
      kernels.tile[height - 1](t);
      if (t.panel) t.b = panel, t.b_step = width, t.panel = nullptr;
      i += height;
    }
    j += t.cols;
  }
}

/// The general path.
template <class T>
void gemm_blocks(const GemmProblem<T>& g, const GemmKernels<T>& kernels, const Tiling& tiling) {
  // A block's rows of A stay in the second cache, a panel of B in the first or not far from it.
  constexpr int64_t max_depth = 512, max_height = 180, max_columns = 1024, block_cost = int64_t{1} << 21;
  const int64_t width = tiling.width, strip = tiling.strip;
  const int64_t depth = balanced(g.k, max_depth);
  const int64_t height = balanced((g.m + strip - 1) / strip, max_height / strip) * strip;
  // Columns are cut finely for the threads' sake, unless that means to pack A again and again.
  const int64_t least = std::max(tiling.pack_a ? max_columns / 2 : width, block_cost / (std::min(height, g.m) * g.k));
  const int64_t most_panels = std::max<int64_t>(1, std::min(max_columns, least) / width);
  const int64_t columns = balanced((g.n + width - 1) / width, most_panels) * width;
  const int64_t block_rows = (g.m + height - 1) / height, block_columns = (g.n + columns - 1) / columns;
  parallel_for(block_rows * block_columns, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t top = block % block_rows * height, left = block / block_rows * columns;
      for (int64_t p = 0; p < g.k; p += depth) {
        gemm_block(g, kernels, tiling, top, std::min(g.m, top + height), left, std::min(g.n, left + columns), p,
                   std::min(depth, g.k - p));
      }
    }
  });
}

/// About how long gemm_blocks takes, in operations on vectors.
template <class T>
double gemm_cost(const GemmProblem<T>& g, int64_t lanes) {
  const double m = double(g.m), n = double(g.n), k = double(g.k);
  const double padded = double((g.n + 2 * lanes - 1) / (2 * lanes) * 2 * lanes);
  const double pack = g.b.col_stride == 1 ? 0.1 : g.b.row_stride == 1 ? 0.5 : 1.5;
  const double read = g.a.col_stride == 1 ? 0 : 0.3, write = g.c_col == 1 ? 0.1 : 4;
  return m * padded * k / double(2 * lanes) + pack * n * k + read * m * k + write * m * n * (1 + k / 256);
}

/// The product of float or double matrices; m, n, k > 0.
template <class T>
TENET_NOINLINE void gemm_vector(GemmProblem<T> g) {
  const GemmKernels<T>& kernels = gemm_kernels<T>();
  const int64_t w = kernels.lanes;
  if (std::min(g.m, g.n) <= 4) {
    if (g.n < g.m) g = g.transposed();
    if (g.k >= 2 * w && g.a.col_stride == 1 && g.b.row_stride == 1) return gemm_dots(g, kernels);
    if (g.m < 4 && g.b.col_stride == 1) return gemm_rows(g, kernels);
  } else if (g.k == 1 && g.n >= 32 && g.b.col_stride == 1 && !g.accumulate && !g.row_bias && !g.col_bias) {
    return gemm_outer(g);
  } else if (gemm_cost(g.transposed(), w) < gemm_cost(g, w)) {
    g = g.transposed();
  }
  // Rows of A far apart, or columns, push each other out of the first cache.
  const bool columns = g.a.col_stride != 1, scattered = columns ? g.a.col_stride >= 32 : g.a.row_stride >= 1024;
  const int64_t least = !columns || !scattered ? 256 : g.a.col_stride < 1024 ? 128 : 64;
  const bool pack_a = g.m >= (scattered ? 12 : 96) && g.n >= least;
  const int64_t strip = kernels.heights.strip(g.m);
  gemm_blocks(g, kernels, {strip, 2 * w, pack_a, g.m >= 2 * strip});
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
