// The inner kernels of the convolution, one table for each instruction set.
#pragma once

#include <tenet/kernels/cpu/conv2d_reference.hpp>
#include <tenet/kernels/cpu/isa.hpp>
#include <tenet/kernels/cpu/vector.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Some output channels for some runs of pixels: out[i][run] = bias[i] + sum over taps of weights[tap][i] * image run.
template <class T>
struct ConvTile {
  int64_t taps;
  const T* weights;
  int64_t weights_step;
  const T* image;
  const int64_t* offsets;  // of each tap in the image
  const int64_t* from;     // of each run in the image
  T* out;
  int64_t out_row;      // between channels
  const int64_t* to;    // of each run in out
  int64_t valid;        // pixels of a run to store
  const T* bias;        // may be null
  bool add;             // adds to out
  const T* masks;       // for add: null, or where
  const int64_t* mask;  // the mask of each run lies
};

/// Some output channels by some taps: sums[channel][tap] += products of dy and x, lanes kept apart.
template <class T>
struct ConvDot {
  int64_t images;
  const T* dy[8];  // one a channel
  const T* x[8];   // one a tap
  int64_t dy_image, x_image;
  const int64_t *dy_at, *x_at;  // of each run
  int64_t whole, runs;          // runs from `whole` on are masked
  const T* masks;
  const int64_t* mask_at;
  T* sums;
};

template <class T>
struct ConvKernels {
  int64_t lanes, run;  // elements of a vector, and of a run of pixels
  int64_t max_rows;
  void (*tile[16])(const ConvTile<T>&);  // [rows - 1]; 2 vectors of pixels
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
