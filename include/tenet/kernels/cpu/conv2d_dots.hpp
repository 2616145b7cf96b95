// The weight gradient of float and double: dot products over runs of pixels, output channels by taps.
#pragma once

#include <tenet/kernels/cpu/conv2d_plan.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// dw = gradient with respect to w. A unit owns some channels and taps and sums over the whole batch, in its order.
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
  const int64_t near = std::max<int64_t>(1, 5120 / (rows * plan.output.plane + plan.image.plane));
  const int64_t unit_cost = s.n * plan.runs * kernels.run * rows * chunk;
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
    parallel_for(s.groups * blocks * chunks, (int64_t{1} << 20) / unit_cost + 1, [&](int64_t begin, int64_t end) {
      T* const sums = scratch<T>(Scratch::conv_sums, chunk / cols * sums_size);
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t g = unit / chunks / blocks, first_tap = unit % chunks * chunk;
        const int64_t channel = unit / chunks % blocks * rows, last_tap = std::min(plan.taps, first_tap + chunk);
        ConvDot<T> d{};
        d.dy_image = output_size;
        d.x_image = image_size;
        d.dy_at = plan.y_at;
        d.x_at = plan.x_at;
        d.whole = plan.whole / parts * parts;
        d.runs = plan.runs;
        d.masks = run_mask_data<T>();
        d.mask_at = plan.mask_at;
        std::fill_n(sums, chunk / cols * sums_size, T(0));
        for (int64_t image = 0; image < images; image += near) {
          d.images = std::min(near, images - image);
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
          T whole[64];
          kernels.sum_lanes(sums + (tap - first_tap) / cols * sums_size, rows * cols, whole);
          for (int64_t i = 0; i < rows && channel + i < out_group; ++i) {
            T* out = dw + (g * out_group + channel + i) * plan.taps;
            for (int64_t j = 0; j < cols && tap + j < plan.taps; ++j) {
              out[tap + j] = first == 0 ? whole[i * cols + j] : out[tap + j] + whole[i * cols + j];
            }
          }
        }
      }
    });
  }
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
