// The right operand of gemm_int8, packed once for many products.
#pragma once

#include <tenet/kernels/cpu/gemm_int8.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

namespace detail {

// Calls f(kernels) with those that pack elements S for the product of this machine.
template <class S, class F>
auto with_int8_packing(const F& f) {
#if TENET_X86
  if (has_dots(Dots::int8)) return f(unit_kernels<UnsignedQuad, SignedQuad, uint8_t, S>().pack_b);
#endif
  return f(unit_kernels<ShortPair, ShortPair, uint8_t, S>().pack_b);
}

}  // namespace detail

/// Which packing the instructions in use ask for: panels of one kind serve no other.
inline int int8_panels_kind() { return has_dots(Dots::int8) ? 3 : int(isa()); }

/// Units of 32 bits that b[k, n] takes when it is packed.
template <class S = int8_t>
int64_t int8_panels_size(int64_t n, int64_t k) {
  return detail::with_int8_packing<S>(
      [&]<class U>(const PackKernels<U, S>& pack) { return narrow_panels_size<U>(pack, n, k); });
}

/// Packs b[k, n], which a product of more than 4 rows does each time otherwise.
template <class S>
void pack_int8_panels(int64_t n, int64_t k, MatrixView<S> b, std::uint32_t* out) {
  detail::with_int8_packing<S>(
      [&]<class U>(const PackKernels<U, S>& pack) { pack_narrow_panels(pack, n, k, b, reinterpret_cast<U*>(out)); });
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
