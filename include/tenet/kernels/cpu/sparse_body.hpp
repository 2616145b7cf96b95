// Products with a sparse matrix for the instruction set being compiled. Included by for_each_isa.hpp.
#include <tenet/core/config.hpp>

#ifdef TENET_KERNEL_NAMESPACE

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace TENET_KERNEL_NAMESPACE {

// y[r] = sum over the elements of row r of value * x[column], for rows [begin, end).
template <class T>
TENET_KERNEL_TARGET TENET_NOINLINE void sparse_dot(const SparseMatrix<T>& m, int64_t begin, int64_t end, const T* x,
                                                   T* y) {
  constexpr int w = lanes<T>;
  for (int64_t r = begin; r < end; ++r) {
    int64_t k = m.starts[r];
    const int64_t last = m.starts[r + 1];
    Vector<T> sums{};
    for (; k + w <= last; k += w) {
      Vector<T> at;
#pragma GCC unroll 16
      for (int l = 0; l < w; ++l) at[l] = x[m.columns[k + l]];
      sums += load(m.values + k) * at;
    }
    T sum = 0;
#pragma GCC unroll 16
    for (int l = 0; l < w; ++l) sum += sums[l];
    for (; k < last; ++k) sum += m.values[k] * x[m.columns[k]];
    y[r] = sum;
  }
}

// The same for the columns of x [m.cols][2 vectors], of which `count` are written to y[column * y_step + r].
template <class T>
TENET_KERNEL_TARGET TENET_NOINLINE void sparse_tile(const SparseMatrix<T>& m, int64_t begin, int64_t end, const T* x,
                                                    int64_t count, T* y, int64_t y_step) {
  constexpr int w = lanes<T>, phases = 4;  // as many as hide the latency of a sum
  for (int64_t r = begin; r < end; ++r) {
    int64_t k = m.starts[r];
    const int64_t last = m.starts[r + 1];
    Vector<T> sums[phases][2] = {};
    for (; k + phases <= last; k += phases) {
#pragma GCC unroll 4
      for (int p = 0; p < phases; ++p) {
        const T* row = x + int64_t(m.columns[k + p]) * (2 * w);
        sums[p][0] += m.values[k + p] * load(row);
        sums[p][1] += m.values[k + p] * load(row + w);
      }
    }
    for (; k < last; ++k) {
      const T* row = x + int64_t(m.columns[k]) * (2 * w);
      sums[0][0] += m.values[k] * load(row);
      sums[0][1] += m.values[k] * load(row + w);
    }
    T whole[2 * w];
    store(whole, (sums[0][0] + sums[1][0]) + (sums[2][0] + sums[3][0]));
    store(whole + w, (sums[0][1] + sums[1][1]) + (sums[2][1] + sums[3][1]));
    for (int64_t c = 0; c < count; ++c) y[c * y_step + r] = whole[c];
  }
}

// dx[column] += value * g[r] over all elements, for g [m.rows][2 vectors] and dx [m.cols][2 vectors].
template <class T>
TENET_KERNEL_TARGET TENET_NOINLINE void sparse_scatter(const SparseMatrix<T>& m, const T* g, T* dx) {
  constexpr int w = lanes<T>;
  for (int64_t r = 0; r < m.rows; ++r) {
    const Vector<T> g0 = load(g + r * 2 * w), g1 = load(g + r * 2 * w + w);
    for (int64_t k = m.starts[r]; k < m.starts[r + 1]; ++k) {
      T* row = dx + int64_t(m.columns[k]) * (2 * w);
      store(row, load(row) + m.values[k] * g0);
      store(row + w, load(row + w) + m.values[k] * g1);
    }
  }
}

template <class T>
inline constexpr SparseKernels<T> sparse_table{2 * lanes<T>, &sparse_dot<T>, &sparse_tile<T>, &sparse_scatter<T>};

}  // namespace TENET_KERNEL_NAMESPACE
}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#endif
