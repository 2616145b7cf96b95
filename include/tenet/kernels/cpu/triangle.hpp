// Copies of one triangle of matrices.
#pragma once

#include <tenet/core/parallel.hpp>
#include <tenet/kernels/cpu/pointwise.hpp>

#include <algorithm>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Sets to 0 what is on the other side of a diagonal, `diagonal` to the right of the main one: above it, or with
/// `upper` below. `data` holds `count` row-major matrices of rows x columns elements of `size` bytes.
inline void keep_triangle(char* data, std::size_t size, int64_t count, int64_t rows, int64_t columns, int64_t diagonal,
                          bool upper) {
  parallel_for(count * rows, std::max<int64_t>(1, detail::map_grain / std::max<int64_t>(columns, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   // Row r keeps columns up to r + diagonal, or from there on.
                   const int64_t edge = std::clamp<int64_t>(i % rows + diagonal + (upper ? 0 : 1), 0, columns);
                   const int64_t from = upper ? 0 : edge, to = upper ? edge : columns;
                   std::memset(data + (i * columns + from) * int64_t(size), 0, std::size_t(to - from) * size);
                 }
               });
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
