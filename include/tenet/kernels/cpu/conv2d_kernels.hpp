// The inner kernels of the convolution, one table for each instruction set.
#pragma once

#include <tenet/kernels/cpu/conv2d_reference.hpp>
#include <tenet/kernels/cpu/isa.hpp>
#include <tenet/kernels/cpu/tile_heights.hpp>
#include <tenet/kernels/cpu/vector.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Some output channels for some tiles of pixels: out[i][run] = bias[i] + sum over taps of weights[tap][i] * image run.
template <class T>
struct ConvTiles {
  int64_t taps;
  const T* weights;
  int64_t weights_step;
  const T* image;
  const int64_t* offsets;  // of each tap in the image
  int64_t tiles;           // of 2 vectors of runs
  const int64_t* from;     // of each run in the image
  T* out;
  int64_t out_row;    // between channels
  const int64_t* to;  // of each run in out
  int64_t valid;      // pixels of a run to store
  const T* bias;      // may be null
};

/// Runs of pixels that dy and x have in common.
struct ConvRuns {
  int64_t runs;
  const int64_t *dy_at, *x_at, *mask_at;
};

/// Some output channels by some taps: sums[channel][tap] += products of dy and x, lanes kept apart.
template <class T>
struct ConvDot {
  const T* dy[8];  // one a channel
  const T* x[8];   // one a tap
  ConvRuns whole, masked;
  const T* masks;
  T* sums;
};

template <class T>
struct ConvKernels {
  int64_t lanes, run;  // elements of a vector, and of a run of pixels
  TileHeights heights;
  void (*tiles[TileHeights::most])(const ConvTiles<T>&);  // [height - 1]
  int64_t dot_channels, dot_taps;
  void (*dot)(const ConvDot<T>&);
  void (*sum_lanes)(const T* vectors, int64_t count, T* out);
};

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#define TENET_KERNEL_FILE <tenet/kernels/cpu/conv2d_body.hpp>
#include <tenet/kernels/cpu/for_each_isa.hpp>
#undef TENET_KERNEL_FILE

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// The kernels for the instruction set in use.
template <class T>
const ConvKernels<T>& conv_kernels() {
  switch (isa()) {
#if TENET_X86
    case Isa::avx512: return avx512::conv_kernels<T>;
    case Isa::avx2: return avx2::conv_kernels<T>;
#endif
    default: return baseline::conv_kernels<T>;
  }
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
