// Gradients as the numbers that ranks exchange.
#pragma once

#include <tenet/core/tensor.hpp>

#include <algorithm>

namespace tenet::parallel {
inline namespace TENET_CONFIG {
namespace detail {

/// f(elements) by the type of a floating tensor.
template <class F>
void with_elements(const AnyTensor& t, const F& f) {
  dispatch_floating("distributed", t.dtype(), [&]<class T>(T) { f(static_cast<T*>(t.data_ptr())); });
}

/// to[i] = share * gradient[begin + i] for i < n, of a contiguous gradient. All 0 for an undefined gradient and for a
/// share of 0: of no example there is no mean.
template <class S>
void pack(const AnyTensor& gradient, std::int64_t begin, std::int64_t n, double share, S* to) {
  if (!gradient || share == 0) {
    std::fill_n(to, n, S(0));
    return;
  }
  with_elements(gradient, [&]<class T>(const T* from) {
    using A = accumulate_t<S>;
    const A factor = A(share);
    for (std::int64_t i = 0; i < n; ++i) to[i] = S(A(from[begin + i]) * factor);
  });
}

/// All elements of `to`, a contiguous tensor of any floating type, from numbers.
template <class S>
void unpack(const S* from, const AnyTensor& to) {
  with_elements(to, [&]<class T>(T* out) {
    using A = accumulate_t<S>;
    for (std::int64_t i = 0; i < to.numel(); ++i) out[i] = T(A(from[i]));
  });
}

}  // namespace detail
}  // namespace TENET_CONFIG
}  // namespace tenet::parallel
