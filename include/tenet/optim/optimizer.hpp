// What all optimizers have in common: groups of parameters with options, and a state a parameter.
#pragma once

#include <tenet/kernels/cpu/update.hpp>
#include <tenet/nn/state_dict.hpp>
#include <tenet/ops/copy.hpp>

#include <array>
#include <cstring>

namespace tenet::optim {

/// What an optimizer remembers of one parameter. That of half and bfloat16 is in float, and they are trained there: a
/// step too small for them is not lost.
struct ParamState {
  std::int64_t step = 0;             ///< updates so far
  std::array<AnyTensor, 3> tensors;  ///< of the parameter's shape; which is which, its optimizer knows
  AnyTensor master;                  ///< of a parameter of half precision: what it rounds, in float
};

/// Base of optimizers, as schedules, clipping and checkpoints see them.
class Optimizer {
 public:
  TENET_TAG virtual ~Optimizer() = default;

  /// Updates every parameter that has a gradient.
  virtual void step() = 0;
  /// Drops the gradients.
  TENET_TAG void zero_grad() {
    for (const AnyTensor& p : params_) p.zero_grad();
  }

  /// All parameters, group after group.
  TENET_TAG const std::vector<AnyTensor>& parameters() const { return params_; }
  virtual std::size_t num_groups() const = 0;
  /// The learning rate of a group; throws IndexError outside.
  virtual double lr(std::size_t group = 0) const = 0;
  /// Throws IndexError outside, Error unless lr >= 0.
  virtual void set_lr(double lr, std::size_t group = 0) = 0;

  /// The whole state by name: "group.0.lr", "state.3.step", "state.3.momentum_buffer", "state.3.master". The tensors
  /// are the optimizer's own.
  TENET_TAG nn::StateDict state_dict() const {
    nn::StateDict out;
    for (std::size_t g = 0; g < num_groups(); ++g) out.emplace_back(text({"group.", g, ".lr"}), scalar(lr(g)));
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (!states_[i].step) continue;
      out.emplace_back(state_key(i, "step"), scalar(states_[i].step));
      for (std::size_t k = 0; k < states_[i].tensors.size(); ++k) {
        if (states_[i].tensors[k]) out.emplace_back(state_key(i, state_name(k)), states_[i].tensors[k]);
      }
      if (states_[i].master) out.emplace_back(state_key(i, "master"), states_[i].master);
    }
    return out;
  }
  /// Takes over copies of `dict`. Throws Error if it is not of an optimizer of this kind over such parameters;
  /// nothing is changed then.
  TENET_TAG void load_state_dict(const nn::StateDict& dict) {
    std::vector<double> rates;
    for (std::size_t g = 0; g < num_groups(); ++g) {
      rates.push_back(Tensor<double>(require(dict, text({"group.", g, ".lr"}))).item());
      check_lr("optimizer", rates.back());
    }
    std::vector<ParamState> states(states_.size());
    std::size_t used = rates.size();
    for (std::size_t i = 0; i < states.size(); ++i) {
      const std::string step_key = state_key(i, "step");
      const AnyTensor* step = nn::detail::find(dict, step_key);
      if (!step) continue;
      states[i].step = Tensor<std::int64_t>(*step).item();
      if (states[i].step < 1) throw Error(text({"optimizer: expected ", step_key, " >= 1, got ", states[i].step}));
      ++used;
      const AnyTensor& p = params_[i];
      const bool low = item_size(p.dtype()) == 2;
      const auto take = [&](const char* what, bool needed, AnyTensor& to) {
        const std::string key = state_key(i, what);
        if (needed) require(dict, key);
        const AnyTensor* t = nn::detail::find(dict, key);
        if (!t) return;
        const DType dtype = low ? DType::float32 : p.dtype();
        if (!(t->shape() == p.shape()) || t->dtype() != dtype) {
          throw Error(text({"optimizer: ", key, ": expected ", p.shape(), " of ", name(dtype), ", got ", t->shape(),
                            " of ", name(t->dtype())}));
        }
        to = AnyTensor(make_impl(p.shape(), dtype));
        nn::detail::copy_elements(*to.impl(), *t->impl());
        ++used;
      };
      for (std::size_t k = 0; k < states[i].tensors.size() && state_name(k); ++k) {
        take(state_name(k), needs_state(k), states[i].tensors[k]);
      }
      if (low) take("master", true, states[i].master);
    }
    if (used != dict.size()) {
      throw Error(text({"optimizer: the state has ", dict.size(), " entries, of which ", used, " are known here"}));
    }
    for (std::size_t g = 0; g < rates.size(); ++g) set_lr(rates[g], g);
    states_ = std::move(states);
  }

 protected:
  /// The name of the k-th tensor of a state, or null.
  virtual const char* state_name(std::size_t k) const = 0;
  /// Whether it is there from the first step on, whatever the options.
  virtual bool needs_state(std::size_t k) const = 0;

  TENET_TAG static void check_lr(const char* op, double lr) {
    if (!(lr >= 0)) throw Error(text({op, ": expected lr >= 0, got ", lr}));
  }
  TENET_TAG TENET_COLD void add_params(const std::vector<AnyTensor>& params) {
    std::vector<AnyTensor> all = params_;  // all or none
    for (const AnyTensor& p : params) {
      if (!is_floating(p.dtype()) || !p.is_leaf()) {
        throw Error(text({"optimizer: expected leaves of a floating type, got ", p.shape(), " of ", name(p.dtype()),
                          p.is_leaf() ? "" : " that an operation made"}));
      }
      if (!p.is_contiguous())
        throw Error(text({"optimizer: expected contiguous parameters, got strides ", p.strides()}));
      for (const AnyTensor& q : all) {
        if (q.is(p)) throw Error(text({"optimizer: a parameter of shape ", p.shape(), " was given twice"}));
      }
      all.push_back(p);
    }
    states_.resize(all.size());
    params_ = std::move(all);
  }

  std::vector<AnyTensor> params_;
  std::vector<ParamState> states_;

 private:
  TENET_TAG static std::string state_key(std::size_t i, const char* what) { return text({"state.", i, ".", what}); }
  TENET_TAG static const AnyTensor& require(const nn::StateDict& dict, const std::string& key) {
    if (const AnyTensor* t = nn::detail::find(dict, key)) return *t;
    throw Error(text({"optimizer: the state has no ", key}));
  }
};

/// An optimizer whose groups carry `Options`. `Self` gives check(options), update(options, parameter, gradient, state)
/// for one parameter of any floating type, the names of its states and how many of them every step has.
template <class Self, class Options>
class GroupedOptimizer : public Optimizer {
 public:
  /// Adds parameters with options of their own; those that are frozen may thaw later. Throws Error for options out of
  /// range, for tensors that are not leaves of a floating type, and for parameters given before.
  TENET_TAG TENET_COLD void add_param_group(const std::vector<AnyTensor>& params, const Options& options) {
    check_lr(Self::name, options.lr);
    Self::check(options);
    add_params(params);
    groups_.push_back({options, params_.size()});
  }

  TENET_TAG void step() override {
    std::size_t i = 0;
    for (const Group& group : groups_) {
      for (; i < group.end; ++i) {
        const AnyTensor& p = params_[i];
        if (!p.impl()->grad) continue;
        ++states_[i].step;
        Self::update(group.options, p, p.grad_any(), states_[i]);
        ++p.impl()->storage->version;
      }
    }
  }

  TENET_TAG std::size_t num_groups() const override { return groups_.size(); }
  TENET_TAG double lr(std::size_t group = 0) const override { return at(group).options.lr; }
  TENET_TAG void set_lr(double lr, std::size_t group = 0) override {
    check_lr(Self::name, lr);
    const_cast<Group&>(at(group)).options.lr = lr;
  }
  /// The options of a group, to be changed at will between steps; throws IndexError outside.
  TENET_TAG Options& options(std::size_t group = 0) { return const_cast<Group&>(at(group)).options; }

 protected:
  TENET_TAG const char* state_name(std::size_t k) const override {
    return k < std::size(Self::state_names) ? Self::state_names[k] : nullptr;
  }
  TENET_TAG bool needs_state(std::size_t k) const override { return k < Self::states_needed; }

 private:
  struct Group {
    Options options;
    std::size_t end;  // of its parameters in params_
  };
  TENET_TAG const Group& at(std::size_t group) const {
    if (group >= groups_.size()) throw IndexError(text({Self::name, ": group ", group, " of ", groups_.size()}));
    return groups_[group];
  }

  std::vector<Group> groups_;
};

inline namespace TENET_CONFIG {
namespace detail {

/// What a step of `op` reads and writes: a parameter, its gradient, the states whose bits are set in `used`, and the
/// master, which are made of zeros when first asked for. Throws DTypeError unless the parameter is of a floating type
/// and the gradient, which must be contiguous, of the same.
TENET_NOINLINE inline cpu::UpdateArrays update_arrays(const char* op, const AnyTensor& p, const AnyTensor& grad,
                                                      ParamState& state, unsigned used) {
  if (!is_floating(p.dtype()) || grad.dtype() != p.dtype()) {
    throw DTypeError(text({op, ": expected a parameter of a floating type and a gradient of the same, got ",
                           name(p.dtype()), " and ", name(grad.dtype())}));
  }
  const bool low = item_size(p.dtype()) == 2;
  const auto data = [&](AnyTensor& t) {
    if (!t) {
      t = AnyTensor(make_impl(p.shape(), low ? DType::float32 : p.dtype()));
      std::memset(t.data_ptr(), 0, t.impl()->storage->bytes);
    }
    return t.data_ptr();
  };
  cpu::UpdateArrays arrays{.dtype = p.dtype(), .n = p.numel(), .p = p.data_ptr(), .grad = grad.data_ptr()};
  for (unsigned k = 0; k < 3; ++k) {
    if (used >> k & 1) arrays.states[k] = data(state.tensors[k]);
  }
  if (low) arrays.master = data(state.master);
  return arrays;
}

}  // namespace detail
}  // namespace TENET_CONFIG
}  // namespace tenet::optim
