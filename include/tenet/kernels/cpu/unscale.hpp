// Scaled gradients back to their size, with a look at whether they are finite, in one pass.
#pragma once

#include <tenet/core/parallel.hpp>
#include <tenet/kernels/cpu/convert.hpp>

#include <atomic>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

namespace detail {

template <class T>
struct Unscale {
  static constexpr Isa widest = Isa::avx2;
  using C = compute_t<T>;
  using Flag = std::conditional_t<sizeof(C) == 8, std::int64_t, std::int32_t>;

  TENET_ALWAYS_INLINE static void run(int64_t n, T* x, C factor, bool* finite) {
    Flag wrong = 0;
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) {
      const C v = cast<C>(x[i]) * factor;
      wrong |= v - v == 0 ? Flag(0) : Flag(1);  // infinity and NaN leave NaN
      x[i] = cast<T>(v);
    }
    *finite = wrong == 0;
  }
};

}  // namespace detail

/// x[i] *= factor for n elements, computed in float for bfloat16; whether all of them are finite now.
template <class T>
bool unscale(int64_t n, T* x, double factor) {
  std::atomic<bool> finite = true;
  parallel_for(n, int64_t{1} << 16, [&](int64_t begin, int64_t end) {
    bool piece;
    vectorized<detail::Unscale<T>>(end - begin, x + begin, compute_t<T>(factor), &piece);
    if (!piece) finite.store(false, std::memory_order_relaxed);
  });
  return finite;
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
