// The inner kernels of the matrix product. Included by for_each_isa.hpp once for each instruction set.
#include <tenet/core/config.hpp>

#ifdef TENET_KERNEL_NAMESPACE

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace TENET_KERNEL_NAMESPACE {

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(TENET_KERNEL_BYTES)));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
inline constexpr int lanes = int(TENET_KERNEL_BYTES / sizeof(T));

template <class T>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<T> load(const T* p) {
  Vector<T> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

template <class T>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE void store(T* p, Vector<T> v) {
  __builtin_memcpy(p, &v, sizeof v);
}

// M rows times N vectors of C, held in registers over the whole of k.
template <class T, int M, int N>
TENET_KERNEL_TARGET TENET_NOINLINE void tile(const GemmTile<T>& t) {
  constexpr int w = lanes<T>, groups = (M + 2) / 3;
  Vector<T> sum[M][N];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) sum[i][j] = Vector<T>{};
  }
  // One pointer for three rows of A: the others are reached by scaled addressing.
  const int64_t a_row = t.a_row, a_step = t.a_step, b_step = t.b_step;
  const T* a[groups];
#pragma GCC unroll 8
  for (int g = 0; g < groups; ++g) a[g] = t.a + 3 * g * a_row;
  const T* b = t.b;
#pragma GCC unroll 1
  for (int64_t p = t.k; p > 0; --p) {
    Vector<T> v[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) v[j] = load(b + j * w);
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
  if (t.cols == N * w && t.c_col == 1) {
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) store(t.c + i * t.c_row + j * w, sum[i][j]);
    }
  }
}

}  // namespace TENET_KERNEL_NAMESPACE
}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#endif
