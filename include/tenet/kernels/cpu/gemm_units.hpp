// What the inner kernels of products read: elements, or four bytes of neighbours along k that one instruction
// multiplies and adds up.
#pragma once

#include <tenet/kernels/cpu/convert.hpp>

#include <cstdint>
#include <type_traits>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Two bfloat16, for the instruction of AVX512_BF16.
struct BfloatPair {
  std::uint32_t bits;
};
/// The same for every machine, which multiplies them one after the other.
struct SplitPair {
  std::uint32_t bits;
};
/// Two integers of 16 bits, which hold any integer of 8 bits of either sign: every machine multiplies them exactly.
struct ShortPair {
  std::uint32_t bits;
};
/// Four integers of 8 bits, for the instruction of AVX512_VNNI, which takes unsigned ones from one operand and signed
/// ones from the other. int8 becomes unsigned by adding 128.
struct UnsignedQuad {
  std::uint32_t bits;
};
struct SignedQuad {
  std::uint32_t bits;
};

/// Neighbours along k in a unit.
template <class U>
inline constexpr int unit_depth = 1;
template <>
inline constexpr int unit_depth<BfloatPair> = 2;
template <>
inline constexpr int unit_depth<SplitPair> = 2;
template <>
inline constexpr int unit_depth<ShortPair> = 2;
template <>
inline constexpr int unit_depth<UnsignedQuad> = 4;
template <>
inline constexpr int unit_depth<SignedQuad> = 4;

template <class U>
inline constexpr bool is_bfloat16_pair = std::is_same_v<U, BfloatPair> || std::is_same_v<U, SplitPair>;

/// Whether products of units need the instructions of has_dots().
template <class U>
inline constexpr bool needs_dots = std::is_same_v<U, BfloatPair> || unit_depth<U> == 4;

/// The type of a lane that holds a unit, and of the sum of products of units. Sums of integers wrap around.
template <class U>
using unit_lane_t = std::conditional_t<std::is_floating_point_v<U>, U, std::uint32_t>;
template <class U>
using unit_sum_t = std::conditional_t<is_bfloat16_pair<U>, float, unit_lane_t<U>>;

/// Whether int8 elements S get 128 more in units U.
template <class U, class S>
inline constexpr bool is_raised = std::is_same_v<U, UnsignedQuad>&& std::is_same_v<S, int8_t>;

/// The unit of `left` or unit_depth<U> elements, whichever is less, that lie `step` apart, filled up with zeros.
template <class U, class S>
TENET_ALWAYS_INLINE U gather_unit(const S* from, [[maybe_unused]] int64_t step, [[maybe_unused]] int64_t left) {
  if constexpr (std::is_floating_point_v<U>) {
    return cast<U>(*from);
  } else {
    constexpr int depth = unit_depth<U>, bits = 32 / depth;
    std::uint32_t unit = 0;
    for (int e = 0; e < depth && e < left; ++e) {
      std::uint32_t x;
      if constexpr (std::is_same_v<S, bfloat16>) x = __builtin_bit_cast(std::uint16_t, from[e * step]);
      else x = std::uint32_t(std::int32_t(from[e * step])) ^ (is_raised<U, S> ? 0x80u : 0u);
      unit |= (x & ((1u << bits) - 1)) << (bits * e);
    }
    return {unit};
  }
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
