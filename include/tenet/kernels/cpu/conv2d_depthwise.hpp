// Depthwise convolutions, in which each channel of the image gives an output channel or two, in float.
//
// An image's plane is copied with its padding. Output pixel j, counted by the pitch of that copy, then reads pixel
// j + offset of each tap: one long loop over the plane, whose results between the rows are dropped.
#pragma once

#include <tenet/kernels/cpu/conv2d_dots.hpp>
#include <tenet/kernels/cpu/finite.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Whether a convolution takes the kernels below.
inline bool is_depthwise(const Conv2dShape& s) {
  return s.groups == s.c && s.o <= 2 * s.c && s.stride_h == 1 && s.stride_w == 1 && s.kh * s.kw <= 64;
}

namespace detail {

// out[j] = start + sum over taps of weight * in[offset + j].
struct DepthwiseForward {
  TENET_ALWAYS_INLINE static void run(int64_t n, const float* in, int64_t taps, const int64_t* offset, const float* w,
                                      float start, float* out) {
    TENET_LOOP
    for (int64_t j = 0; j < n; ++j) out[j] = start;
    int64_t t = 0;
    for (; t + 9 <= taps; t += 9, offset += 9, w += 9) {
      const float w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3], w4 = w[4], w5 = w[5], w6 = w[6], w7 = w[7], w8 = w[8];
      const float *a = in + offset[0], *b = in + offset[1], *c = in + offset[2], *d = in + offset[3],
                  *e = in + offset[4], *f = in + offset[5], *g = in + offset[6], *h = in + offset[7],
                  *i = in + offset[8];
      TENET_LOOP
      for (int64_t j = 0; j < n; ++j) {
        const float top = w0 * a[j] + w1 * b[j] + w2 * c[j], middle = w3 * d[j] + w4 * e[j] + w5 * f[j];
        out[j] += (top + middle) + (w6 * g[j] + w7 * h[j] + w8 * i[j]);
      }
    }
    for (; t < taps; ++t, ++offset, ++w) {
      const float w0 = *w;
      const float* a = in + *offset;
      TENET_LOOP
      for (int64_t j = 0; j < n; ++j) out[j] += w0 * a[j];
    }
  }
};

// sums[tap] += sum of dy[j] * in[offset + j], for n a multiple of 8.
struct DepthwiseWeight {
  static constexpr Isa widest = Isa::avx2;
  typedef float Eight __attribute__((vector_size(32)));

  template <int Taps>
  TENET_ALWAYS_INLINE static void some(int64_t n, const float* dy, const float* in, const int64_t* offset,
                                       float* sums) {
    Eight sum[Taps] = {};
    for (int64_t j = 0; j < n; j += 8) {
      Eight g;
      __builtin_memcpy(&g, dy + j, sizeof g);
#pragma GCC unroll 9
      for (int t = 0; t < Taps; ++t) {
        Eight x;
        __builtin_memcpy(&x, in + offset[t] + j, sizeof x);
        sum[t] += g * x;
      }
    }
    for (int t = 0; t < Taps; ++t) {
      const Eight& s = sum[t];
      sums[t] += ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    }
  }
  TENET_ALWAYS_INLINE static void run(int64_t n, const float* dy, const float* in, int64_t taps, const int64_t* offset,
                                      float* sums) {
    int64_t t = 0;
    for (; t + 9 <= taps; t += 9) some<9>(n, dy, in, offset + t, sums + t);
    for (; t < taps; ++t) some<1>(n, dy, in, offset + t, sums + t);
  }
};

// What one plane looks like, and where its taps are.
struct DepthwisePlan {
  static constexpr int64_t spare = 8;  // pixels after a plane that vectors may read
  int64_t pitch, plane;                // of the padded image, spare pixels included
  int64_t taps, pixels;                // pixels: of the output by that pitch, a multiple of 8
  int64_t offset[64];

  explicit DepthwisePlan(const Conv2dShape& s)
      : pitch(s.w + 2 * s.pad_w),
        plane((s.h + 2 * s.pad_h) * pitch + spare),
        taps(s.kh * s.kw),
        pixels(((s.oh - 1) * pitch + s.ow + 7) / 8 * 8) {
    for (int64_t t = 0; t < taps; ++t) offset[t] = t / s.kw * s.dil_h * pitch + t % s.kw * s.dil_w;
  }

  // Copies a plane [h, w] between zeros that are already there.
  void copy(const Conv2dShape& s, const float* from, float* to) const {
    to += s.pad_h * pitch + s.pad_w;
    for (int64_t row = 0; row < s.h; ++row) std::copy_n(from + row * s.w, s.w, to + row * pitch);
  }
};

}  // namespace detail

/// y = conv2d(x, w) + bias, where is_depthwise.
TENET_NOINLINE inline void conv2d_forward_depthwise(const Conv2dShape& s, const float* x, const float* w,
                                                    const float* bias, float* y) {
  const detail::DepthwisePlan plan(s);
  const int64_t together = s.o / s.c, work = plan.pixels * plan.taps * together;
  parallel_for(s.n * s.c, (int64_t{1} << 18) / work + 1, [&](int64_t begin, int64_t end) {
    float* const in = scratch<float>(Scratch::conv_images, plan.plane + plan.pixels);
    float* const out = in + plan.plane;
    std::fill_n(in, plan.plane, 0.0f);
    for (int64_t i = begin; i < end; ++i) {
      plan.copy(s, x + i * s.h * s.w, in);
      for (int64_t o = i % s.c * together; o < (i % s.c + 1) * together; ++o) {
        vectorized<detail::DepthwiseForward>(plan.pixels, static_cast<const float*>(in), plan.taps, &plan.offset[0],
                                             w + o * plan.taps, bias ? bias[o] : 0.0f, out);
        float* to = y + (i / s.c * s.o + o) * s.oh * s.ow;
        for (int64_t row = 0; row < s.oh; ++row) std::copy_n(out + row * plan.pitch, s.ow, to + row * s.ow);
      }
    }
  });
}

/// dw = gradient with respect to w, where is_depthwise: a unit owns a channel and sums over the batch in its order.
/// Where a sum is not finite, perhaps because of a pixel between the rows, all are computed anew without those.
TENET_NOINLINE inline void conv2d_backward_weight_depthwise(const Conv2dShape& s, const float* x, const float* dy,
                                                            float* dw) {
  const detail::DepthwisePlan plan(s);
  const int64_t together = s.o / s.c, work = s.n * plan.pixels * plan.taps * together;
  parallel_for(s.c, (int64_t{1} << 18) / work + 1, [&](int64_t begin, int64_t end) {
    float* const in = scratch<float>(Scratch::conv_images, plan.plane + plan.pixels);
    float* const gradient = in + plan.plane;  // zero between the rows
    std::fill_n(in, plan.plane + plan.pixels, 0.0f);
    std::fill(dw + begin * together * plan.taps, dw + end * together * plan.taps, 0.0f);
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t image = 0; image < s.n; ++image) {
        plan.copy(s, x + (image * s.c + i) * s.h * s.w, in);
        for (int64_t o = i * together; o < (i + 1) * together; ++o) {
          const float* from = dy + (image * s.o + o) * s.oh * s.ow;
          for (int64_t row = 0; row < s.oh; ++row) {
            std::copy_n(from + row * s.ow, s.ow, gradient + row * plan.pitch);
          }
          vectorized<detail::DepthwiseWeight>(plan.pixels, static_cast<const float*>(gradient),
                                              static_cast<const float*>(in), plan.taps, &plan.offset[0],
                                              dw + o * plan.taps);
        }
      }
    }
  });
  if (!all_finite(s.o * plan.taps, dw)) conv2d_backward_weight_dots(s, x, dy, dw);
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
