// How a convolution reads images with vectors: the layout of an image, and the runs of pixels that cover an output.
//
// A tap of the kernel over neighbouring output pixels is a run of neighbouring image pixels, read in place: no matrix
// of patches exists. Where there is padding, or a stride along the row, or rows shorter than a vector, the image is
// first copied with its padding, the columns of each remainder modulo the stride together: neighbours again.
#pragma once

#include <tenet/core/parallel.hpp>
#include <tenet/kernels/cpu/conv2d_kernels.hpp>
#include <tenet/kernels/cpu/workspace.hpp>

#include <algorithm>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Where the pixels of a [c, h, w] image lie: column x of row y at y * pitch + x % phases * width + x / phases, counted
/// from the padding's corner.
struct ImageLayout {
  bool copied;
  int64_t rows, phases, width, pitch, plane;
};

/// The layout that lets runs of `run` pixels be read for every output pixel and tap.
inline ImageLayout image_layout(const Conv2dShape& s, int64_t run) {
  if (s.pad_h == 0 && s.pad_w == 0 && s.stride_w == 1 && s.ow >= run) return {false, s.h, 1, s.w, s.w, s.h * s.w};
  const int64_t rows = (s.oh - 1) * s.stride_h + (s.kh - 1) * s.dil_h + 1;
  const int64_t width = std::max(s.ow, run) + (s.kw - 1) * s.dil_w / s.stride_w;
  const int64_t pitch = width * s.stride_w;
  return {true, rows, s.stride_w, width, pitch, rows * pitch};
}

/// The same for y, whose rows are copied only where they are shorter than a run.
inline ImageLayout output_layout(const Conv2dShape& s, int64_t run) {
  const int64_t width = std::max(s.ow, run);
  return {s.ow < run, s.oh, 1, width, width, s.oh * width};
}

/// Copies one plane [h, w] into its layout; what lies outside the image is zero.
template <class T>
TENET_NOINLINE void copy_plane(const ImageLayout& layout, const T* in, int64_t h, int64_t w, int64_t pad_h,
                               int64_t pad_w, T* out) {
  for (int64_t y = 0; y < layout.rows; ++y, out += layout.pitch) {
    const int64_t row = y - pad_h;
    std::fill_n(out, layout.pitch, T(0));
    if (row < 0 || row >= h) continue;
    for (int64_t phase = 0; phase < layout.phases; ++phase) {
      // Column of the image at place q: q * phases + first.
      const int64_t first = phase - pad_w;
      const int64_t begin = first < 0 ? (-first - 1) / layout.phases + 1 : 0;
      const int64_t end = w > first ? std::min(layout.width, (w - first - 1) / layout.phases + 1) : 0;
      const T* from = in + row * w + first;
      T* to = out + phase * layout.width;
      if (layout.phases == 1) {
        if (begin < end) std::copy(from + begin, from + end, to + begin);
      } else {
        for (int64_t q = begin; q < end; ++q) to[q] = from[q * layout.phases];
      }
    }
  }
}

/// The way back: writes every pixel of a plane [h, w] from its layout; pixels that no tap reaches become zero.
template <class T>
TENET_NOINLINE void copy_plane_back(const ImageLayout& layout, const T* in, int64_t h, int64_t w, int64_t pad_h,
                                    int64_t pad_w, T* out) {
  for (int64_t row = 0; row < h; ++row, out += w) {
    const int64_t y = row + pad_h;
    std::fill_n(out, w, T(0));
    if (y >= layout.rows) continue;
    for (int64_t phase = 0; phase < layout.phases; ++phase) {
      const int64_t first = phase - pad_w;
      const int64_t begin = first < 0 ? (-first - 1) / layout.phases + 1 : 0;
      const int64_t end = w > first ? std::min(layout.width, (w - first - 1) / layout.phases + 1) : 0;
      const T* from = in + y * layout.pitch + phase * layout.width;
      for (int64_t q = begin; q < end; ++q) out[q * layout.phases + first] = from[q];
    }
  }
}

/// Copies `count` planes, those of `images` images, into their layout, on several threads.
template <class T>
TENET_NOINLINE void copy_planes(const ImageLayout& layout, int64_t count, const T* in, int64_t h, int64_t w,
                                int64_t pad_h, int64_t pad_w, T* out) {
  parallel_for(count, (int64_t{1} << 15) / (layout.plane + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      copy_plane(layout, in + i * h * w, h, w, pad_h, pad_w, out + i * layout.plane);
  });
}

/// Bits that keep lanes: all of a run from `whole`, none from 0, all but the first n from whole - n, only the first n
/// from 2 * whole - n.
template <class T>
struct RunMasks {
  static constexpr int64_t whole = 8;
  alignas(64) unsigned char bits[3 * whole * sizeof(T)] = {};
  constexpr RunMasks() {
    for (std::size_t i = whole * sizeof(T); i < 2 * whole * sizeof(T); ++i) bits[i] = 255;
  }
};
template <class T>
inline constexpr RunMasks<T> run_masks;

template <class T>
const T* run_mask_data() {
  return reinterpret_cast<const T*>(run_masks<T>.bits);  // only ever copied as bytes
}

/// The geometry of one convolution, with tables in scratch memory.
///
/// Runs of pixels are listed chunk by chunk: some rows of the output, first their whole runs, then the rest of each
/// row: a run that ends with the row and overlaps the one before, or the only one of a short row. Repetitions fill a
/// chunk.
struct ConvPlan {
  Conv2dShape s;
  ImageLayout image, output;
  int64_t taps;                     // of a channel group: c / groups * kh * kw
  int64_t* tap_at;                  // [taps], in the image
  int64_t runs, chunk_runs, whole;  // in all, in each chunk but the last, and whole ones in the first chunk
  int64_t *x_at, *y_at, *out_at;    // [runs], in the image, in the output's own layout, and in y itself
  int64_t* mask_at;                 // [runs]
  int64_t valid;                    // pixels of a run
};

/// A convolution of single pixels knows no rows: cuts the image into rows that consist of whole runs, if it can.
inline Conv2dShape without_rows(Conv2dShape s, int64_t run) {
  if (s.kh != 1 || s.kw != 1 || s.stride_h != 1 || s.stride_w != 1 || s.pad_h != 0 || s.pad_w != 0) return s;
  const int64_t pixels = s.h * s.w;
  int64_t width = std::min<int64_t>(32, pixels);
  while (width < pixels && (pixels % width != 0 || width % run != 0)) ++width;
  s.w = s.ow = width;
  s.h = s.oh = pixels / width;
  return s;
}

/// `run` pixels a run, and chunks of `rows` rows, filled up to a multiple of `multiple` runs.
TENET_NOINLINE inline ConvPlan conv_plan(const Conv2dShape& s, int64_t run, int64_t multiple, int64_t rows) {
  constexpr int64_t whole_mask = RunMasks<float>::whole;
  ConvPlan plan{};
  plan.s = s;
  plan.image = image_layout(s, run);
  plan.output = output_layout(s, run);
  plan.taps = s.c / s.groups * s.kh * s.kw;
  plan.valid = std::min(run, s.ow);
  const auto filled = [&](int64_t height) {
    return (height * ((s.ow + run - 1) / run) + multiple - 1) / multiple * multiple;
  };
  plan.chunk_runs = filled(rows);
  plan.whole = rows * (s.ow / run);
  const int64_t most_runs = (s.oh + rows - 1) / rows * plan.chunk_runs;
  plan.tap_at = scratch<int64_t>(Scratch::conv_tables, plan.taps + 4 * most_runs);
  plan.x_at = plan.tap_at + plan.taps;
  plan.y_at = plan.x_at + most_runs;
  plan.out_at = plan.y_at + most_runs;
  plan.mask_at = plan.out_at + most_runs;

  int64_t* tap_at = plan.tap_at;
  for (int64_t c = 0; c < s.c / s.groups; ++c) {
    for (int64_t y = 0; y < s.kh; ++y) {
      for (int64_t kx = 0; kx < s.kw; ++kx) {
        const int64_t x = kx * s.dil_w, phases = plan.image.phases;
        const int64_t column = phases == 1 ? x : x % phases * plan.image.width + x / phases;
        *tap_at++ = c * plan.image.plane + y * s.dil_h * plan.image.pitch + column;
      }
    }
  }
  const auto add_run = [&](int64_t y, int64_t x, int64_t mask) {
    plan.x_at[plan.runs] = y * s.stride_h * plan.image.pitch + x;
    plan.y_at[plan.runs] = y * plan.output.pitch + x;
    plan.out_at[plan.runs] = y * s.ow + x;
    plan.mask_at[plan.runs++] = mask;
  };
  const int64_t rest = s.ow % run;
  for (int64_t top = 0; top < s.oh; top += rows) {
    const int64_t bottom = std::min(s.oh, top + rows), end = plan.runs + filled(bottom - top);
    for (int64_t y = top; y < bottom; ++y) {
      for (int64_t x = 0; x + run <= s.ow; x += run) add_run(y, x, whole_mask);
    }
    for (int64_t y = top; y < bottom && rest != 0; ++y) {
      if (s.ow > run) add_run(y, s.ow - run, whole_mask - (run - rest));
      else add_run(y, 0, 2 * whole_mask - s.ow);
    }
    const int64_t last = s.ow < run ? 0 : s.ow - run;
    while (plan.runs < end) add_run(bottom - 1, last, 0);
  }
  return plan;
}

/// Images of a batch to handle together: as many as their copies may take.
inline int64_t images_together(int64_t n, int64_t elements, bool copied) {
  return copied ? std::clamp<int64_t>((int64_t{1} << 20) / (elements + 1), 1, n) : n;
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
