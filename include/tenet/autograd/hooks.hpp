// Functions called with the gradient of a tensor.
#pragma once

#include <tenet/autograd/node.hpp>

namespace tenet::autograd {

/// A list of hooks; each may replace the gradient by the tensor it returns.
struct HookList : GradientHooks {
  TENET_TAG ~HookList() override { delete next; }
  virtual AnyTensor call(const AnyTensor& gradient) = 0;
  HookList* next = nullptr;
};

inline namespace TENET_CONFIG {

template <class T, class Hook>
struct TypedHook final : HookList {
  explicit TypedHook(Hook h) : hook(std::move(h)) {}
  AnyTensor call(const AnyTensor& gradient) override {
    if constexpr (std::is_void_v<decltype(hook(Tensor<T>(gradient)))>) {
      hook(Tensor<T>(gradient));
      return {};
    } else {
      return hook(Tensor<T>(gradient));
    }
  }
  Hook hook;
};

/// Where the hooks of a tensor stand: a leaf's at the leaf, others' at the node that made it.
inline GradientHooks*& hooks_of(TensorImpl& t) { return t.node ? static_cast<Node*>(t.node.get())->hooks : t.hooks; }

/// Runs `hooks` in the order they were registered; throws ShapeError or DTypeError if one changes the shape or type.
inline AnyTensor run_hooks(GradientHooks* hooks, AnyTensor gradient) {
  for (auto* h = static_cast<HookList*>(hooks); h; h = h->next) {
    AnyTensor changed = h->call(gradient);
    if (!changed) continue;
    if (!(changed.shape() == gradient.shape())) {
      throw ShapeError(text({"hook: expected a gradient of shape ", gradient.shape(), ", got ", changed.shape()}));
    }
    if (changed.dtype() != gradient.dtype()) {
      throw DTypeError(
          text({"hook: expected a gradient of ", name(gradient.dtype()), ", got ", name(changed.dtype())}));
    }
    gradient = std::move(changed);
  }
  return gradient;
}

}  // namespace TENET_CONFIG
}  // namespace tenet::autograd

namespace tenet {

template <class T>
template <class Hook>
TENET_TAG inline void Tensor<T>::register_hook(Hook hook) const {
  if (!requires_grad()) throw Error("register_hook: the tensor takes part in no graph");
  auto** at = reinterpret_cast<autograd::HookList**>(&autograd::hooks_of(*impl()));
  while (*at) at = &(*at)->next;
  *at = new autograd::TypedHook<T, Hook>(std::move(hook));
}

template <class T>
TENET_TAG inline void Tensor<T>::retain_grad() const {
  if (!requires_grad()) throw Error("retain_grad: the tensor takes part in no graph");
  if (!impl()->node) return;
  impl()->retains_grad = true;
  impl()->node->retained = impl();
}

}  // namespace tenet
