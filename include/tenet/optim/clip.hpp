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

/// f(data, n) for the gradient of each parameter that has one, to be read.
template <class F>
void each_gradient(const char* op, const std::vector<AnyTensor>& params, F f) {
  for (const AnyTensor& p : params) {
    if (!p.impl()->grad) continue;
    dispatch_floating(op, p.dtype(), [&]<class T>(T) {
      const Tensor<T> g = packed(Tensor<T>(p.grad_any()));
      f(static_cast<const T*>(g.data()), g.numel());
    });
  }
}

/// Replaces each element of the gradients by f(element).
template <class F>
void change_gradients(const char* op, const std::vector<AnyTensor>& params, F f) {
  for (const AnyTensor& p : params) {
    if (!p.impl()->grad) continue;
    dispatch_floating(op, p.dtype(), [&]<class T>(T) {
      Tensor<T> g(p.grad_any());
      if (!g.is_contiguous()) {
        g = packed(g);
        p.impl()->grad = g.ref();
      }
      for (std::int64_t i = 0; i < g.numel(); ++i) g.data()[i] = f(g.data()[i]);
      ++g.impl()->storage->version;
    });
  }
}

/// The greatest absolute value in all gradients; NaN if there is one.
inline double greatest_gradient(const char* op, const std::vector<AnyTensor>& params) {
  double greatest = 0;
  each_gradient(op, params, [&]<class T>(const T* g, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      const double a = std::abs(double(g[i]));
      if (a > greatest || a != a) greatest = a;
    }
  });
  return greatest;
}

/// The p-norm of all gradients over `unit`, summed in double.
inline double gradient_norm(const char* op, const std::vector<AnyTensor>& params, double p, double unit) {
  double sum = 0;
  each_gradient(op, params, [&]<class T>(const T* g, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      const double a = std::abs(double(g[i])) / unit;
      sum += p == 2 ? a * a : std::pow(a, p);
    }
  });
  return p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
}

/// The p-norm of all gradients, infinity for the greatest absolute value.
inline double norm_of(const char* op, const std::vector<AnyTensor>& params, double p) {
  const double norm = std::isinf(p) ? greatest_gradient(op, params) : gradient_norm(op, params, p, 1);
  if (std::isfinite(norm)) return norm;
  const double greatest = greatest_gradient(op, params);  // the sum may have overflowed, not the gradients
  return std::isfinite(greatest) ? greatest * gradient_norm(op, params, p, greatest) : greatest;
}

inline void check_clip(double max_norm, const ClipOptions& options) {
  if (!(max_norm >= 0)) throw Error(text({"clip_grad_norm_: expected max_norm >= 0, got ", max_norm}));
  if (!(options.norm_type > 0)) throw Error(text({"clip_grad_norm_: expected norm_type > 0, got ", options.norm_type}));
}

/// Scales gradients whose norm is `norm`, which it returns.
inline double clip_to(const std::vector<AnyTensor>& params, double norm, double max_norm, const ClipOptions& options) {
  if (!std::isfinite(norm)) {
    if (options.error_if_nonfinite) throw Error(text({"clip_grad_norm_: the norm of the gradients is ", norm}));
  } else if (norm > max_norm) {
    const double scale = max_norm / norm;
    change_gradients("clip_grad_norm_", params, [&]<class T>(T g) { return T(double(g) * scale); });
  }
  return norm;
}

}  // namespace detail

/// Scales the gradients of `params` so that the norm of all of them together is at most `max_norm`; returns the
/// norm before, summed in double. If it is not finite, throws Error where asked to, else leaves the gradients
/// untouched. Throws Error for max_norm < 0 and norm_type <= 0. The scale is max_norm / norm, where PyTorch adds 1e-6
/// to the norm.
inline double clip_grad_norm_(const std::vector<AnyTensor>& params, double max_norm, const ClipOptions& options = {}) {
  detail::check_clip(max_norm, options);
  return detail::clip_to(params, detail::norm_of("clip_grad_norm_", params, options.norm_type), max_norm, options);
}

/// Parameters of which each rank has a part, such as a parallel::FullyShardedDataParallel.
template <class S>
concept Spread = requires(const S& s) {
  { s.parameters() } -> std::same_as<std::vector<AnyTensor>>;
  { s.of_all_ranks(1.0) } -> std::same_as<std::vector<double>>;
};

/// The same for parameters spread over ranks, by the norm of all ranks' gradients together. All ranks call it.
template <Spread S>
double clip_grad_norm_(const S& model, double max_norm, const ClipOptions& options = {}) {
  detail::check_clip(max_norm, options);
  const double p = options.norm_type;
  const std::vector<AnyTensor> params = model.parameters();
  double greatest = 0, sum = 0;
  const std::vector<double> norms = model.of_all_ranks(detail::norm_of("clip_grad_norm_", params, p));
  for (const double n : norms) {
    if (n > greatest || n != n) greatest = n;
  }
  if (std::isinf(p) || greatest == 0 || !std::isfinite(greatest)) {
    return detail::clip_to(params, greatest, max_norm, options);
  }
  for (const double n : norms) sum += std::pow(n / greatest, p);
  return detail::clip_to(params, greatest * std::pow(sum, 1 / p), max_norm, options);
}

/// Limits every element of the gradients to [-value, value]; NaN stays. Throws Error for value < 0.
inline void clip_grad_value_(const std::vector<AnyTensor>& params, double value) {
  if (!(value >= 0)) throw Error(text({"clip_grad_value_: expected a value >= 0, got ", value}));
  detail::change_gradients("clip_grad_value_", params, [&]<class T>(T g) {
    const T high = T(value), low = T(-value);
    return g > high ? high : g < low ? low : g;
  });
}

}  // namespace TENET_CONFIG
}  // namespace tenet::optim
