// The numbers of Winograd's minimal filtering F(4 x 4, 5 x 5): what images, filters and outputs become where their
// products are single multiplications. One table for each instruction set.
#pragma once

#include <tenet/kernels/cpu/vector.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

inline constexpr int64_t winograd_points = 8, winograd_numbers = winograd_points * winograd_points;

/// Tiles of a plane, 4 pixels apart: rows x columns of them, in rows of pixels `pitch` apart. Each pixel, and each
/// number, is a vector: as many planes at once. The numbers of a tile are `step` apart, those of tiles side by side.
struct WinogradTiles {
  int64_t rows, columns, pitch, step;
};

/// One side of a convolution.
struct WinogradSide {
  int64_t size;  // pixels of a tile along each dimension
  void (*expand)(const WinogradTiles&, const float* plane, float* numbers);
  void (*contract)(const WinogradTiles&, const float* numbers, float* plane);  // adds what they contribute
};

struct WinogradSides {
  WinogradSide image, filter, output;
};

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#define TENET_KERNEL_FILE <tenet/kernels/cpu/winograd_points_body.hpp>
#include <tenet/kernels/cpu/for_each_isa.hpp>
#undef TENET_KERNEL_FILE

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// The kernels for as many lanes as vectors have. With four it is not worth while.
inline const WinogradSides& winograd_sides() {
#if TENET_X86
  return isa() == Isa::avx512 ? avx512::winograd_sides : avx2::winograd_sides;
#else
  return baseline::winograd_sides;
#endif
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
