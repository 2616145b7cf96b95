// Matrices that lie in memory in every way a product must read.
#pragma once

#include <tenet/kernels/cpu/gemm_reference.hpp>

#include <cstdint>
#include <vector>

enum class Layout { rows, columns, every_second, repeated };
inline constexpr Layout layouts[] = {Layout::rows, Layout::columns, Layout::every_second, Layout::repeated};

// A view of [rows, cols] over exactly as many elements as it needs, so that a sanitizer sees every step beyond.
template <class T>
struct Operand {
  std::vector<T> data;
  tenet::cpu::MatrixView<T> view;

  // make(count, seed) gives the elements.
  Operand(std::int64_t rows, std::int64_t cols, Layout layout, std::vector<T> (*make)(std::int64_t, std::uint64_t),
          std::uint64_t seed) {
    std::int64_t row = cols, col = 1;
    if (layout == Layout::columns) row = 1, col = rows;
    if (layout == Layout::every_second) row = 2 * cols + 3, col = 2;
    if (layout == Layout::repeated) row = 0;
    data = make(rows && cols ? (rows - 1) * row + (cols - 1) * col + 1 : 0, seed);
    view = {data.data(), row, col};
  }
};

// A fixed sequence of numbers without a pattern.
inline std::uint64_t next_random(std::uint64_t& seed) {
  return seed = seed * 6364136223846793005u + 1442695040888963407u;
}
