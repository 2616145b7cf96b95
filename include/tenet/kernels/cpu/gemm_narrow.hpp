// The matrix product of elements that are narrower than their sums.
//
// Both operands are packed into units that the machine multiplies fast, a block of C is summed up completely, and then
// rounded, scaled or saturated once. As in gemm_blocks.hpp the work is cut by sizes only: results are bit-identical for
// any number of threads.
#pragma once

#include <tenet/kernels/cpu/gemm_blocks.hpp>

#include <cstring>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// What becomes of finished sums: of a piece of C with its corner at (top, left), stored by rows. They may be changed.
template <class Sum>
struct Finish {
  void (*run)(const void* context, int64_t top, int64_t left, int64_t rows, int64_t cols, Sum* sums);
  const void* context;
};

namespace detail {

/// A product whose sums go to `finish`; where it is turned, C is stored by columns. `panels` holds B packed, or is
/// null.
template <class A, class B, class Sum>
struct NarrowProblem {
  int64_t m, n, k;
  MatrixView<A> a;
  MatrixView<B> b;
  Finish<Sum> finish;
  bool turned = false;
  const void* panels = nullptr;

  NarrowProblem<B, A, Sum> transposed() const { return {n, m, k, b.transposed(), a.transposed(), finish, !turned}; }
};

// Blocks of C, and how deep they are packed.
struct NarrowBlocks {
  int64_t strip, height, width, depth;
};

// Elements along k that are packed together.
template <class U>
int64_t narrow_depth(int64_t k) {
  constexpr int64_t max_units = 256;
  return balanced((k + unit_depth<U> - 1) / unit_depth<U>, max_units) * unit_depth<U>;
}

// 128 times the sums of the columns of a panel are what int8 elements have too much when they became unsigned by adding
// 128: they are taken off, once for each column.
template <class B, class Kernels>
void column_excess(const Kernels& kernels, int64_t units, const B* panel, int64_t width, std::uint32_t* out) {
  const UnsignedQuad all{0x80808080u};
  kernels.tiles.tile[0]({units, &all, 0, 0, panel, width, out, width, 1, width, false, nullptr, nullptr});
  for (int64_t j = 0; j < width; ++j) out[j] = 0 - out[j];
}

// The sums of rows [top, bottom) and columns [left, right) of C.
template <class A, class B, class SA, class SB, class Sum>
void narrow_block(const NarrowProblem<SA, SB, Sum>& g, const UnitKernels<A, B, SA, SB>& kernels,
                  const NarrowBlocks& blocks, int64_t top, int64_t bottom, int64_t left, int64_t right) {
  constexpr int64_t panels = 8;  // rows of B are read in longer runs
  const int64_t width = 2 * kernels.pack_b.lanes, strip = blocks.strip, rows = bottom - top, cols = right - left;
  const int64_t a_size = panel_size(kernels.pack_a, blocks.depth, strip);
  const int64_t b_size = panel_size(kernels.pack_b, blocks.depth, width);
  Sum* const sums = scratch<Sum>(Scratch::gemm_sums, rows * cols + width);
  Sum* const excess = sums + rows * cols;
  const int64_t own = g.panels ? 0 : panels * b_size;
  B* const packed_b = scratch<B>(Scratch::gemm_panels, own + (rows + strip - 1) / strip * a_size);
  A* const packed_a = reinterpret_cast<A*>(packed_b + own);
  for (int64_t p = 0; p == 0 || p < g.k; p += blocks.depth) {
    const int64_t deep = std::min(blocks.depth, g.k - p), units = (deep + unit_depth<A> - 1) / unit_depth<A>;
    const int64_t a_step = panel_size(kernels.pack_a, deep, strip), b_step = panel_size(kernels.pack_b, deep, width);
    pack_panels(kernels.pack_a, deep, rows, g.a.at(top, p).transposed(), packed_a, strip);
    const B* ready = static_cast<const B*>(g.panels);
    if (ready) ready += p / blocks.depth * ((g.n + width - 1) / width) * b_size + left / width * b_step;
    for (int64_t j = 0; j < cols; j += width) {
      const int64_t in_group = j / width % panels;
      if (in_group == 0 && !ready) {
        pack_panels(kernels.pack_b, deep, std::min(cols - j, panels * width), g.b.at(p, left + j), packed_b, width);
      }
      const B* const panel = ready ? ready + j / width * b_step : packed_b + in_group * b_step;
      if constexpr (is_raised<A, SA>) column_excess(kernels, units, panel, width, excess);
      GemmTile<A, B> t{units,
                       nullptr,
                       1,
                       strip,
                       panel,
                       width,
                       nullptr,
                       cols,
                       1,
                       std::min(width, cols - j),
                       p > 0,
                       nullptr,
                       is_raised<A, SA> ? excess : nullptr};
      if (g.turned) t.c_row = 1, t.c_col = rows;
      for (int64_t i = 0; i < rows;) {
        const int64_t height = kernels.tiles.heights.fit(std::min(strip - i % strip, rows - i));
        t.a = packed_a + i / strip * a_step + i % strip;
        t.c = sums + i * t.c_row + j * t.c_col;
        kernels.tiles.tile[height - 1](t);
        i += height;
      }
    }
  }
  if (g.turned) g.finish.run(g.finish.context, left, top, cols, rows, sums);
  else g.finish.run(g.finish.context, top, left, rows, cols, sums);
}

template <class A, class B, class SA, class SB, class Sum>
void narrow_blocks(const NarrowProblem<SA, SB, Sum>& g, const UnitKernels<A, B, SA, SB>& kernels) {
  // For the same reasons as in gemm_blocks; units are deeper than numbers of float.
  constexpr int64_t max_height = 256, max_columns = 512, block_cost = int64_t{1} << 21;
  const int64_t k = std::max<int64_t>(g.k, 1), width = 2 * kernels.pack_b.lanes,
                strip = kernels.tiles.heights.strip(g.m);
  const int64_t height = balanced((g.m + strip - 1) / strip, max_height / strip) * strip;
  const int64_t least = std::max(max_columns / 2, block_cost / (std::min(height, g.m) * k));
  const int64_t columns = balanced((g.n + width - 1) / width, std::min(max_columns, least) / width) * width;
  const NarrowBlocks blocks{strip, height, columns, narrow_depth<A>(k)};
  const int64_t block_rows = (g.m + height - 1) / height, block_columns = (g.n + columns - 1) / columns;
  const int64_t grain = std::max<int64_t>(1, block_cost / (std::min(height, g.m) * std::min(columns, g.n) * k));
  parallel_for(block_rows * block_columns, grain, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t top = block % block_rows * height, left = block / block_rows * columns;
      narrow_block(g, kernels, blocks, top, std::min(g.m, top + height), left, std::min(g.n, left + columns));
    }
  });
}

// Few rows, for which nothing is packed: dot products where both operands are contiguous along k, else scaled rows.
template <class A, class B, class SA, class SB, class Sum>
void narrow_thin(const NarrowProblem<SA, SB, Sum>& g, const UnitKernels<A, B, SA, SB>& kernels, bool dots) {
  Sum* const sums = scratch<Sum>(Scratch::gemm_sums, g.m * g.n);
  GemmProblem<SA, SB, Sum> thin{g.m, g.n, g.k, g.a, g.b, sums, g.n, 1, false, nullptr, nullptr};
  if (g.turned) thin.c_row = 1, thin.c_col = g.m;
  if constexpr (std::is_floating_point_v<A>) {
    if (!dots) gemm_rows(thin, kernels.thin);
  }
  if (dots) gemm_dots(thin, kernels.thin);
  g.finish.run(g.finish.context, 0, 0, g.turned ? g.n : g.m, g.turned ? g.m : g.n, sums);
}

template <class A, class B, class SA, class SB, class Sum>
TENET_NOINLINE void narrow_run(const NarrowProblem<SA, SB, Sum>& g) {
  const UnitKernels<A, B, SA, SB>& kernels = unit_kernels<A, B, SA, SB>();
  const bool dots = g.a.col_stride == 1 && g.b.row_stride == 1 && g.k >= 2 * kernels.pack_b.lanes;
  const bool rows = std::is_floating_point_v<A> && g.b.col_stride == 1 && g.m < 4;
  if (g.m <= 4 && (dots || rows)) narrow_thin(g, kernels, dots);
  else narrow_blocks(g, kernels);
}

// About how long the tiles take, in operations on vectors: whole panels are multiplied, and a turned C is written
// element by element.
inline double narrow_cost(int64_t m, int64_t n, int64_t units, int64_t width, bool turned) {
  return double(m) * double((n + width - 1) / width * 2) * double(units) + (turned ? 4 : 0.1) * double(m) * double(n);
}

}  // namespace detail

/// Units that b[k, n] takes when it is packed for narrow_product.
template <class B, class Kernels>
int64_t narrow_panels_size(const Kernels& pack_b, int64_t n, int64_t k) {
  const int64_t width = 2 * pack_b.lanes, depth = detail::narrow_depth<B>(k);
  return (k + depth - 1) / depth * ((n + width - 1) / width) * panel_size(pack_b, depth, width);
}

/// Packs b[k, n] for narrow_product.
template <class B, class SB>
void pack_narrow_panels(const PackKernels<B, SB>& pack_b, int64_t n, int64_t k, MatrixView<SB> b, B* out) {
  const int64_t width = 2 * pack_b.lanes, depth = detail::narrow_depth<B>(k), panels = (n + width - 1) / width;
  for (int64_t p = 0; p < k; p += depth, out += panels * panel_size(pack_b, depth, width)) {
    pack_panels(pack_b, std::min(depth, k - p), n, b.at(p, 0), out, width);
  }
}

/// Sums over k of products of a[m, k] and b[k, n] in units A and B. They are handed to `finish`, a piece of C each
/// time, on any thread. m, n > 0; k == 0 sums to zero. `panels`: b packed, or null.
template <class A, class B, class SA, class SB, class Sum>
void narrow_product(int64_t m, int64_t n, int64_t k, MatrixView<SA> a, MatrixView<SB> b, const Finish<Sum>& finish,
                    const B* panels = nullptr) {
  if (k <= 0) {
    Sum* const sums = scratch<Sum>(Scratch::gemm_sums, n);
    for (int64_t i = 0; i < m; ++i) {
      std::fill_n(sums, n, Sum(0));
      finish.run(finish.context, i, 0, 1, n, sums);
    }
    return;
  }
  detail::NarrowProblem<SA, SB, Sum> g{m, n, k, a, b, finish};
  const bool thin = std::min(m, n) <= 4;
  const int64_t units = (k + unit_depth<A> - 1) / unit_depth<A>, width = 2 * unit_kernels<A, B, SA, SB>().pack_b.lanes;
  if (!thin) g.panels = panels;
  const bool turn =
      thin ? n < m
           : !panels && detail::narrow_cost(n, m, units, width, true) < detail::narrow_cost(m, n, units, width, false);
  if (!turn) {
    detail::narrow_run<A, B>(g);
  } else if constexpr (std::is_same_v<SA, SB>) {
    detail::narrow_run<A, B>(g.transposed());
  } else {
    detail::narrow_run<B, A>(g.transposed());
  }
}

namespace detail {

template <class Sum, class T>
struct AddConverted {
  TENET_ALWAYS_INLINE static void run(int64_t n, Sum* sums, const T* x) {
    TENET_LOOP
    for (int64_t j = 0; j < n; ++j) sums[j] += cast<Sum>(x[j]);
  }
};

}  // namespace detail

/// sums[j] += x[j] for n elements.
template <class Sum, class T>
void add_converted(int64_t n, Sum* sums, const T* x) {
  vectorized<detail::AddConverted<Sum, T>>(n, sums, x);
}

/// Adds the options to the sums and stores them as elements of C, rounded once; integers wrap around.
template <class C, class Sum>
struct StoreSums {
  C* c;
  int64_t ldc;
  GemmOptions<C> options;

  Finish<Sum> finish() const { return {&run, this}; }

  static void run(const void* context, int64_t top, int64_t left, int64_t rows, int64_t cols, Sum* sums) {
    const StoreSums& self = *static_cast<const StoreSums*>(context);
    for (int64_t i = 0; i < rows; ++i, sums += cols) {
      C* const c = self.c + (top + i) * self.ldc + left;
      if (self.options.accumulate) add_converted(cols, sums, static_cast<const C*>(c));
      if (self.options.col_bias) add_converted(cols, sums, self.options.col_bias + left);
      if (self.options.row_bias) {
        const Sum bias = cast<Sum>(self.options.row_bias[top + i]);
        for (int64_t j = 0; j < cols; ++j) sums[j] += bias;
      }
      if constexpr (sizeof(C) == sizeof(Sum)) std::memcpy(c, sums, std::size_t(cols) * sizeof(C));
      else convert(cols, c, static_cast<const Sum*>(sums));
    }
  }
};

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
