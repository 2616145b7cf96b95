// 5 x 5 convolutions of small images in float by Winograd's minimal filtering F(4 x 4, 5 x 5): a sixth of the
// multiplications, in the output and in both gradients.
//
// Tiles of 4 x 4 outputs, each from 8 x 8 pixels, become 64 numbers a channel; 64 matrix products join them. As many
// images as vectors have lanes are transformed at once.
// An infinity or NaN spreads to its tile: results with one are worth nothing.
//
// Errors stay below winograd_error (conv2d_winograd.hpp). Typical are 2e-6 (outputs), 3e-6 (gradients of images) and
// 5e-6 (of filters) of the results' root mean square.
#pragma once

#include <tenet/kernels/cpu/conv2d_reference.hpp>
#include <tenet/kernels/cpu/finite.hpp>
#include <tenet/kernels/cpu/gemm.hpp>
#include <tenet/kernels/cpu/winograd_points.hpp>

#include <algorithm>
#include <atomic>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace detail {

// out[count][lanes] from in[planes][count], planes `step` apart; missing planes are zero.
TENET_NOINLINE inline void to_lanes(const GemmKernels<float>& kernels, int64_t count, const float* in, int64_t step,
                                    int64_t planes, float* out) {
  const int64_t lanes = kernels.lanes;
  if (planes == lanes) return kernels.transpose_rows(count, in, step, out, lanes);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < lanes; ++j) out[i * lanes + j] = j < planes ? in[j * step + i] : 0.0f;
  }
}

// The way back.
TENET_NOINLINE inline void from_lanes(const GemmKernels<float>& kernels, int64_t count, const float* in, int64_t planes,
                                      float* out, int64_t step) {
  const int64_t lanes = kernels.lanes;
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) kernels.transpose_rows(planes, in + i * lanes, lanes, out + i, step);
  for (; i < count; ++i) {
    for (int64_t j = 0; j < planes; ++j) out[j * step + i] = in[i * lanes + j];
  }
}

// One side of a convolution: images of `channels` planes h x w. A plane of tiles starts pad before the image. Images
// are taken in groups of as many as there are lanes.
struct WinogradPlanes {
  const WinogradSide& side;
  int64_t n, channels, h, w, pad_h, pad_w;
  int64_t rows, columns;  // of tiles
  const GemmKernels<float>& kernels = gemm_kernels<float>();
  int64_t lanes = kernels.lanes, group = rows * columns * lanes, groups = (n + lanes - 1) / lanes;
  int64_t width = 4 * columns + side.size - 4, height = 4 * rows + side.size - 4;
  int64_t pitch = width * lanes, pixels = height * pitch;
  bool whole = height * width == h * w;  // the plane is the image, without padding

  // Numbers lie as [64][channels][groups][tiles][lanes]. No even number of cache lines between the 64: it keeps them
  // apart.
  int64_t step(int64_t count) const { return (channels * count * group) | 16; }
  int64_t size(int64_t count) const { return winograd_numbers * step(count); }

  // f(plane of tiles, index of the first image's plane, its numbers, images) for the channels of some groups.
  template <class F>
  void each_plane(int64_t first, int64_t count, const F& f) const {
    const int64_t all = count * channels;
    parallel_for(all, even_grain(all, (int64_t{1} << 14) / pixels + 1), [&](int64_t begin, int64_t end) {
      float* const plane = scratch<float>(Scratch::conv_sums, pixels);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = (first + i / channels) * lanes, channel = i % channels;
        f(plane, image * channels + channel, (channel * count + i / channels) * group, std::min(lanes, n - image));
      }
    });
  }
  // f(pixel of the image, of the plane of tiles, count) for runs of pixels that lie side by side in both.
  template <class F>
  void each_run(const F& f) const {
    const int64_t runs = whole ? 1 : h, length = h * w / runs;
    for (int64_t y = 0; y < runs; ++y) f(y * length, (y + pad_h) * pitch + pad_w * lanes, length);
  }

  TENET_NOINLINE void expand(const float* x, int64_t first, int64_t count, float* numbers) const {
    each_plane(first, count, [&](float* plane, int64_t from, int64_t to, int64_t images) {
      if (!whole) std::fill_n(plane, pixels, 0.0f);
      each_run([&](int64_t pixel, int64_t at, int64_t length) {
        to_lanes(kernels, length, x + from * h * w + pixel, channels * h * w, images, plane + at);
      });
      side.expand({rows, columns, pitch, step(count)}, plane, numbers + to);
    });
  }

  // The way back, with a bias for each channel or none; whether all is finite.
  TENET_NOINLINE bool contract(const float* numbers, int64_t first, int64_t count, const float* bias, float* x) const {
    std::atomic<bool> finite{true};
    each_plane(first, count, [&](float* plane, int64_t to, int64_t from, int64_t images) {
      std::fill_n(plane, pixels, bias ? bias[to % channels] : 0.0f);
      side.contract({rows, columns, pitch, step(count)}, numbers + from, plane);
      if (!all_finite(pixels, plane)) finite.store(false, std::memory_order_relaxed);
      each_run([&](int64_t pixel, int64_t at, int64_t length) {
        from_lanes(kernels, length, plane + at, images, x + to * h * w + pixel, channels * h * w);
      });
    });
    return finite;
  }
};

// The three sides. Filters count as images of one channel.
struct Winograd5 {
  const Conv2dShape& s;
  const WinogradSides& sides = winograd_sides();
  int64_t rows = (s.oh + 3) / 4, columns = (s.ow + 3) / 4;
  WinogradPlanes image{sides.image, s.n, s.c, s.h, s.w, s.pad_h, s.pad_w, rows, columns};
  WinogradPlanes output{sides.output, s.n, s.o, s.oh, s.ow, 0, 0, rows, columns};
  WinogradPlanes filter{sides.filter, s.o* s.c, 1, 5, 5, 0, 0, 1, 1};

  TENET_NOINLINE explicit Winograd5(const Conv2dShape& shape) : s(shape) {}

  int64_t filter_step() const { return filter.step(filter.groups); }
  int64_t filter_size() const { return filter.size(filter.groups); }
  float* filter_numbers(int64_t count) const { return scratch<float>(Scratch::conv_weights, count * filter_size()); }
  // How many of `groups` groups of images to handle together, whose numbers are at most so many.
  int64_t together(int64_t groups, int64_t numbers) const {
    return balanced(groups, std::max<int64_t>(1, numbers / (image.size(1) + output.size(1))));
  }
  // At most so many slices of the batch, each with sums of its own: the thread that makes numbers multiplies them, for
  // they would take long to another core. An even number, for two threads; what is too little for four is one.
  int64_t slices() const {
    constexpr int64_t most = 8, least_pixels = 128, most_sums = int64_t{1} << 22;
    const int64_t count = std::min({most, image.groups * image.group / least_pixels, most_sums / filter_size()});
    return count < 4 ? 1 : count / 2 * 2;
  }
};

// to = what the filters, or their transpose, make of `from`.
TENET_NOINLINE inline bool winograd5_filtered(const Conv2dShape& s, bool transpose, const float* from, const float* w,
                                              const float* bias, float* to) {
  const Winograd5 f(s);
  const WinogradPlanes &in = transpose ? f.output : f.image, &out = transpose ? f.image : f.output;
  float* const weights = f.filter_numbers(1);
  f.filter.expand(w, 0, f.filter.groups, weights);
  std::atomic<bool> finite{true};
  const int64_t grain = std::min(f.together(in.groups, int64_t{5} << 16), (in.groups + 1) / 2);  // two shares at least
  parallel_for(in.groups, grain, [&](int64_t begin, int64_t end) {
    const int64_t count = end - begin, n = count * in.group;
    float* const numbers = scratch<float>(Scratch::conv_images, in.size(count) + out.size(count));
    float* const results = numbers + in.size(count);
    in.expand(from, begin, count, numbers);
    for (int64_t p = 0; p < winograd_numbers; ++p) {
      const MatrixView<float> a{weights + p * f.filter_step(), s.c, 1};
      gemm<float>(out.channels, n, in.channels, transpose ? a.transposed() : a, {numbers + p * in.step(count), n, 1},
                  results + p * out.step(count), n);
    }
    if (!out.contract(results, begin, count, bias, to)) finite.store(false, std::memory_order_relaxed);
  });
  return finite;
}

}  // namespace detail

/// Whether a convolution is one that Winograd's filtering of 5 x 5 taps makes faster.
inline bool winograd5_pays(const Conv2dShape& s) {
  // Unless vectors are as wide as those of AVX2, the transformations take too long.
  const int64_t lanes = gemm_kernels<float>().lanes, tiles = ((s.oh + 3) / 4) * ((s.ow + 3) / 4);
  return lanes >= 8 && s.kh == 5 && s.kw == 5 && s.stride_h == 1 && s.stride_w == 1 && s.dil_h == 1 && s.dil_w == 1 &&
         s.pad_h <= 4 && s.pad_w <= 4 && s.groups == 1 && s.c >= 4 && s.c * s.o >= 64 && s.oh >= 4 && s.ow >= 4 &&
         s.n >= lanes && s.n * tiles >= 32 && s.n * tiles * s.c * s.o >= 16384 &&
         // What is kept of numbers: 16 MB of filters, 4 MB of a group of images.
         s.c * s.o <= 65536 && lanes * tiles * (s.c + s.o) <= 16384;
}

// Each returns whether all of its results are finite; if not, they are to be computed otherwise.

/// y = conv2d(x, w) + bias, where winograd5_pays.
inline bool conv2d_forward_winograd5(const Conv2dShape& s, const float* x, const float* w, const float* bias,
                                     float* y) {
  return detail::winograd5_filtered(s, false, x, w, bias, y);
}

/// dx = gradient with respect to x, where winograd5_pays.
inline bool conv2d_backward_data_winograd5(const Conv2dShape& s, const float* dy, const float* w, float* dx) {
  return detail::winograd5_filtered(s, true, dy, w, nullptr, dx);
}

/// dw = gradient with respect to w, where winograd5_pays.
TENET_NOINLINE inline bool conv2d_backward_weight_winograd5(const Conv2dShape& s, const float* x, const float* dy,
                                                            float* dw) {
  const detail::Winograd5 f(s);
  const int64_t groups = f.image.groups, slice = (groups - 1) / f.slices() + 1, slices = (groups - 1) / slice + 1;
  const int64_t together = f.together(slice, int64_t{1} << 20), size = f.filter_size(), step = f.filter_step();
  float* const weights = f.filter_numbers(slices);
  parallel_for(slices, 1, [&](int64_t begin, int64_t end) {
    float* const in = scratch<float>(Scratch::conv_images, f.image.size(together) + f.output.size(together));
    float* const out = in + f.image.size(together);
    const int64_t last = std::min(groups, end * slice);
    for (int64_t first = begin * slice; first < last; first += together) {
      const int64_t count = std::min(together, last - first), n = count * f.image.group;
      f.image.expand(x, first, count, in);
      f.output.expand(dy, first, count, out);
      const int64_t grain = even_grain(winograd_numbers, (int64_t{1} << 20) / (s.o * s.c * n) + 1);
      parallel_for(winograd_numbers, grain, [&](int64_t from, int64_t to) {
        for (int64_t p = from; p < to; ++p) {
          float* const sums = weights + begin * size + p * step;
          gemm<float>(s.o, s.c, n, {out + p * f.output.step(count), n, 1}, {in + p * f.image.step(count), 1, n}, sums,
                      s.c, {.accumulate = first > begin * slice});
          std::fill(sums + s.o * s.c, sums + step, 0.0f);  // the last group of filters may lack some
        }
      });
    }
  });
  parallel_for(slices > 1 ? size : 0, int64_t{1} << 13, [&](int64_t begin, int64_t end) {
    for (int64_t i = 1; i < slices; ++i) {
      for (int64_t j = begin; j < end; ++j) weights[j] += weights[i * size + j];
    }
  });
  return f.filter.contract(weights, 0, f.filter.groups, nullptr, dw);
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
