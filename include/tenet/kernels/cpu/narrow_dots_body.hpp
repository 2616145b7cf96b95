// Dot products with rows of few bits for the instruction set being compiled. Included by for_each_isa.hpp.
#include <tenet/core/config.hpp>

#ifdef TENET_KERNEL_NAMESPACE

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace TENET_KERNEL_NAMESPACE {

template <class Q>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<int32_t> load_integers(const Q* p) {
  return reinterpret_cast<Vector<int32_t>>(load_widened<std::uint32_t, Q>(p));
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
  low = bfloat16_to_float(load_widened<std::uint32_t, std::uint16_t>(p + b));
  high = bfloat16_to_float(load_widened<std::uint32_t, std::uint16_t>(p + half + b));
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
