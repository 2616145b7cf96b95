// Matrix products of integers of 8 bits: exact sums of 32 bits, as they are, or scaled to float or to 8 bits again.
//
// Sums are the same on every machine, and so is what is made of them. They are exact for k <= 65536, and wrap around
// beyond 32 bits; nothing saturates on the way.
#pragma once

#include <tenet/kernels/cpu/gemm_narrow.hpp>

#include <limits>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// What becomes of a sum in column j: x = (sum + sum_bias[j]) * scale[j] + bias[j], each step rounded to float. A
/// result of 8 bits is x rounded to the nearest integer, ties to even, plus zero_point, and saturates; NaN gives
/// zero_point.
struct ScaleOptions {
  const float* scale;                 // [n], or one for all columns
  bool scale_columns = false;         // whether `scale` has one for each column
  const int32_t* sum_bias = nullptr;  // [n]; wraps around. Takes up a zero point z of A as -z * (sum of column j of B)
  const float* bias = nullptr;        // [n]
  int32_t zero_point = 0;             // within the range of the result; a result of float has none
};

namespace detail {

// What ScaleOptions make of one sum.
template <class C>
TENET_ALWAYS_INLINE C scaled(std::uint32_t sum, float scale, float bias, [[maybe_unused]] int32_t zero_point) {
  TENET_NO_CONTRACTION
  float x = float(int32_t(sum)) * scale + bias;
  if constexpr (std::is_same_v<C, float>) {
    return x;
  } else {
    constexpr float whole = 0x1.8p23f;  // has the step 1: adding it rounds, and leaves the integer in the low bits
    const float low = float(std::numeric_limits<C>::min() - zero_point);
    const float high = float(std::numeric_limits<C>::max() - zero_point);
    x = x == x ? x : 0.0f;
    x = x > low ? x : low;
    x = x < high ? x : high;
    return C(int32_t(bits(x + whole) - bits(whole)) + zero_point);
  }
}

template <class C>
struct ScaleSums {
  TENET_ALWAYS_INLINE static void run(int64_t n, C* c, const std::uint32_t* sums, const float* scale, const float* bias,
                                      int32_t zero_point) {
    TENET_LOOP
    for (int64_t j = 0; j < n; ++j) c[j] = scaled<C>(sums[j], scale[j], bias[j], zero_point);
  }
};

template <class C>
struct StoreScaled {
  C* c;
  int64_t ldc;
  ScaleOptions options;

  Finish<std::uint32_t> finish() const { return {&run, this}; }

  static void run(const void* context, int64_t top, int64_t left, int64_t rows, int64_t cols, std::uint32_t* sums) {
    constexpr int64_t most = 256;
    const StoreScaled& self = *static_cast<const StoreScaled*>(context);
    const ScaleOptions& o = self.options;
    float scale[most], bias[most];
    for (int64_t first = 0; first < cols; first += most) {
      const int64_t column = left + first, n = std::min(most, cols - first);
      for (int64_t j = 0; j < n; ++j) {
        scale[j] = o.scale[o.scale_columns ? column + j : 0];
        bias[j] = o.bias ? o.bias[column + j] : 0.0f;
      }
      for (int64_t i = 0; i < rows; ++i) {
        std::uint32_t* const row = sums + i * cols + first;
        if (o.sum_bias) add_converted(n, row, o.sum_bias + column);
        vectorized<ScaleSums<C>>(n, self.c + (top + i) * self.ldc + column, static_cast<const std::uint32_t*>(row),
                                 static_cast<const float*>(scale), static_cast<const float*>(bias), o.zero_point);
      }
    }
  }
};

template <class A>
void gemm_int8_sums(int64_t m, int64_t n, int64_t k, MatrixView<A> a, MatrixView<int8_t> b,
                    const Finish<std::uint32_t>& finish, const std::uint32_t* panels = nullptr) {
  static_assert(std::is_same_v<A, int8_t> || std::is_same_v<A, uint8_t>);
  if (m <= 0 || n <= 0) return;
#if TENET_X86
  if (has_dots(Dots::int8)) {
    const auto* units = reinterpret_cast<const SignedQuad*>(panels);
    return narrow_product<UnsignedQuad, SignedQuad>(m, n, k, a, b, finish, units);
  }
#endif
  narrow_product<ShortPair, ShortPair>(m, n, k, a, b, finish, reinterpret_cast<const ShortPair*>(panels));
}

}  // namespace detail

/// c[m, n] (row-major, row stride ldc) = a[m, k] * b[k, n] (+ c) (+ biases), for int8 or uint8 elements A. Sizes may be
/// 0; k == 0 sums to zero. c must not overlap a, b or the biases.
template <class A>
void gemm_int8(int64_t m, int64_t n, int64_t k, MatrixView<A> a, MatrixView<int8_t> b, int32_t* c, int64_t ldc,
               const GemmOptions<int32_t>& options = {}) {
  const StoreSums<int32_t, std::uint32_t> store{c, ldc, options};
  detail::gemm_int8_sums(m, n, k, a, b, store.finish());
}

/// The same with sums that are scaled to C: float, int8 or uint8. `panels`: b as
/// pack_int8_panels packs it, or null.
template <class A, class C>
void gemm_int8(int64_t m, int64_t n, int64_t k, MatrixView<A> a, MatrixView<int8_t> b, C* c, int64_t ldc,
               const ScaleOptions& options, const std::uint32_t* panels = nullptr) {
  static_assert(std::is_same_v<C, float> || std::is_same_v<C, int8_t> || std::is_same_v<C, uint8_t>);
  const detail::StoreScaled<C> store{c, ldc, options};
  detail::gemm_int8_sums(m, n, k, a, b, store.finish(), panels);
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
