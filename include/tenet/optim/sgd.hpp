// Stochastic gradient descent.
#pragma once

#include <tenet/optim/optimizer.hpp>

namespace tenet::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;  ///< L2: added to the gradient
  bool nesterov = false;
  bool maximize = false;
};

/// p -= lr b, where b = momentum b + (1 - dampening) (g + weight_decay p), and b = g + weight_decay p in the first
/// step with a momentum; with `nesterov`, p -= lr (g + momentum b). Throws Error for options out of range. See
/// torch.optim.SGD.
class SGD : public GroupedOptimizer<SGD, SGDOptions> {
 public:
  static constexpr const char* name = "SGD";
  static constexpr const char* state_names[] = {"momentum_buffer"};
  static constexpr std::size_t states_needed = 0;

  TENET_TAG explicit SGD(const std::vector<AnyTensor>& params, const SGDOptions& options = {}) {
    add_param_group(params, options);
  }

  TENET_TAG static void check(const SGDOptions& o) {
    if (!(o.momentum >= 0) || !(o.weight_decay >= 0)) {
      throw Error(text({"SGD: expected momentum and weight_decay >= 0, got ", o.momentum, " and ", o.weight_decay}));
    }
    if (o.nesterov && (o.momentum == 0 || o.dampening != 0)) {
      throw Error("SGD: nesterov needs a momentum and no dampening");
    }
  }
  TENET_TAG static void update(const SGDOptions& o, const AnyTensor& p, const AnyTensor& grad, ParamState& state) {
    const bool first = !state.tensors[0];
    const AnyTensor g = packed(grad);
    cpu::sgd_update({.lr = o.lr,
                     .momentum = o.momentum,
                     .dampening = o.dampening,
                     .weight_decay = o.weight_decay,
                     .nesterov = o.nesterov,
                     .maximize = o.maximize,
                     .first = first},
                    detail::update_arrays(name, p, g, state, o.momentum != 0 ? 0b1 : 0));
  }
};

}  // namespace tenet::optim
