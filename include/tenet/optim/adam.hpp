// Adam and AdamW. Kingma and Ba, "Adam: a method for stochastic optimization", 2015; Loshchilov and Hutter,
// "Decoupled weight decay regularization", 2019; Reddi, Kale and Kumar, "On the convergence of Adam and beyond", 2018.
#pragma once

#include <tenet/optim/optimizer.hpp>

#include <cmath>

namespace tenet::optim {

/// How fast the running means of the gradient and of its square forget.
struct Betas {
  double gradient = 0.9, square = 0.999;
};

struct AdamOptions {
  double lr = 1e-3;
  Betas betas = {};
  double eps = 1e-8;
  double weight_decay = 0;  ///< L2: added to the gradient
  bool amsgrad = false;
  bool maximize = false;
};

struct AdamWOptions {
  double lr = 1e-3;
  Betas betas = {};
  double eps = 1e-8;
  double weight_decay = 1e-2;  ///< p shrinks by lr * weight_decay a step, whatever the gradient
  bool amsgrad = false;
  bool maximize = false;
};

inline namespace TENET_CONFIG {
namespace detail {

template <class Options>
void check_adam(const char* op, const Options& o) {
  const auto beta = [](double b) { return b >= 0 && b < 1; };
  if (!beta(o.betas.gradient) || !beta(o.betas.square)) {
    throw Error(text({op, ": expected betas in [0, 1), got ", o.betas.gradient, " and ", o.betas.square}));
  }
  if (!(o.eps >= 0) || !(o.weight_decay >= 0)) {
    throw Error(text({op, ": expected eps and weight_decay >= 0, got ", o.eps, " and ", o.weight_decay}));
  }
}

template <class Options>
void adam_update(const char* op, const Options& o, bool decoupled, const AnyTensor& p, const AnyTensor& grad,
                 ParamState& state) {
  const AnyTensor g = packed(grad);
  cpu::adam_update({.lr = o.lr,
                    .beta1 = o.betas.gradient,
                    .beta2 = o.betas.square,
                    .eps = o.eps,
                    .weight_decay = o.weight_decay,
                    .correction1 = 1 - std::pow(o.betas.gradient, double(state.step)),
                    .correction2 = 1 - std::pow(o.betas.square, double(state.step)),
                    .decoupled = decoupled,
                    .maximize = o.maximize},
                   update_arrays(op, p, g, state, o.amsgrad ? 0b111 : 0b11));
}

}  // namespace detail
}  // namespace TENET_CONFIG

/// p -= lr m / (sqrt(v) + eps) with the bias-corrected running means m of the gradient and v of its square.
/// Throws Error for options out of range. See torch.optim.Adam.
class Adam : public GroupedOptimizer<Adam, AdamOptions> {
 public:
  static constexpr const char* name = "Adam";
  static constexpr const char* state_names[] = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  static constexpr std::size_t states_needed = 2;

  TENET_TAG explicit Adam(const std::vector<AnyTensor>& params, const AdamOptions& options = {}) {
    add_param_group(params, options);
  }
  TENET_TAG static void check(const AdamOptions& o) { detail::check_adam(name, o); }
  TENET_TAG static void update(const AdamOptions& o, const AnyTensor& p, const AnyTensor& grad, ParamState& state) {
    detail::adam_update(name, o, false, p, grad, state);
  }
};

/// Adam whose weight decay acts on the parameters themselves. Throws Error for options out of range.
/// See torch.optim.AdamW.
class AdamW : public GroupedOptimizer<AdamW, AdamWOptions> {
 public:
  static constexpr const char* name = "AdamW";
  static constexpr const char* state_names[] = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  static constexpr std::size_t states_needed = 2;

  TENET_TAG explicit AdamW(const std::vector<AnyTensor>& params, const AdamWOptions& options = {}) {
    add_param_group(params, options);
  }
  TENET_TAG static void check(const AdamWOptions& o) { detail::check_adam(name, o); }
  TENET_TAG static void update(const AdamWOptions& o, const AnyTensor& p, const AnyTensor& grad, ParamState& state) {
    detail::adam_update(name, o, true, p, grad, state);
  }
};

}  // namespace tenet::optim
