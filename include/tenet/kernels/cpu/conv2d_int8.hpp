// Convolution of 8-bit integers: the image becomes planes of units, each a few neighbouring channels of a pixel in the
// four bytes that one instruction multiplies, and is read as conv2d_tiles reads it.
#pragma once

#include <tenet/kernels/cpu/conv2d_plan.hpp>
#include <tenet/kernels/cpu/gemm_int8.hpp>
#include <tenet/kernels/cpu/quantize.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Kernels for units of `depth` channels, each of `bits` bits.
struct ConvUnitKernels {
  int64_t lanes, run;  // units of a vector, and of a run of pixels
  int depth, bits;
  TileHeights heights;
  void (*tiles[TileHeights::most])(const ConvTiles<std::uint32_t>&);  // [height - 1]
  std::uint32_t (*gather)(const int8_t* from, int64_t step, int64_t left);
};

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#define TENET_KERNEL_FILE <tenet/kernels/cpu/conv2d_int8_body.hpp>
#include <tenet/kernels/cpu/for_each_isa.hpp>
#undef TENET_KERNEL_FILE

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

namespace detail {

// Units of the channels of a group.
inline int64_t unit_count(const Conv2dShape& s, int64_t depth) { return (s.c / s.groups + depth - 1) / depth; }

// U, once S is known: nothing is compiled for a program that uses none of it.
template <class S, class U>
using unit_for = std::conditional_t<std::is_same_v<S, int8_t>, U, void>;

// Those for the instructions in use.
template <class S>
const ConvUnitKernels& conv_unit_kernels() {
  using Pair = unit_for<S, ShortPair>;
#if TENET_X86
  if (has_dots(Dots::int8)) return avx512::conv_unit_kernels<unit_for<S, SignedQuad>, unit_for<S, UnsignedQuad>>;
  if (isa() == Isa::avx512) return avx512::conv_unit_kernels<Pair, Pair>;
  if (isa() == Isa::avx2) return avx2::conv_unit_kernels<Pair, Pair>;
#endif
  return baseline::conv_unit_kernels<Pair, Pair>;
}

// n pixels of `depth` channels as integers in one unit each.
template <int depth>
struct MakeUnits {
  TENET_ALWAYS_INLINE static void run(int64_t n, std::uint32_t* out, const float* in, int64_t plane, QuantizeOptions o,
                                      std::uint32_t* most) {
    TENET_NO_CONTRACTION
    const float low = float(o.low - o.zero_point), high = float(o.high - o.zero_point), inverse = o.inverse;
    const std::uint32_t start = std::uint32_t(o.zero_point) - bits(rounding);
    std::uint32_t greatest = *most;
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) {
      std::uint32_t unit = 0;
#pragma GCC unroll 4
      for (int e = 0; e < depth; ++e) {
        const float v = in[e * plane + i];
        const std::uint32_t magnitude = bits(v) & 0x7fffffffu;
        greatest = magnitude > greatest ? magnitude : greatest;
        float x = v * inverse;
        x = x > low ? x : low;
        x = x < high ? x : high;
        unit |= (bits(x + rounding) + start) << (e * shift);
      }
      out[i] = unit;
    }
    *most = greatest;
  }
  // Of integers already.
  TENET_ALWAYS_INLINE static void run(int64_t n, std::uint32_t* out, const uint8_t* in, int64_t plane, QuantizeOptions,
                                      std::uint32_t*) {
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) {
      std::uint32_t unit = 0;
#pragma GCC unroll 4
      for (int e = 0; e < depth; ++e) unit |= std::uint32_t(in[e * plane + i]) << (e * shift);
      out[i] = unit;
    }
  }
  static constexpr int shift = depth == 2 ? 16 : 8;  // as in units of two and four elements
};

template <class T>
void make_units(int64_t n, std::uint32_t* out, const T* in, int64_t plane, int64_t channels, int bits,
                const QuantizeOptions& o, std::uint32_t* most) {
  std::uint32_t* const to = out;
  if (bits == 16 && channels >= 2) return vectorized<MakeUnits<2>>(n, to, in, plane, o, most);
  if (bits == 8 && channels >= 4) return vectorized<MakeUnits<4>>(n, to, in, plane, o, most);
  std::fill_n(to, n, 0u);
  for (int64_t e = 0; e < channels; ++e) {
    std::uint32_t part[128];
    for (int64_t i = 0; i < n; i += 128) {
      const int64_t count = std::min<int64_t>(128, n - i);
      vectorized<MakeUnits<1>>(count, static_cast<std::uint32_t*>(part), in + e * plane + i, plane, o, most);
      for (int64_t j = 0; j < count; ++j) to[i + j] |= part[j] << (e * bits);
    }
  }
}

template <class C>
struct ScaleRow {
  TENET_ALWAYS_INLINE static void run(int64_t n, C* out, const std::uint32_t* sums, std::uint32_t sum_bias, float scale,
                                      float bias, int32_t zero_point) {
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) out[i] = scaled<C>(sums[i] + sum_bias, scale, bias, zero_point);
  }
};

// The plane of units of some channels, with its padding: `pad` outside the image.
template <class T>
void unit_plane(const ImageLayout& layout, const Conv2dShape& s, const T* in, int64_t channels, int bits,
                const QuantizeOptions& o, std::uint32_t pad, std::uint32_t* out, std::uint32_t* most) {
  std::uint32_t* const row_units = layout.phases == 1 ? nullptr : scratch<std::uint32_t>(Scratch::conv_widened, s.w);
  for (int64_t y = 0; y < layout.rows; ++y, out += layout.pitch) {
    const int64_t row = y - s.pad_h;
    std::fill_n(out, layout.pitch, pad);
    if (row < 0 || row >= s.h) continue;
    const T* from = in + row * s.w;
    if (layout.phases == 1) {
      const int64_t n = std::min(s.w, layout.width - s.pad_w);
      if (n > 0) make_units(n, out + s.pad_w, from, s.h * s.w, channels, bits, o, most);
      continue;
    }
    make_units(s.w, row_units, from, s.h * s.w, channels, bits, o, most);
    for (int64_t x = 0; x < s.w; ++x) {
      const int64_t place = x + s.pad_w, q = place / layout.phases;
      if (q < layout.width) out[place % layout.phases * layout.width + q] = row_units[x];
    }
  }
}

}  // namespace detail

/// Units that a weight [o, c / groups, kh, kw] takes when it is packed. See int8_panels_kind().
template <class S = int8_t>
int64_t conv2d_int8_weight_size(const Conv2dShape& s) {
  const ConvUnitKernels& kernels = detail::conv_unit_kernels<S>();
  const int64_t out = s.o / s.groups, strip = kernels.heights.strip(out), units = detail::unit_count(s, kernels.depth);
  return s.groups * ((out + strip - 1) / strip) * strip * units * s.kh * s.kw;
}

/// Packs a weight [o, c / groups, kh, kw]: [group][strip][unit][ky][kx][channel of the strip].
template <class S>
void pack_conv2d_int8_weight(const Conv2dShape& s, const S* w, std::uint32_t* out) {
  const ConvUnitKernels& kernels = detail::conv_unit_kernels<S>();
  const int64_t group = s.o / s.groups, strip = kernels.heights.strip(group), in = s.c / s.groups, taps = s.kh * s.kw;
  const int64_t units = detail::unit_count(s, kernels.depth);
  for (int64_t o = 0; o < s.o;) {
    const int64_t rows = std::min(strip, group - o % group);
    for (int64_t unit = 0; unit < units; ++unit) {
      for (int64_t tap = 0; tap < taps; ++tap, out += strip) {
        const S* from = w + (o * in + unit * kernels.depth) * taps + tap;
        for (int64_t i = 0; i < strip; ++i) {
          out[i] = i < rows ? kernels.gather(from + i * in * taps, taps, in - unit * kernels.depth) : 0;
        }
      }
    }
    o += rows;
  }
}

/// y = what `output` makes of the sums of conv2d(q, w), its columns being the output channels; w is a packed weight of
/// int8, and q is x: quantized to uint8 by `input` where it is float, else of uint8, with the zero point of `input` in
/// the padding. Sums are exact for c / groups * kh * kw <= 65536. y is of float, int8 or uint8. Whether x is finite.
/// Sizes are not 0.
template <class S, class X, class C>
bool conv2d_int8(const Conv2dShape& shape, const X* x, const QuantizeOptions& input, const std::uint32_t* weights,
                 const ScaleOptions& output, C* y) {
  const ConvUnitKernels& kernels = detail::conv_unit_kernels<S>();
  const int64_t in = shape.c / shape.groups, depth = kernels.depth, units = detail::unit_count(shape, depth);
  const int64_t run = kernels.run, tile_runs = 2 * kernels.lanes / run;
  Conv2dShape s = without_rows(shape, run);  // with units in place of channels
  s.c = units * s.groups;
  const ImageLayout layout = image_layout(s, run);
  const int64_t row_elements = units * s.stride_h * layout.pitch;
  const int64_t rows = std::clamp<int64_t>(32768 / row_elements, 1, s.oh);
  const ConvPlan plan = conv_plan(s, run, tile_runs, rows);
  const int64_t group = s.o / s.groups, strip = kernels.heights.strip(group), strips = (group + strip - 1) / strip;
  const int64_t out_plane = s.oh * s.ow, chunks = (plan.runs - 1) / plan.chunk_runs + 1;
  std::uint32_t pad = 0;
  for (int e = 0; e < depth; ++e) pad |= std::uint32_t(input.zero_point) << (e * kernels.bits);

  std::atomic<bool> finite{true};
  const int64_t together = images_together(s.n, s.c * layout.plane, true);
  for (int64_t first = 0; first < s.n; first += together) {
    const int64_t images = std::min(together, s.n - first);
    std::uint32_t* const planes = scratch<std::uint32_t>(Scratch::conv_images, images * s.c * layout.plane);
    parallel_for(images * s.c, (int64_t{1} << 13) / layout.plane + 1, [&](int64_t begin, int64_t end) {
      std::uint32_t most = 0;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = first + i / s.c, g = i % s.c / units, channel = i % units * depth;
        detail::unit_plane(layout, s, x + (image * shape.c + g * in + channel) * s.h * s.w,
                           std::min(depth, in - channel), kernels.bits, input, pad, planes + i * layout.plane, &most);
      }
      if (most >= 0x7f800000u) finite = false;
    });
    const int64_t unit_cost = plan.chunk_runs * run * group * plan.taps;
    parallel_for(images * s.groups * chunks, (int64_t{1} << 20) / unit_cost + 1, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t g = piece / chunks % s.groups, image = piece / chunks / s.groups, chunk = piece % chunks;
        const int64_t first_run = chunk * plan.chunk_runs, last_run = std::min(plan.runs, first_run + plan.chunk_runs);
        const int64_t top = chunk * rows * s.ow, pixels = std::min(out_plane, top + rows * s.ow) - top;
        std::uint32_t* const sums = scratch<std::uint32_t>(Scratch::conv_sums, TileHeights::most * pixels);
        ConvTiles<std::uint32_t> t{};
        t.taps = plan.taps;
        t.weights_step = strip;
        t.image = planes + (image * s.c + g * units) * layout.plane;
        t.offsets = plan.tap_at;
        t.tiles = (last_run - first_run) / tile_runs;
        t.from = plan.x_at + first_run;
        t.to = plan.out_at + first_run;
        t.out_row = pixels;
        t.valid = plan.valid;
        t.out = sums - top;
        for (int64_t i = 0; i < group;) {
          const int64_t height = kernels.heights.fit(std::min(strip - i % strip, group - i));
          t.weights = weights + (g * strips + i / strip) * strip * plan.taps + i % strip;
          kernels.tiles[height - 1](t);
          for (int64_t r = 0; r < height; ++r) {
            const int64_t o = g * group + i + r;
            const std::uint32_t sum_bias = output.sum_bias ? std::uint32_t(output.sum_bias[o]) : 0;
            vectorized<detail::ScaleRow<C>>(pixels, y + ((first + image) * s.o + o) * out_plane + top,
                                            static_cast<const std::uint32_t*>(sums + r * pixels), sum_bias,
                                            output.scale[output.scale_columns ? o : 0],
                                            output.bias ? output.bias[o] : 0.0f, output.zero_point);
          }
          i += height;
        }
      }
    });
  }
  return finite;
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
