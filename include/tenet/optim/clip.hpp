// Limits on gradients, in place. See torch.nn.utils.clip_grad_norm_ and clip_grad_value_.
#pragma once

#include <tenet/ops/copy.hpp>

#include <cmath>
#include <vector>

namespace tenet::optim {

struct ClipOptions {
  double norm_type = 2;  ///< of the norm; infinity for the greatest absolute value
  bool error_if_nonfinite = false;
};

inline namespace TENET_CONFIG {
namespace detail {

/// f(data, n) for the gradient of each parameter that has one, in memory that it may write.
template <class F>
void each_gradient(const char* op, const std::vector<AnyTensor>& params, F f) {
  for (const AnyTensor& p : params) {
    if (!p.impl()->grad) continue;
    dispatch_floating(op, p.dtype(), [&]<class T>(T) {
      Tensor<T> g(p.grad_any());
      if (!g.is_contiguous()) {
        g = packed(g);
        p.impl()->grad = g.ref();
      }
      f(g.data(), g.numel());
      ++g.impl()->storage->version;
    });
  }
}

}  // namespace detail

/// Scales the gradients of `params` so that the norm of all of them together is at most `max_norm`; returns the
/// norm before, summed in double. If it is not finite, throws Error where asked to, else leaves the gradients
/// untouched. Throws Error for max_norm < 0 and norm_type <= 0.
inline double clip_grad_norm_(const std::vector<AnyTensor>& params, double max_norm, const ClipOptions& options = {}) {
  if (!(max_norm >= 0)) throw Error(text({"clip_grad_norm_: expected max_norm >= 0, got ", max_norm}));
  if (!(options.norm_type > 0)) throw Error(text({"clip_grad_norm_: expected norm_type > 0, got ", options.norm_type}));
  const double p = options.norm_type;
  double sum = 0;
  detail::each_gradient("clip_grad_norm_", params, [&]<class T>(const T* g, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      const double a = std::abs(double(g[i]));
      if (std::isinf(p)) sum = a > sum || a != a ? a : sum;
      else sum += p == 2 ? a * a : std::pow(a, p);
    }
  });
  const double norm = p == 2 ? std::sqrt(sum) : std::isinf(p) ? sum : std::pow(sum, 1 / p);
  if (!std::isfinite(norm)) {
    if (options.error_if_nonfinite) throw Error(text({"clip_grad_norm_: the norm of the gradients is ", norm}));
    return norm;
  }
  const double scale = max_norm / (norm + 1e-6);
  if (scale < 1) {
    detail::each_gradient("clip_grad_norm_", params, [&]<class T>(T* g, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) g[i] = T(double(g[i]) * scale);
    });
  }
  return norm;
}

/// Limits every element of the gradients to [-value, value]; NaN stays. Throws Error for value < 0.
inline void clip_grad_value_(const std::vector<AnyTensor>& params, double value) {
  if (!(value >= 0)) throw Error(text({"clip_grad_value_: expected a value >= 0, got ", value}));
  detail::each_gradient("clip_grad_value_", params, [&]<class T>(T* g, std::int64_t n) {
    const T high = T(value), low = T(-value);
    for (std::int64_t i = 0; i < n; ++i) g[i] = g[i] > high ? high : g[i] < low ? low : g[i];
  });
}

}  // namespace TENET_CONFIG
}  // namespace tenet::optim
