// The inner kernels of the matrix product. Included by for_each_isa.hpp.
#ifdef TENET_KERNEL_NAMESPACE

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace TENET_KERNEL_NAMESPACE {

// M rows times N vectors of C, in registers over the whole of k.
template <class T, int M, int N>
TENET_KERNEL_TARGET TENET_NOINLINE void gemm_tile(const GemmTile<T>& t) {
  constexpr int w = lanes<T>, groups = (M + 2) / 3;
  Vector<T> sum[M][N];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) sum[i][j] = Vector<T>{};
  }
  // One pointer for three rows of A: scaled addressing reaches the others.
  const int64_t a_row = t.a_row, a_step = t.a_step, b_step = t.b_step;
  const T* a[groups];
#pragma GCC unroll 8
  for (int g = 0; g < groups; ++g) a[g] = t.a + 3 * g * a_row;
  const T* b = t.b;
#pragma GCC unroll 1
  for (int64_t p = t.k; p > 0; --p) {
    Vector<T> v[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      v[j] = load(b + j * w);
      hold<T>(v[j]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const T scale = a[i / 3][i % 3 * a_row];
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) sum[i][j] += v[j] * scale;
    }
#pragma GCC unroll 8
    for (int g = 0; g < groups; ++g) a[g] += a_step;
    b += b_step;
  }
  if (t.c_col == 1 && t.cols == N * w) {
    if (t.accumulate) {
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) sum[i][j] += load(t.c + i * t.c_row + j * w);
      }
    }
    if (t.row_bias) {
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) sum[i][j] += t.row_bias[i];
      }
    }
    if (t.col_bias) {
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) {
        const Vector<T> bias = load(t.col_bias + j * w);
#pragma GCC unroll 16
        for (int i = 0; i < M; ++i) sum[i][j] += bias;
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) store(t.c + i * t.c_row + j * w, sum[i][j]);
    }
    return;
  }
  T out[M * N * w];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) store(out + (i * N + j) * w, sum[i][j]);
  }
  finish_tile(t, M, out, N * w);
}

// Sums over contiguous k of M rows of A with N rows of B, lanes along k; at most lanes<T> products.
template <class T, int M, int N>
TENET_KERNEL_TARGET TENET_NOINLINE void gemm_dot(const GemmTile<T>& t) {
  constexpr int w = lanes<T>;
  static_assert(M * N <= 12);
  Vector<T> sum[M][N];
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) sum[i][j] = Vector<T>{};
  }
  const int64_t vectors = t.k / w;
  const T *a = t.a, *b = t.b;
#pragma GCC unroll 1
  for (int64_t p = 0; p < vectors; ++p) {
    Vector<T> u[M];
#pragma GCC unroll 4
    for (int i = 0; i < M; ++i) u[i] = load(a + i * t.a_row);
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      Vector<T> v = load(b + j * t.b_step);
      hold<T>(v);
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i) sum[i][j] += u[i] * v;
    }
    a += w;
    b += w;
  }
  T out[M * N] = {};
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      for (int64_t p = 0; p < t.k - vectors * w; ++p) out[i * N + j] += a[i * t.a_row + p] * b[j * t.b_step + p];
    }
  }
  T vectors_of_sums[M * N * w], whole[M * N];
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) store(vectors_of_sums + (i * N + j) * w, sum[i][j]);
  }
  sum_lanes(vectors_of_sums, M * N, whole);
  for (int i = 0; i < M * N; ++i) out[i] += whole[i];
  finish_tile(t, M, out, N);
}

// c[j] += sum over R rows of B of a[r] * b[r][j].
template <class T, int R>
TENET_KERNEL_TARGET TENET_NOINLINE void add_rows(int64_t n, const T* a, int64_t a_step, const T* b, int64_t b_row,
                                                 T* c) {
  constexpr int w = lanes<T>;
  T scale[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) scale[r] = a[r * a_step];
  int64_t j = 0;
#pragma GCC unroll 1
  for (; j + w <= n; j += w) {
    Vector<T> sum = load(c + j);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum += load(b + r * b_row + j) * scale[r];
    store(c + j, sum);
  }
#pragma GCC unroll 1
  for (; j < n; ++j) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) c[j] += b[r * b_row + j] * scale[r];
  }
}

// out[p * step + j] = in[j * row + p] for j < lanes<T> and p < k: rows become columns.
template <class T>
TENET_KERNEL_TARGET TENET_NOINLINE void transpose_rows(int64_t k, const T* in, int64_t row, T* out, int64_t step) {
  constexpr int w = lanes<T>;
  int64_t p = 0;
  for (; p + w <= k; p += w) {
    Vector<T> v[w];
#pragma GCC unroll 16
    for (int j = 0; j < w; ++j) v[j] = load(in + j * row + p);
    transpose<T>(v);
#pragma GCC unroll 16
    for (int j = 0; j < w; ++j) store(out + (p + j) * step, v[j]);
  }
  for (; p < k; ++p) {
    for (int j = 0; j < w; ++j) out[p * step + j] = in[j * row + p];
  }
}

// out[q * out_panel + p * width + j] = in[p * row + q * width + j] for q < panels, p < k and j < N * lanes<T>. Where
// that is more than the width, the next p overwrites what is too much.
template <class T, int N>
TENET_KERNEL_TARGET TENET_NOINLINE void copy_panels(int64_t k, int64_t panels, const T* in, int64_t row, T* out,
                                                    int64_t width, int64_t out_panel) {
  constexpr int w = lanes<T>;
  for (; k > 0; --k, in += row, out += width) {
    const T* from = in;
    T* to = out;
    for (int64_t q = 0; q < panels; ++q, from += width, to += out_panel) {
#pragma GCC unroll 2
      for (int j = 0; j < N; ++j) store(to + j * w, load(from + j * w));
    }
  }
}

template <class T, int height>
constexpr auto gemm_tile_of() -> void (*)(const GemmTile<T>&) {
  if constexpr ((tile_heights >> (height - 1) & 1) != 0) return gemm_tile<T, height, 2>;
  return nullptr;
}

template <class T, int... i>
constexpr GemmKernels<T> make_gemm_kernels(std::integer_sequence<int, i...>) {
  return {lanes<T>,
          {tile_heights},
          {gemm_tile_of<T, i + 1>()...},
          {add_rows<T, 8>, add_rows<T, 1>},
          {gemm_dot<T, 1, 6>, nullptr, nullptr, gemm_dot<T, 4, 3>},
          {6, 0, 0, 3},
          transpose_rows<T>,
          {copy_panels<T, 1>, copy_panels<T, 2>}};
}

template <class T>
inline constexpr GemmKernels<T> gemm_kernels =
    make_gemm_kernels<T>(std::make_integer_sequence<int, TileHeights::most>{});

}  // namespace TENET_KERNEL_NAMESPACE
}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#endif
