// The second derivative of cross-entropy. It is rarely asked for: plain loops.
#pragma once

#include <tenet/kernels/cpu/cross_entropy.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// With d[rows, n] = cross_entropy_backward of x for dloss[r * dloss_stride], the gradients of sum(v * d): dx[rows, n]
/// by x and ddloss[rows] by dloss, each unless null; 0 in ignored rows.
template <class T>
void cross_entropy_second(int64_t rows, int64_t n, const T* x, const CrossEntropyTargets<T>& targets, const T* dloss,
                          int64_t dloss_stride, const T* v, T* dx, T* ddloss) {
  const auto weight = [&](int64_t c) { return targets.weight ? cast<double>(targets.weight[c]) : 1.0; };
  const double e = targets.label_smoothing, each = e / double(n);
  double total = 0;
  for (int64_t c = 0; c < n; ++c) total += weight(c);
  parallel_for(rows, detail::row_grain(n), [&](int64_t begin, int64_t end) {
    const auto p = std::make_unique<double[]>(std::size_t(n));
    for (int64_t r = begin; r < end; ++r) {
      const int64_t t = targets.classes[r];
      const bool ignored = t == targets.ignore_index;
      double most = -std::numeric_limits<double>::infinity(), sum = 0, along = 0, constant = 0;
      for (int64_t c = 0; c < n; ++c) most = std::max(most, cast<double>(x[r * n + c]));
      for (int64_t c = 0; c < n; ++c) sum += p[std::size_t(c)] = std::exp(cast<double>(x[r * n + c]) - most);
      for (int64_t c = 0; c < n; ++c) {
        const double vc = cast<double>(v[r * n + c]);
        p[std::size_t(c)] /= sum;
        along += p[std::size_t(c)] * vc;
        constant += each * weight(c) * vc;
      }
      // d = dloss (a p - what does not depend on x)
      const double hit = ignored ? 0 : (1 - e) * weight(t), a = hit + each * total;
      if (ddloss) {
        ddloss[r] = cast<T>(ignored ? 0 : a * along - constant - hit * cast<double>(v[r * n + t]));
      }
      if (!dx) continue;
      const double scale = a * cast<double>(dloss[r * dloss_stride]);
      for (int64_t c = 0; c < n; ++c) {
        dx[r * n + c] = cast<T>(ignored ? 0 : scale * p[std::size_t(c)] * (cast<double>(v[r * n + c]) - along));
      }
    }
  });
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
