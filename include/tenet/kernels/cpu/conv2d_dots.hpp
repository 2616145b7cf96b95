// The weight gradient of float and double: dot products over runs of pixels, output channels by taps.
#pragma once

#include <tenet/kernels/cpu/conv2d_plan.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// dw = gradient with respect to w. A unit owns some channels and taps and sums over the batch, in its order. Where
/// that makes few units, each sums over a slice of the batch, and the slices are added up in their order.
template <class T>
TENET_NOINLINE void conv2d_backward_weight_dots(const Conv2dShape& shape, const T* x, const T* dy, T* dw) {
  const ConvKernels<T>& kernels = conv_kernels<T>();
  const int64_t parts = kernels.lanes / kernels.run;
  const Conv2dShape s = without_rows(shape, kernels.run);
  const ConvPlan plan = conv_plan(s, kernels.run, parts, s.oh);
  const int64_t in_group = s.c / s.groups, out_group = s.o / s.groups;
  const int64_t rows = kernels.dot_channels, cols = kernels.dot_taps, sums_size = rows * cols * kernels.lanes;
  const int64_t chunk = std::min<int64_t>(32, (plan.taps + cols - 1) / cols) * cols;  // taps of a unit
  const int64_t chunks = (plan.taps + chunk - 1) / chunk, blocks = (out_group + rows - 1) / rows;

  const bool copied = plan.image.copied || plan.output.copied;
  const int64_t image_size = s.c * plan.image.plane, output_size = s.o * plan.output.plane;
  const int64_t together = images_together(s.n, image_size + output_size, copied);
  // Images that stay in the first cache while a unit goes over its taps.
  const int64_t near = std::clamp<int64_t>(5120 / (rows * plan.output.plane + plan.image.plane), 1, s.n);
  // The runs of those images, the whole ones of all first.
  const int64_t whole = plan.whole / parts * parts, rest = plan.runs - whole, entries = near * plan.runs;
  int64_t* const dy_at = scratch<int64_t>(Scratch::conv_offsets, 3 * entries);
  int64_t *const x_at = dy_at + entries, *const mask_at = x_at + entries;
  for (int64_t image = 0; image < near; ++image) {
    for (int64_t r = 0; r < plan.runs; ++r) {
      const int64_t to = r < whole ? image * whole + r : near * whole + image * rest + r - whole;
      dy_at[to] = image * output_size + plan.y_at[r];
      x_at[to] = image * image_size + plan.x_at[r];
      mask_at[to] = plan.mask_at[r];
    }
  }
  const int64_t units = s.groups * blocks * chunks, wanted = 15 / units + 1, size = s.o * plan.taps;
  const int64_t slice = ((together - 1) / near / wanted + 1) * near, slices = (together - 1) / slice + 1;
  T* const totals = slices > 1 ? scratch<T>(Scratch::conv_weights, slices * size) : dw;
  const int64_t unit_cost = slice * plan.runs * kernels.run * rows * chunk;
  for (int64_t first = 0; first < s.n; first += together) {
    const int64_t images = std::min(together, s.n - first);
    const T *from_x = x + first * s.c * s.h * s.w, *from_dy = dy + first * s.o * s.oh * s.ow;
    T* copy = copied ? scratch<T>(Scratch::conv_images, images * (image_size + output_size)) : nullptr;
    if (plan.image.copied) {
      copy_planes(plan.image, images * s.c, from_x, s.h, s.w, s.pad_h, s.pad_w, copy);
      from_x = copy;
    }
    if (plan.output.copied) {
      copy_planes(plan.output, images * s.o, from_dy, s.oh, s.ow, 0, 0, copy + images * image_size);
      from_dy = copy + images * image_size;
    }
    const int64_t all = ((images - 1) / slice + 1) * units;
    parallel_for(all, (int64_t{1} << 20) / unit_cost + 1, [&](int64_t begin, int64_t end) {
      T* const sums = scratch<T>(Scratch::conv_sums, chunk / cols * sums_size);
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t first_tap = unit % chunks * chunk, channel = unit / chunks % blocks * rows;
        const int64_t g = unit / chunks / blocks % s.groups, begin_image = unit / units * slice;
        const int64_t last_tap = std::min(plan.taps, first_tap + chunk);
        const int64_t end_image = std::min(images, begin_image + slice);
        ConvDot<T> d{};
        d.masks = run_mask_data<T>();
        std::fill_n(sums, chunk / cols * sums_size, T(0));
        for (int64_t image = begin_image; image < end_image; image += near) {
          const int64_t count = std::min(near, end_image - image);
          d.whole = {count * whole, dy_at, x_at, mask_at};
          d.masked = {count * rest, dy_at + near * whole, x_at + near * whole, mask_at + near * whole};
          for (int64_t i = 0; i < rows; ++i) {  // the last block repeats its last channel
            const int64_t o = g * out_group + std::min(channel + i, out_group - 1);
            d.dy[i] = from_dy + image * output_size + o * plan.output.plane;
          }
          const T* from = from_x + image * image_size + g * in_group * plan.image.plane;
          d.sums = sums;
          for (int64_t tap = first_tap; tap < last_tap; tap += cols, d.sums += sums_size) {
            for (int64_t j = 0; j < cols; ++j) d.x[j] = from + plan.tap_at[std::min(tap + j, plan.taps - 1)];
            kernels.dot(d);
          }
        }
        for (int64_t tap = first_tap; tap < last_tap; tap += cols) {
          T dots[64];
          kernels.sum_lanes(sums + (tap - first_tap) / cols * sums_size, rows * cols, dots);
          for (int64_t i = 0; i < rows && channel + i < out_group; ++i) {
            T* out = totals + unit / units * size + (g * out_group + channel + i) * plan.taps;
            for (int64_t j = 0; j < cols && tap + j < plan.taps; ++j) {
              out[tap + j] = first == 0 ? dots[i * cols + j] : out[tap + j] + dots[i * cols + j];
            }
          }
        }
      }
    });
  }
  if (slices == 1) return;
  std::copy_n(totals, size, dw);
  for (int64_t i = size; i < slices * size; ++i) dw[i % size] += totals[i];
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
