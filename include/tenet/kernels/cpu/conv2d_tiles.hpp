// Convolution of float and double with register tiles: output channels by runs of pixels.
#pragma once

#include <tenet/kernels/cpu/conv2d_plan.hpp>
#include <tenet/kernels/cpu/gemm_pack.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// y = conv2d(x, w) + bias.
template <class T>
TENET_NOINLINE void conv2d_forward_tiles(const Conv2dShape& shape, const T* x, const T* w, const T* bias, T* y) {
  const ConvKernels<T>& kernels = conv_kernels<T>();
  const int64_t tile_runs = 2 * kernels.lanes / kernels.run;
  const Conv2dShape s = without_rows(shape, kernels.run);
  const int64_t in_group = s.c / s.groups, out_group = s.o / s.groups, out_plane = s.oh * s.ow;
  // What a chunk of rows reads of the image should stay in the cache over all strips.
  const int64_t row_elements = in_group * s.stride_h * image_layout(s, kernels.run).pitch;
  const ConvPlan plan = conv_plan(s, kernels.run, tile_runs, std::clamp<int64_t>(32768 / row_elements, 1, s.oh));
  const int64_t strip = kernels.heights.strip(out_group), strips = (out_group + strip - 1) / strip;
  const int64_t strip_size = panel_size(gemm_kernels<T>(), plan.taps, strip);
  T* const weights = scratch<T>(Scratch::conv_weights, s.groups * strips * strip_size);
  parallel_for(s.groups, (int64_t{1} << 15) / (out_group * plan.taps) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      pack_panels<T>(gemm_kernels<T>(), plan.taps, out_group, {w + g * out_group * plan.taps, 1, plan.taps},
                     weights + g * strips * strip_size, strip);
    }
  });

  const int64_t chunks = (plan.runs - 1) / plan.chunk_runs + 1;
  const int64_t together = images_together(s.n, s.c * plan.image.plane, plan.image.copied);
  const int64_t unit_cost = plan.chunk_runs * kernels.run * out_group * plan.taps;
  for (int64_t first = 0; first < s.n; first += together) {
    const int64_t images = std::min(together, s.n - first);
    const T* from = x + first * s.c * s.h * s.w;
    if (plan.image.copied) {
      T* copy = scratch<T>(Scratch::conv_images, images * s.c * plan.image.plane);
      copy_planes(plan.image, images * s.c, from, s.h, s.w, s.pad_h, s.pad_w, copy);
      from = copy;
    }
    parallel_for(images * s.groups * chunks, (int64_t{1} << 20) / unit_cost + 1, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t g = unit / chunks % s.groups, image = unit / chunks / s.groups;
        const int64_t first_run = unit % chunks * plan.chunk_runs;
        const int64_t last_run = std::min(plan.runs, first_run + plan.chunk_runs);
        ConvTiles<T> t{};
        t.taps = plan.taps;
        t.weights_step = strip;
        t.image = from + (image * s.c + g * in_group) * plan.image.plane;
        t.offsets = plan.tap_at;
        t.tiles = (last_run - first_run) / tile_runs;
        t.from = plan.x_at + first_run;
        t.to = plan.out_at + first_run;
        t.out_row = out_plane;
        t.valid = plan.valid;
        for (int64_t i = 0; i < out_group;) {
          const int64_t height = kernels.heights.fit(std::min(strip - i % strip, out_group - i));
          t.weights = weights + (g * strips + i / strip) * strip_size + i % strip;
          t.out = y + ((first + image) * s.o + g * out_group + i) * out_plane;
          t.bias = bias ? bias + g * out_group + i : nullptr;
          kernels.tiles[height - 1](t);
          i += height;
        }
      }
    });
  }
}

/// Whether the gradient with respect to x is well computed as a convolution of dy: steps of one pixel, and few outputs
/// that the padding adds.
inline bool turns_around(const Conv2dShape& s) {
  return s.stride_h == 1 && s.stride_w == 1 && s.pad_h <= s.dil_h * (s.kh - 1) && s.pad_w <= s.dil_w * (s.kw - 1) &&
         s.h * s.w <= s.oh * s.ow + s.oh * s.ow / 4;
}

/// dx = conv2d(dy, w with inputs and outputs exchanged and its taps reversed), computed by `forward`.
template <class T>
void conv2d_backward_data_turned(const Conv2dShape& s, const T* dy, const T* w, T* dx,
                                 void (*forward)(const Conv2dShape&, const T* x, const T* w, const T* bias, T* y)) {
  const int64_t in_group = s.c / s.groups, out_group = s.o / s.groups, taps = s.kh * s.kw;
  T* const turned = scratch<T>(Scratch::conv_turned, s.o * in_group * taps);
  parallel_for(s.c, (int64_t{1} << 15) / (out_group * taps) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const T* from = w + (c / in_group * out_group * in_group + c % in_group) * taps;
      T* to = turned + c * out_group * taps;
      for (int64_t o = 0; o < out_group; ++o, from += in_group * taps, to += taps) {
        std::reverse_copy(from, from + taps, to);
      }
    }
  });
  Conv2dShape back = s;
  back.c = s.o, back.h = s.oh, back.w = s.ow;
  back.o = s.c, back.oh = s.h, back.ow = s.w;
  back.pad_h = s.dil_h * (s.kh - 1) - s.pad_h, back.pad_w = s.dil_w * (s.kw - 1) - s.pad_w;
  forward(back, dy, turned, nullptr, dx);
}

/// dx = gradient with respect to x: each tap adds its share to the pixels it read, a strip of channels at a time.
template <class T>
TENET_NOINLINE void conv2d_backward_data_tiles(const Conv2dShape& shape, const T* dy, const T* w, T* dx) {
  const ConvKernels<T>& kernels = conv_kernels<T>();
  const int64_t tile_runs = 2 * kernels.lanes / kernels.run;
  const Conv2dShape s = without_rows(shape, kernels.run);
  const ConvPlan plan = conv_plan(s, kernels.run, tile_runs, s.oh);
  const int64_t in_group = s.c / s.groups, out_group = s.o / s.groups, in_plane = s.h * s.w, taps = s.kh * s.kw;
  const int64_t strip = kernels.heights.strip(in_group), strips = (in_group + strip - 1) / strip;
  const int64_t strip_size = panel_size(gemm_kernels<T>(), taps, strip);
  // Weights as [out channel][strip][tap][in channel].
  T* const weights = scratch<T>(Scratch::conv_weights, s.o * strips * strip_size);
  parallel_for(s.o, (int64_t{1} << 15) / (in_group * taps) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      pack_panels<T>(gemm_kernels<T>(), taps, in_group, {w + o * plan.taps, 1, taps}, weights + o * strips * strip_size,
                     strip);
    }
  });
  int64_t* const channel_at = scratch<int64_t>(Scratch::conv_offsets, out_group);
  for (int64_t i = 0; i < out_group; ++i) channel_at[i] = i * plan.output.plane;

  const int64_t together = images_together(s.n, s.o * plan.output.plane, plan.output.copied);
  const int64_t unit_cost = plan.runs * kernels.run * out_group * strip * taps;
  for (int64_t first = 0; first < s.n; first += together) {
    const int64_t images = std::min(together, s.n - first);
    const T* from = dy + first * s.o * s.oh * s.ow;
    if (plan.output.copied) {
      T* copy = scratch<T>(Scratch::conv_images, images * s.o * plan.output.plane);
      copy_planes(plan.output, images * s.o, from, s.oh, s.ow, 0, 0, copy);
      from = copy;
    }
    parallel_for(images * s.groups * strips, (int64_t{1} << 20) / unit_cost + 1, [&](int64_t begin, int64_t end) {
      T* const copy = plan.image.copied ? scratch<T>(Scratch::conv_sums, strip * plan.image.plane) : nullptr;
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t i = unit % strips, g = unit / strips % s.groups, image = unit / strips / s.groups;
        const int64_t rows = std::min(strip, in_group - i * strip);
        T* const out = dx + ((first + image) * s.c + g * in_group + i * strip) * in_plane;
        T* const sums = copy ? copy : out;
        std::fill_n(sums, rows * plan.image.plane, T(0));
        ConvTiles<T> t{};
        t.taps = out_group;
        t.weights_step = strips * strip_size;
        t.image = from + (image * s.o + g * out_group) * plan.output.plane;
        t.offsets = channel_at;
        t.tiles = plan.runs / tile_runs;
        t.unmasked = plan.whole / tile_runs;
        t.masks = run_mask_data<T>();
        t.mask = plan.mask_at;
        t.from = plan.y_at;
        t.to = plan.x_at;
        t.out_row = plan.image.plane;
        t.add = true;
        for (int64_t tap = 0; tap < taps; ++tap) {
          for (int64_t row = 0; row < rows;) {
            const int64_t height = kernels.heights.fit(rows - row);
            t.weights = weights + (g * out_group * strips + i) * strip_size + tap * strip + row;
            t.out = sums + row * plan.image.plane + plan.tap_at[tap];
            kernels.tiles[height - 1](t);
            row += height;
          }
        }
        for (int64_t c = 0; copy && c < rows; ++c) {
          copy_plane_back(plan.image, copy + c * plan.image.plane, s.h, s.w, s.pad_h, s.pad_w, out + c * in_plane);
        }
      }
    });
  }
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
