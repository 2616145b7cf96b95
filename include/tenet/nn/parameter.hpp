// The tensors a module owns: parameters, which train, and buffers, which do not.
//
// A model is a value: copying it copies its parameters. (Copying a Tensor shares.) Moving keeps their identity,
// which an optimizer may hold.
#pragma once

#include <tenet/nn/state_dict.hpp>
#include <tenet/ops/copy.hpp>

namespace tenet::nn {

/// A copied parameter and its copy: ties between parameters survive Module::clone().
struct ClonedTensor {
  const TensorImpl* from;
  AnyTensor to;
};

}  // namespace tenet::nn

namespace tenet::state {
inline constinit thread_local std::vector<nn::ClonedTensor>* clones = nullptr;
}

namespace tenet::nn {

/// Lies in every parameter and buffer and holds its own address, mixed: so Module finds those that lie inside a
/// module but that its TENET_MODULE does not name.
class StateTag {
 public:
  TENET_TAG StateTag() : value_(at(this)) {}
  TENET_TAG StateTag(const StateTag&) : StateTag() {}
  TENET_TAG StateTag& operator=(const StateTag&) { return *this; }
  TENET_TAG ~StateTag() { value_ = 0; }
  /// The value of a tag at `address`.
  TENET_TAG static std::uintptr_t at(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) ^ std::uintptr_t(0x7E4E7A9B5D3C1F27);
  }

 private:
  volatile std::uintptr_t value_;  // read as bytes only
};

/// A tensor of a module, copied with it. See Parameter and Buffer.
template <class T, bool Trains>
class ModuleTensor : public Tensor<T> {
 public:
  static constexpr bool trains = Trains;

  TENET_TAG ModuleTensor() = default;
  TENET_TAG explicit ModuleTensor(Tensor<T> t) : Tensor<T>(std::move(t)) {
    if constexpr (Trains) this->requires_grad_();
  }
  TENET_TAG ModuleTensor(const ModuleTensor& o) : Tensor<T>(copy(o)) {}
  TENET_TAG ModuleTensor(ModuleTensor&& o) noexcept : Tensor<T>(std::move(static_cast<Tensor<T>&>(o))) {}
  TENET_TAG ModuleTensor& operator=(ModuleTensor o) noexcept {
    Tensor<T>::operator=(std::move(static_cast<Tensor<T>&>(o)));
    return *this;
  }

  /// Shares the tensor of `o` from now on, as tied weights do.
  TENET_TAG void tie(const ModuleTensor& o) { Tensor<T>::operator=(static_cast<const Tensor<T>&>(o)); }

  /// Drops its gradient, if it is defined.
  TENET_TAG void zero_grad() const {
    if (this->defined()) AnyTensor::zero_grad();
  }
  /// Adds itself under `name`, if it is defined.
  TENET_TAG TENET_COLD void collect(const std::string& name, std::vector<StateSlot>& slots) {
    if (*this) slots.push_back({name, this, Trains});
  }

 private:
  TENET_TAG TENET_COLD static Tensor<T> copy(const ModuleTensor& o) {
    if (!o.defined()) return {};  // ! of a Tensor<bool> is an operation
    if (state::clones) {
      for (const ClonedTensor& c : *state::clones) {
        if (c.from == o.impl()) return Tensor<T>(c.to);
      }
    }
    Tensor<T> t = o.detach().clone();
    if (o.impl()->requires_grad) t.requires_grad_();
    if (state::clones) state::clones->push_back({o.impl(), t});
    return t;
  }

  StateTag tag_;
};

/// A tensor that trains: a leaf that requires a gradient.
template <class T = float>
using Parameter = ModuleTensor<T, true>;

/// A tensor that belongs to the state of a module and does not train, such as a running mean.
template <class T = float>
using Buffer = ModuleTensor<T, false>;

inline namespace TENET_CONFIG {

template <class T, bool Trains>
void is_module_tensor(const ModuleTensor<T, Trains>*);

/// A Parameter, a Buffer or something derived from one, such as a Weight.
template <class X>
concept StateTensor = requires(std::remove_cvref_t<X>* p) {
  is_module_tensor(p);
};

}  // namespace TENET_CONFIG
}  // namespace tenet::nn
