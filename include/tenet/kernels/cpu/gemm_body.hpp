// The inner kernels of the matrix product. Included by for_each_isa.hpp.
#ifdef TENET_KERNEL_NAMESPACE

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace TENET_KERNEL_NAMESPACE {

// M rows times 2 vectors of C, in registers over the whole of k. Where the columns do not fill both, they overlap.
template <class A, class B, int M>
TENET_KERNEL_TARGET TENET_NOINLINE void gemm_tile(const GemmTile<A, B>& t) {
  using T = unit_sum_t<A>;
  constexpr int w = lanes<T>, groups = (M + 2) / 3;
  const int64_t column[2] = {0, t.cols < w ? w : t.cols - w};
  Vector<T> sum[M][2];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) sum[i][0] = sum[i][1] = Vector<T>{};
  // One pointer for three rows of A: scaled addressing reaches the others.
  const int64_t a_row = t.a_row, a_step = t.a_step, b_step = t.b_step;
  const A* a[groups];
#pragma GCC unroll 8
  for (int g = 0; g < groups; ++g) a[g] = t.a + 3 * g * a_row;
  const B* b = t.b;
  B* panel = t.panel;
#pragma GCC unroll 1
  for (int64_t p = t.k; p > 0; --p) {
    Vector<unit_lane_t<B>> v[2];
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      v[j] = load_vector<Vector<unit_lane_t<B>>>(b + column[j]);
      hold<unit_lane_t<B>>(v[j]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const A scale = a[i / 3][i % 3 * a_row];
#pragma GCC unroll 2
      for (int j = 0; j < 2; ++j) add_scaled<A, B>(sum[i][j], scale, v[j]);
    }
#pragma GCC unroll 8
    for (int g = 0; g < groups; ++g) a[g] += a_step;
    if (panel) {
      // The columns to the right come next: rows far apart are fetched by nobody else.
      __builtin_prefetch(b + 4 * w - 1, 0, 2);
#pragma GCC unroll 2
      for (int j = 0; j < 2; ++j) store_vector(panel + column[j], v[j]);
      panel += 2 * w;
    }
    b += b_step;
  }
  if (t.c_col == 1 && t.cols >= w) {
    if (t.accumulate) {
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
        for (int j = 0; j < 2; ++j) sum[i][j] += load(t.c + i * t.c_row + column[j]);
      }
    }
    if (t.row_bias) {
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
        for (int j = 0; j < 2; ++j) sum[i][j] += t.row_bias[i];
      }
    }
    if (t.col_bias) {
#pragma GCC unroll 2
      for (int j = 0; j < 2; ++j) {
        const Vector<T> bias = load(t.col_bias + column[j]);
#pragma GCC unroll 16
        for (int i = 0; i < M; ++i) sum[i][j] += bias;
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < 2; ++j) store(t.c + i * t.c_row + column[j], sum[i][j]);
    }
    return;
  }
  T out[M * 2 * w];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) store(out + i * 2 * w + column[j], sum[i][j]);
  }
  finish_tile(t, M, out, 2 * w);
}

// Sums over contiguous k of M rows of A with N rows of B, lanes along k; at most lanes<T> products.
template <class A, class B, class SA, class SB, int M, int N>
TENET_KERNEL_TARGET TENET_NOINLINE void gemm_dot(const GemmTile<SA, SB, unit_sum_t<A>>& t) {
  using T = unit_sum_t<A>;
  constexpr int w = lanes<T>, deep = w * unit_depth<A>;
  constexpr bool raised = is_raised<A, SA>, whole_only = !std::is_same_v<A, SA>;
  constexpr int rows = raised ? M + 1 : M;  // the last is what raised elements have too much
  static_assert(M * N <= 12);
  Vector<T> sum[rows][N];
#pragma GCC unroll 5
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) sum[i][j] = Vector<T>{};
  }
  const SA* a = t.a;
  const SB* b = t.b;
  int64_t a_row = t.a_row, b_row = t.b_step, vectors = t.k / deep, left = t.k % deep;
  // What does not fill a vector is filled up with zeros, and takes another pass; whole numbers are added up below.
  [[maybe_unused]] alignas(SA) unsigned char last_a[M * deep * sizeof(SA)];
  [[maybe_unused]] alignas(SB) unsigned char last_b[N * deep * sizeof(SB)];
  for (;;) {
#pragma GCC unroll 1
    for (int64_t p = 0; p < vectors; ++p) {
      Vector<unit_lane_t<B>> v[N];
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) {
        v[j] = load_units<B>(b + j * b_row);
        hold<unit_lane_t<B>>(v[j]);
      }
#pragma GCC unroll 5
      for (int i = 0; i < rows; ++i) {
        Vector<unit_lane_t<A>> u;
        if constexpr (raised) u = Vector<T>{} + 0x80808080u;
        if (i < M) u = load_units<A>(a + i * a_row);
        hold<unit_lane_t<A>>(u);
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) add_products<A, B>(sum[i][j], u, v[j]);
      }
      a += deep;
      b += deep;
    }
    if (!whole_only || left == 0) break;
    if constexpr (whole_only) {
      __builtin_memset(last_a, 0, sizeof last_a);
      __builtin_memset(last_b, 0, sizeof last_b);
      const std::size_t bytes_a = std::size_t(left) * sizeof(SA), bytes_b = std::size_t(left) * sizeof(SB);
      for (int i = 0; i < M; ++i) __builtin_memcpy(last_a + i * deep * sizeof(SA), a + i * a_row, bytes_a);
      for (int j = 0; j < N; ++j) __builtin_memcpy(last_b + j * deep * sizeof(SB), b + j * b_row, bytes_b);
      a = reinterpret_cast<const SA*>(last_a), b = reinterpret_cast<const SB*>(last_b);
      a_row = b_row = deep, vectors = 1, left = 0;
    }
  }
  T out[M * N] = {};
  if constexpr (!whole_only) {
    for (int i = 0; i < M; ++i) {
      for (int j = 0; j < N; ++j) {
        for (int64_t p = 0; p < left; ++p) out[i * N + j] += a[i * a_row + p] * b[j * b_row + p];
      }
    }
  }
  T vectors_of_sums[M * N * w], whole[M * N];
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      if constexpr (raised) sum[i][j] -= sum[M][j];
      store(vectors_of_sums + (i * N + j) * w, sum[i][j]);
    }
  }
  sum_lanes(vectors_of_sums, M * N, whole);
  for (int i = 0; i < M * N; ++i) out[i] += whole[i];
  finish_tile(t, M, out, N);
}

// c[j] += sum over R rows of B of a[r] * b[r][j].
template <class T, class SA, class SB, int R>
TENET_KERNEL_TARGET TENET_NOINLINE void add_rows(int64_t n, const SA* a, int64_t a_step, const SB* b, int64_t b_row,
                                                 T* c) {
  constexpr int w = lanes<T>;
  T scale[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) scale[r] = cast<T>(a[r * a_step]);
  int64_t j = 0;
#pragma GCC unroll 1
  for (; j + w <= n; j += w) {
    Vector<T> sum = load(c + j);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum += load_elements<T>(b + r * b_row + j) * scale[r];
    store(c + j, sum);
  }
#pragma GCC unroll 1
  for (; j < n; ++j) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) c[j] += cast<T>(b[r * b_row + j]) * scale[r];
  }
}

// out[p * step + j] = unit p of row j of `in`, for j < lanes and every unit of k elements: rows become columns.
template <class U, class S>
TENET_KERNEL_TARGET TENET_NOINLINE void transpose_rows(int64_t k, const S* in, int64_t row, U* out, int64_t step) {
  using Lane = unit_lane_t<U>;
  constexpr int w = lanes<Lane>, depth = unit_depth<U>;
  for (; k >= w * depth; k -= w * depth, in += w * depth, out += w * step) {
    Vector<Lane> v[w];
#pragma GCC unroll 16
    for (int j = 0; j < w; ++j) v[j] = load_units<U>(in + j * row);
    transpose<Lane>(v);
#pragma GCC unroll 16
    for (int j = 0; j < w; ++j) store_vector(out + j * step, v[j]);
  }
  for (; k > 0; k -= depth, in += depth, out += step) {
    for (int j = 0; j < w; ++j) out[j] = gather_unit<U>(in + j * row, 1, k);
  }
}

// out[q * out_panel + p * width + j] = unit p of column q * width + j, for q < panels, every unit of k rows and
// j < N * lanes. Where that is more than the width, the next p overwrites what is too much.
template <class U, class S, int N>
TENET_KERNEL_TARGET TENET_NOINLINE void copy_panels(int64_t k, int64_t panels, const S* in, int64_t row, U* out,
                                                    int64_t width, int64_t out_panel) {
  constexpr int w = lanes<unit_lane_t<U>>, depth = unit_depth<U>;
  for (; k > 0; k -= depth, in += depth * row, out += width) {
    const S* from = in;
    U* to = out;
    for (int64_t q = 0; q < panels; ++q, from += width, to += out_panel) {
#pragma GCC unroll 2
      for (int j = 0; j < N; ++j) store_vector(to + j * w, load_columns<U>(from + j * w, row, k));
    }
  }
}

template <class A, class B, int height>
constexpr auto gemm_tile_of() -> void (*)(const GemmTile<A, B>&) {
  if constexpr ((tile_heights >> (height - 1) & 1) != 0) return gemm_tile<A, B, height>;
  return nullptr;
}

template <class A, class B, int... i>
constexpr TileKernels<A, B> make_tile_kernels(std::integer_sequence<int, i...>) {
  return {{tile_heights}, {gemm_tile_of<A, B, i + 1>()...}};
}
template <class A, class B>
inline constexpr TileKernels<A, B> tile_kernels =
    make_tile_kernels<A, B>(std::make_integer_sequence<int, TileHeights::most>{});

template <class U, class S>
inline constexpr PackKernels<U, S> pack_kernels = {
    lanes<unit_lane_t<U>>, transpose_rows<U, S>, {copy_panels<U, S, 1>, copy_panels<U, S, 2>}};

template <class A, class B, class SA, class SB>
constexpr ThinKernels<A, B, SA, SB> make_thin_kernels() {
  // Pairs of bfloat16 are cheaper to read than single ones.
  constexpr bool split = std::is_same_v<A, float> && std::is_same_v<SA, bfloat16>;
  using DotA = std::conditional_t<split, SplitPair, A>;
  using DotB = std::conditional_t<split, SplitPair, B>;
  ThinKernels<A, B, SA, SB> kernels = {
      {gemm_dot<DotA, DotB, SA, SB, 1, 6>, nullptr, nullptr, gemm_dot<DotA, DotB, SA, SB, 4, 3>}, {6, 0, 0, 3}, {}};
  if constexpr (std::is_floating_point_v<A>) {
    kernels.add_rows[0] = add_rows<A, SA, SB, 8>;
    kernels.add_rows[1] = add_rows<A, SA, SB, 1>;
  }
  return kernels;
}
template <class A, class B, class SA, class SB>
inline constexpr ThinKernels<A, B, SA, SB> thin_kernels = make_thin_kernels<A, B, SA, SB>();

template <class A, class B, class SA, class SB>
inline constexpr UnitKernels<A, B, SA, SB> unit_kernels = {pack_kernels<A, SA>, pack_kernels<B, SB>, tile_kernels<A, B>,
                                                           thin_kernels<A, B, SA, SB>};

template <class T>
inline constexpr GemmKernels<T> gemm_kernels = {pack_kernels<T, T>, tile_kernels<T, T>, thin_kernels<T, T, T, T>};

}  // namespace TENET_KERNEL_NAMESPACE
}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#endif
