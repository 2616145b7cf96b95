// Dot products with rows of few bits for the instruction set being compiled. Included by for_each_isa.hpp.
#include <tenet/core/config.hpp>

#ifdef TENET_KERNEL_NAMESPACE

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace TENET_KERNEL_NAMESPACE {

template <class Q>
struct AsManyAsFloats {
  typedef Q type __attribute__((vector_size(lanes<float> * sizeof(Q))));
};

#if TENET_X86 && !defined(__clang__) && TENET_KERNEL_BYTES >= 32
// g++ 12 would convert bytes one by one, and words in halves.
typedef int32_t EightIntegers __attribute__((vector_size(32)));
template <class Q>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE EightIntegers load_eight(const Q* p) {
  typedef long long Longs __attribute__((vector_size(16)));
  typedef short Words __attribute__((vector_size(16)));
  typedef char Bytes __attribute__((vector_size(16)));
  Longs v{};
  if constexpr (sizeof(Q) == 2) {
    __builtin_memcpy(&v, p, 16);
    return __builtin_ia32_pmovzxwd256((Words)v);
  } else {
    long long eight;
    __builtin_memcpy(&eight, p, 8);
    v[0] = eight;
    if constexpr (std::is_signed_v<Q>) return __builtin_ia32_pmovsxbd256((Bytes)v);
    else return __builtin_ia32_pmovzxbd256((Bytes)v);
  }
}
template <class Q, int... lane>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<int32_t> load_integers(const Q* p, std::integer_sequence<int, lane...>) {
  if constexpr (sizeof...(lane) == 8) return load_eight(p);
  else return __builtin_shufflevector(load_eight(p), load_eight(p + 8), lane...);
}
#endif

template <class Q>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<int32_t> load_integers(const Q* p) {
#if TENET_X86 && !defined(__clang__) && TENET_KERNEL_BYTES >= 32
  return load_integers(p, std::make_integer_sequence<int, lanes<int32_t>>{});
#else
  typename AsManyAsFloats<Q>::type v;
  __builtin_memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v, Vector<int32_t>);
#endif
}

// The numbers of a group in two halves, `half` apart: vectors that begin at the b-th of each. Integers of 4 bits are
// stored with 8 added.
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE void load_halves(const uint8_t* p, int64_t b, int64_t, Vector<float>& low,
                                                         Vector<float>& high) {
  const Vector<int32_t> pair = load_integers(p + b);
  low = __builtin_convertvector((pair & 15) - 8, Vector<float>);
  high = __builtin_convertvector((pair >> 4) - 8, Vector<float>);
}
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE void load_halves(const int8_t* p, int64_t b, int64_t half, Vector<float>& low,
                                                         Vector<float>& high) {
  low = __builtin_convertvector(load_integers(p + b), Vector<float>);
  high = __builtin_convertvector(load_integers(p + half + b), Vector<float>);
}
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE void load_halves(const bfloat16* p, int64_t b, int64_t half, Vector<float>& low,
                                                         Vector<float>& high) {
  const auto* bits = reinterpret_cast<const std::uint16_t*>(p);
  low = (Vector<float>)(load_integers(bits + b) << 16);
  high = (Vector<float>)(load_integers(bits + half + b) << 16);
}
// The same of one number each.
TENET_ALWAYS_INLINE float low_half(const uint8_t* p, int64_t b) { return float((p[b] & 15) - 8); }
TENET_ALWAYS_INLINE float high_half(const uint8_t* p, int64_t b, int64_t) { return float((p[b] >> 4) - 8); }
template <class Q>
TENET_ALWAYS_INLINE float low_half(const Q* p, int64_t b) {
  return cast<float>(p[b]);
}
template <class Q>
TENET_ALWAYS_INLINE float high_half(const Q* p, int64_t b, int64_t half) {
  return cast<float>(p[half + b]);
}

// Dot products of M rows with the rows [begin, end) of a matrix.
template <class Q, int M>
TENET_KERNEL_TARGET TENET_NOINLINE void narrow_dots(const NarrowMatrix<Q>& w, int64_t begin, int64_t end,
                                                    const NarrowRows& rows) {
  constexpr int width = lanes<float>, chains = M == 1 ? 2 : 1;  // enough to hide the latency of a sum
  const int64_t groups = w.groups();
  for (int64_t row = begin; row < end; ++row) {
    const Q* from = w.values + row * w.row_step;
    Vector<float> total[M] = {};
    float rest[M] = {};
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t at = g * w.group_size, n = std::min(w.group_size, w.columns - at), half = (n + 1) / 2;
      const float scale = w.scales ? w.scales[row * groups + g] : 1.0f;
      Vector<float> sum[M][chains] = {};
      const float* x[M];
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m) x[m] = rows.x[m] + at;
      int64_t b = 0;
#pragma GCC unroll 2
      for (; b + width <= n - half; b += width) {
        Vector<float> low, high;
        load_halves(from, b, half, low, high);
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m) {
          sum[m][0] += low * load(x[m] + b);
          sum[m][chains - 1] += high * load(x[m] + half + b);
        }
      }
      float last[M] = {};
      for (; b < half; ++b) {
        const float low = low_half(from, b), high = half + b < n ? high_half(from, b, half) : 0.0f;
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m) last[m] += low * x[m][b] + (half + b < n ? high * x[m][half + b] : 0.0f);
      }
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m) {
        if constexpr (chains == 2) sum[m][0] += sum[m][1];
        total[m] += sum[m][0] * scale;
        rest[m] += last[m] * scale;
      }
      from += std::is_same_v<Q, uint8_t> ? half : n;
    }
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m) {
      float sum = rest[m];
#pragma GCC unroll 16
      for (int l = 0; l < width; ++l) sum += total[m][l];
      rows.y[m][row] = rows.bias ? sum + rows.bias[row] : sum;
    }
  }
}

template <class Q>
inline constexpr NarrowDotKernels<Q> narrow_dot_table{&narrow_dots<Q, 1>, &narrow_dots<Q, NarrowRows::most>};

}  // namespace TENET_KERNEL_NAMESPACE
}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#endif
