// What the numbers of Winograd's filtering are made of, on vectors: one lane an image. Included by for_each_isa.hpp.
//
// A convolution of 8 pixels with a filter of 5 taps into 4 outputs, along one dimension, is a product of polynomials,
// fixed by its values at 8 points: 0, 1, -1, 2, -2, 1/2, -1/2 and infinity. The sum over points of (image) (filter)
// (output), each as numbers at the points, is that over pixels and taps: so every gradient takes numbers of two sides
// to numbers of the third. See Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016.
#ifdef TENET_KERNEL_NAMESPACE

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace TENET_KERNEL_NAMESPACE {

// Values at a point p and at -p as their even and odd parts; on the way back, as their sums and differences.
struct AtPoints {
  Vector<float> zero, even, odd, even2, odd2, even_half, odd_half, infinity;
};

struct ImageSide {
  static constexpr int size = 8;
  TENET_KERNEL_TARGET TENET_ALWAYS_INLINE static AtPoints expand(const Vector<float>* x) {
    return {x[0] - x[6] + 5.25f * (x[4] - x[2]),
            x[2] + x[6] - 4.25f * x[4],
            x[1] + x[5] - 4.25f * x[3],
            0.25f * x[2] + x[6] - 1.25f * x[4],
            0.5f * x[1] + 2.0f * x[5] - 2.5f * x[3],
            4.0f * x[2] + x[6] - 5.0f * x[4],
            2.0f * x[1] + 0.5f * x[5] - 2.5f * x[3],
            x[7] - x[1] + 5.25f * (x[3] - x[5])};
  }
  TENET_KERNEL_TARGET TENET_ALWAYS_INLINE static void contract(const AtPoints& p, Vector<float>* x) {
    x[0] = p.zero;
    x[1] = p.odd + 0.5f * p.odd2 + 2.0f * p.odd_half - p.infinity;
    x[2] = p.even + 0.25f * p.even2 + 4.0f * p.even_half - 5.25f * p.zero;
    x[3] = 5.25f * p.infinity - 4.25f * p.odd - 2.5f * (p.odd2 + p.odd_half);
    x[4] = 5.25f * p.zero - 4.25f * p.even - 1.25f * p.even2 - 5.0f * p.even_half;
    x[5] = p.odd + 2.0f * p.odd2 + 0.5f * p.odd_half - 5.25f * p.infinity;
    x[6] = p.even + p.even2 + p.even_half - p.zero;
    x[7] = p.infinity;
  }
};

struct FilterSide {
  static constexpr int size = 5;
  static constexpr float one = -2.0f / 9, two = 1.0f / 90, half = 32.0f / 45;
  TENET_KERNEL_TARGET TENET_ALWAYS_INLINE static AtPoints expand(const Vector<float>* x) {
    return {x[0],
            one * (x[0] + x[2] + x[4]),
            one * (x[1] + x[3]),
            two * (x[0] + 4.0f * x[2] + 16.0f * x[4]),
            two * (2.0f * x[1] + 8.0f * x[3]),
            half * (x[0] + 0.25f * x[2] + 0.0625f * x[4]),
            half * (0.5f * x[1] + 0.125f * x[3]),
            x[4]};
  }
  TENET_KERNEL_TARGET TENET_ALWAYS_INLINE static void contract(const AtPoints& p, Vector<float>* x) {
    const Vector<float> even = one * p.even, odd = one * p.odd, even2 = two * p.even2, odd2 = two * p.odd2;
    const Vector<float> even_half = half * p.even_half, odd_half = half * p.odd_half;
    x[0] = p.zero + even + even2 + even_half;
    x[1] = odd + 2.0f * odd2 + 0.5f * odd_half;
    x[2] = even + 4.0f * even2 + 0.25f * even_half;
    x[3] = odd + 8.0f * odd2 + 0.125f * odd_half;
    x[4] = even + 16.0f * even2 + 0.0625f * even_half + p.infinity;
  }
};

struct OutputSide {
  static constexpr int size = 4;
  TENET_KERNEL_TARGET TENET_ALWAYS_INLINE static AtPoints expand(const Vector<float>* x) {
    return {x[0],
            x[0] + x[2],
            x[1] + x[3],
            x[0] + 4.0f * x[2],
            2.0f * x[1] + 8.0f * x[3],
            x[0] + 0.25f * x[2],
            0.5f * x[1] + 0.125f * x[3],
            x[3]};
  }
  TENET_KERNEL_TARGET TENET_ALWAYS_INLINE static void contract(const AtPoints& p, Vector<float>* x) {
    x[0] = p.zero + p.even + p.even2 + p.even_half;
    x[1] = p.odd + 2.0f * p.odd2 + 0.5f * p.odd_half;
    x[2] = p.even + 4.0f * p.even2 + 0.25f * p.even_half;
    x[3] = p.odd + 8.0f * p.odd2 + 0.125f * p.odd_half + p.infinity;
  }
};

// A line of pixels, `in_step` apart, becomes numbers at the points, `out_step` apart.
template <class Side>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE void expand_line(const float* in, int64_t in_step, float* out,
                                                         int64_t out_step) {
  Vector<float> x[Side::size];
#pragma GCC unroll 8
  for (int i = 0; i < Side::size; ++i) x[i] = load(in + i * in_step);
  const AtPoints p = Side::expand(x);
  store(out, p.zero);
  store(out + out_step, p.even + p.odd), store(out + 2 * out_step, p.even - p.odd);
  store(out + 3 * out_step, p.even2 + p.odd2), store(out + 4 * out_step, p.even2 - p.odd2);
  store(out + 5 * out_step, p.even_half + p.odd_half), store(out + 6 * out_step, p.even_half - p.odd_half);
  store(out + 7 * out_step, p.infinity);
}

// The way back.
template <class Side, bool add>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE void contract_line(const float* in, int64_t in_step, float* out,
                                                           int64_t out_step) {
  Vector<float> p[winograd_points], x[Side::size];
#pragma GCC unroll 8
  for (int i = 0; i < winograd_points; ++i) p[i] = load(in + i * in_step);
  Side::contract({p[0], p[1] + p[2], p[1] - p[2], p[3] + p[4], p[3] - p[4], p[5] + p[6], p[5] - p[6], p[7]}, x);
#pragma GCC unroll 8
  for (int i = 0; i < Side::size; ++i) store(out + i * out_step, add ? load(out + i * out_step) + x[i] : x[i]);
}

template <class Side>
TENET_KERNEL_TARGET TENET_NOINLINE void winograd_expand(const WinogradTiles& tiles, const float* plane,
                                                        float* numbers) {
  constexpr int w = lanes<float>, width = Side::size * w;
  const WinogradTiles t = tiles;
  float between[winograd_points * width];
  for (int64_t tile = 0; tile < t.rows * t.columns; ++tile, numbers += w) {
    const float* const in = plane + (tile / t.columns * t.pitch + tile % t.columns * w) * 4;
    for (int i = 0; i < width; i += w) expand_line<Side>(in + i, t.pitch, between + i, width);
    for (int i = 0; i < winograd_points; ++i) {
      expand_line<Side>(between + i * width, w, numbers + i * winograd_points * t.step, t.step);
    }
  }
}

template <class Side>
TENET_KERNEL_TARGET TENET_NOINLINE void winograd_contract(const WinogradTiles& tiles, const float* numbers,
                                                          float* plane) {
  constexpr int w = lanes<float>, width = winograd_points * w;
  const WinogradTiles t = tiles;
  float between[Side::size * width];
  for (int64_t tile = 0; tile < t.rows * t.columns; ++tile, numbers += w) {
    float* const out = plane + (tile / t.columns * t.pitch + tile % t.columns * w) * 4;
    for (int i = 0; i < winograd_points; ++i) {
      contract_line<Side, false>(numbers + i * t.step, winograd_points * t.step, between + i * w, width);
    }
    for (int i = 0; i < Side::size; ++i) contract_line<Side, true>(between + i * width, w, out + i * t.pitch, w);
  }
}

template <class Side>
inline constexpr WinogradSide winograd_side = {Side::size, winograd_expand<Side>, winograd_contract<Side>};

inline constexpr WinogradSides winograd_sides = {winograd_side<ImageSide>, winograd_side<FilterSide>,
                                                 winograd_side<OutputSide>};

}  // namespace TENET_KERNEL_NAMESPACE
}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#endif
