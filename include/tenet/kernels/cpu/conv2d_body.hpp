// The inner kernels of the convolution. Included by for_each_isa.hpp.
//
// A vector holds one run of neighbouring pixels of a row, or two runs where it is wider than 8 lanes. What a run has
// too many is masked out.
#ifdef TENET_KERNEL_NAMESPACE

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace TENET_KERNEL_NAMESPACE {

template <class T>
inline constexpr int run_lanes = lanes<T> < 8 ? lanes<T> : 8;
template <class T>
inline constexpr int runs = lanes<T> / run_lanes<T>;  // in a vector

template <class T>
struct RunOf {
  typedef T type __attribute__((vector_size(run_lanes<T> * sizeof(T))));
};
template <class T>
using Run = typename RunOf<T>::type;

template <class T, int... lane>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<T> join(const Run<T>& a, const Run<T>& b,
                                                       std::integer_sequence<int, lane...>) {
#if TENET_X86 && TENET_KERNEL_BYTES == 64 && !defined(__clang__) && !defined(TENET_WIDE_VECTORS_ON_AVX2)
  // GCC would load both and shuffle them.
  typedef double Half __attribute__((vector_size(32)));
  typedef double Whole __attribute__((vector_size(64)));
  return (Vector<T>)__builtin_ia32_insertf64x4_mask(__builtin_ia32_pd512_256pd((Half)a), (Half)b, 1, Whole{}, 255);
#else
  return __builtin_shufflevector(a, b, lane...);
#endif
}

template <class T, int part, int... lane>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Run<T> run_of(const Vector<T>& v, std::integer_sequence<int, lane...>) {
  if constexpr (runs<T> == 1) {
    return v;
  } else {
    return __builtin_shufflevector(v, v, (part * run_lanes<T> + lane)...);
  }
}

// A vector of the runs that stand `offset` behind each pointer.
template <class T>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<T> load_runs(const T* const* in, int64_t offset) {
  if constexpr (runs<T> == 1) {
    return load(in[0] + offset);
  } else {
    Run<T> a, b;
    __builtin_memcpy(&a, in[0] + offset, sizeof a);
    __builtin_memcpy(&b, in[1] + offset, sizeof b);
    return join<T>(a, b, std::make_integer_sequence<int, lanes<T>>{});
  }
}

// A vector of the runs at base[at[0]], base[at[1]].
template <class T>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<T> load_runs(const T* base, const int64_t* at) {
  const T* const in[] = {base + at[0], base + at[runs<T> - 1]};
  return load_runs<T>(in, 0);
}

template <class T, int part>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE void add_run(T* p, const Vector<T>& v) {
  Run<T> old;
  __builtin_memcpy(&old, p, sizeof old);
  old += run_of<T, part>(v, std::make_integer_sequence<int, run_lanes<T>>{});
  __builtin_memcpy(p, &old, sizeof old);
}

template <class T, int part>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE void store_run(T* p, const Vector<T>& v) {
  const Run<T> run = run_of<T, part>(v, std::make_integer_sequence<int, run_lanes<T>>{});
  __builtin_memcpy(p, &run, sizeof run);
}

// Keeps the lanes whose bits are set.
template <class T>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<T> masked(const Vector<T>& v, const Vector<T>& mask) {
  typedef long long Bits __attribute__((vector_size(TENET_KERNEL_BYTES)));
  return (Vector<T>)((Bits)v & (Bits)mask);
}

// Writes the sums of M channels and one tile.
template <class T, int M>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE void store_tile(const ConvTiles<T>& t, int64_t tile,
                                                        const Vector<T> (&sum)[M][2]) {
  constexpr int n = 2, parts = runs<T>;
  const int64_t out_row = t.out_row;
  T* to[n * parts];
#pragma GCC unroll 4
  for (int r = 0; r < n * parts; ++r) to[r] = t.out + t.to[tile * n * parts + r];
  if (t.valid == run_lanes<T>) {
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < n; ++j) {
        store_run<T, 0>(to[j * parts] + i * out_row, sum[i][j]);
        if constexpr (parts == 2) store_run<T, 1>(to[j * parts + 1] + i * out_row, sum[i][j]);
      }
    }
  } else {
    T lane[M][n * lanes<T>];
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < n; ++j) store(lane[i] + j * lanes<T>, sum[i][j]);
    }
    for (int i = 0; i < M; ++i) {
      for (int r = 0; r < n * parts; ++r) {
        for (int64_t q = 0; q < t.valid; ++q) to[r][i * out_row + q] = lane[i][r * run_lanes<T> + q];
      }
    }
  }
}

// M channels times the pixels of some tiles, 2 vectors at a time: sums over taps of weights and runs of the image.
template <class T, int M>
TENET_KERNEL_TARGET TENET_NOINLINE void conv_tiles(const ConvTiles<T>& t) {
  constexpr int n = 2, parts = runs<T>;
  const int64_t weights_step = t.weights_step, out_row = t.out_row;
  const int64_t *const offsets = t.offsets, *const offsets_end = offsets + t.taps;
  const T *const image = t.image, *const bias = t.bias;
  for (int64_t tile = 0; tile < t.tiles; ++tile) {
    Vector<T> sum[M][n];
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const T start = bias ? bias[i] : T(0);
#pragma GCC unroll 2
      for (int j = 0; j < n; ++j) sum[i][j] = Vector<T>{} + start;
    }
    const T *in[n * parts], *weights = t.weights;
#pragma GCC unroll 4
    for (int r = 0; r < n * parts; ++r) in[r] = image + t.from[tile * n * parts + r];
#pragma GCC unroll 1
    for (const int64_t* offset = offsets; offset != offsets_end; ++offset) {
      Vector<T> v[n];
#pragma GCC unroll 2
      for (int j = 0; j < n; ++j) {
        v[j] = load_runs<T>(in + j * parts, *offset);
        hold<T>(v[j]);
      }
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) {
        const T scale = weights[i];
#pragma GCC unroll 2
        for (int j = 0; j < n; ++j) sum[i][j] += v[j] * scale;
      }
      weights += weights_step;
    }
    if (t.add) {
      T* to[n * parts];
#pragma GCC unroll 4
      for (int r = 0; r < n * parts; ++r) to[r] = t.out + t.to[tile * n * parts + r];
      if (tile >= t.unmasked) {
#pragma GCC unroll 2
        for (int j = 0; j < n; ++j) {
          const Vector<T> mask = load_runs<T>(t.masks, t.mask + (tile * n + j) * parts);
#pragma GCC unroll 16
          for (int i = 0; i < M; ++i) sum[i][j] = masked<T>(sum[i][j], mask);
        }
      }
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
        for (int j = 0; j < n; ++j) {
          add_run<T, 0>(to[j * parts] + i * out_row, sum[i][j]);
          if constexpr (parts == 2) add_run<T, 1>(to[j * parts + 1] + i * out_row, sum[i][j]);
        }
      }
    } else {
      store_tile<T, M>(t, tile, sum);
    }
  }
}

// Adds to sums[M][N] of vectors the products of M channels of dy with N taps of x, over the runs of some images.
template <class T, int M, int N>
TENET_KERNEL_TARGET TENET_NOINLINE void conv_dot(const ConvDot<T>& d) {
  constexpr int w = lanes<T>, parts = runs<T>;
  Vector<T> sum[M][N];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) sum[i][j] = load(d.sums + (i * N + j) * w);
  }
  const T *dy[M], *x[N];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) dy[i] = d.dy[i];
#pragma GCC unroll 8
  for (int j = 0; j < N; ++j) x[j] = d.x[j];
  const int64_t *dy_at = d.whole.dy_at, *x_at = d.whole.x_at;
#pragma GCC unroll 1
  for (int64_t r = 0; r < d.whole.runs; r += parts) {
    Vector<T> v[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      v[j] = load_runs(x[j], x_at + r);
      hold<T>(v[j]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      Vector<T> g = load_runs(dy[i], dy_at + r);
      hold<T>(g);
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) sum[i][j] += v[j] * g;
    }
  }
#pragma GCC unroll 1
  for (int64_t r = 0; r < d.masked.runs; r += parts) {
    const Vector<T> mask = load_runs<T>(d.masks, d.masked.mask_at + r);
    Vector<T> v[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) v[j] = masked<T>(load_runs(x[j], d.masked.x_at + r), mask);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const Vector<T> g = masked<T>(load_runs(dy[i], d.masked.dy_at + r), mask);
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) sum[i][j] += v[j] * g;
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) store(d.sums + (i * N + j) * w, sum[i][j]);
  }
}

template <class T, int height>
constexpr auto conv_tiles_of() -> void (*)(const ConvTiles<T>&) {
  if constexpr ((tile_heights >> (height - 1) & 1) != 0) return conv_tiles<T, height>;
  return nullptr;
}

template <class T, int... i>
constexpr ConvKernels<T> make_conv_kernels(std::integer_sequence<int, i...>) {
  constexpr int side = TENET_KERNEL_REGISTERS == 32 ? 5 : 4, taps = TENET_KERNEL_REGISTERS == 32 ? 5 : 3;
  return {lanes<T>, run_lanes<T>, {tile_heights},          {conv_tiles_of<T, i + 1>()...},
          side,     taps,         conv_dot<T, side, taps>, sum_lanes<T>};
}

template <class T>
inline constexpr ConvKernels<T> conv_kernels =
    make_conv_kernels<T>(std::make_integer_sequence<int, TileHeights::most>{});

}  // namespace TENET_KERNEL_NAMESPACE
}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#endif
