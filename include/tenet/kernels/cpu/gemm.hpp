// Matrix products of every element type.
#pragma once

#include <tenet/kernels/cpu/gemm_blocks.hpp>
#include <tenet/kernels/cpu/gemm_int8.hpp>
#include <tenet/kernels/cpu/gemm_narrow.hpp>

#include <type_traits>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

namespace detail {

// bool and integers: sums wrap around as those of unsigned numbers do; one row of C at a time.
template <class T>
void gemm_integer(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, T* c, int64_t ldc,
                  const GemmOptions<T>& options) {
  using Sum = reference_sum_t<T>;
  constexpr int64_t block = 128;
  const int64_t blocks = (n + block - 1) / block;
  parallel_for(m * blocks, (int64_t{1} << 21) / (block * k + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t i = piece / blocks, left = piece % blocks * block, cols = std::min(block, n - left);
      Sum sums[block] = {};
      for (int64_t p = 0; p < k; ++p) {
        const Sum scale = static_cast<Sum>(a.data[i * a.row_stride + p * a.col_stride]);
        const T* in = b.data + p * b.row_stride + left * b.col_stride;
        for (int64_t j = 0; j < cols; ++j) sums[j] += scale * static_cast<Sum>(in[j * b.col_stride]);
      }
      for (int64_t j = 0; j < cols; ++j) {
        T& out = c[i * ldc + left + j];
        if (options.accumulate) sums[j] += static_cast<Sum>(out);
        if (options.row_bias) sums[j] += static_cast<Sum>(options.row_bias[i]);
        if (options.col_bias) sums[j] += static_cast<Sum>(options.col_bias[left + j]);
        out = static_cast<T>(sums[j]);
      }
    }
  });
}

// half and bfloat16: sums of float are rounded once.
template <class T, class C>
void gemm_half(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, C* c, int64_t ldc,
               const GemmOptions<C>& options) {
  const StoreSums<C, float> store{c, ldc, options};
#if TENET_X86
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (has_dots(Dots::bfloat16)) return narrow_product<BfloatPair, BfloatPair>(m, n, k, a, b, store.finish());
  }
#endif
  narrow_product<float, float>(m, n, k, a, b, store.finish());
}

}  // namespace detail

/// c[m, n] (row-major, row stride ldc) = a[m, k] * b[k, n] (+ c) (+ biases). Sizes may be 0; k == 0 sums to zero.
/// c must not overlap a, b or the biases. C is T, or float for T half or bfloat16.
///
/// Integers wrap around. half and bfloat16 sum in float: their products are exact there, so that a sum is off by at
/// most k * 2^-23 times the sum of the absolute products, and is rounded once if C is not float. Where the processor
/// has AVX512_BF16, its instruction also takes numbers of bfloat16, products and sums below 2^-126 for zero.
template <class T, class C>
TENET_NOINLINE void gemm(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, C* c, int64_t ldc,
                         const GemmOptions<std::type_identity_t<C>>& options = {}) {
  constexpr bool narrow = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;
  static_assert(std::is_same_v<T, C> || (narrow && std::is_same_v<C, float>));
  if (m <= 0 || n <= 0) return;
  if constexpr (narrow) {
    detail::gemm_half(m, n, k, a, b, c, ldc, options);
  } else if (k <= 0) {
    gemm_reference(m, n, 0, a, b, c, ldc, options);
  } else if constexpr (FloatElement<T>) {
    gemm_vector<T>({m, n, k, a, b, c, ldc, 1, options.accumulate, options.row_bias, options.col_bias});
  } else {
    detail::gemm_integer(m, n, k, a, b, c, ldc, options);
  }
}

/// `batch` products; the steps are elements between consecutive matrices, 0 where one matrix serves all of them (not
/// for c). Otherwise as gemm.
template <class T, class C>
void gemm_batched(int64_t batch, int64_t m, int64_t n, int64_t k, MatrixView<T> a, int64_t a_step, MatrixView<T> b,
                  int64_t b_step, C* c, int64_t ldc, int64_t c_step,
                  const GemmOptions<std::type_identity_t<C>>& options = {}) {
  const int64_t grain = (int64_t{1} << 20) / (m * n * k + 1) + 1;  // large products spread over threads themselves
  parallel_for(batch, batch < 8 ? batch : grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      gemm<T>(m, n, k, {a.data + i * a_step, a.row_stride, a.col_stride},
              {b.data + i * b_step, b.row_stride, b.col_stride}, c + i * c_step, ldc, options);
    }
  });
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
