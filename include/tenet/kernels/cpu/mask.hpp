// Gathering the elements that a mask chooses, and putting them back. All arrays are contiguous.
#pragma once

#include <tenet/core/config.hpp>

#include <cstdint>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// The number of true values among n.
inline std::int64_t count_true(std::int64_t n, const bool* mask) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) count += mask[i];
  return count;
}

/// Writes the chosen ones of n elements one after the other.
template <class T>
void mask_gather(std::int64_t n, const bool* mask, const T* x, T* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (mask[i]) *out++ = x[i];
  }
}

/// Writes n elements: those of `x`, in their order, where the mask is true, 0 elsewhere.
template <class T>
void mask_scatter(std::int64_t n, const bool* mask, const T* x, T* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = mask[i] ? *x++ : T(0);
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
