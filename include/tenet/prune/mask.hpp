// Pruned weights: a mask over the layer's own weight, which goes on training where the mask holds.
//
// What is pruned is named as a layer, a whole model, a weight, or several of them: weights(model.conv1, model.fc1).
#pragma once

#include <tenet/nn/module.hpp>
#include <tenet/nn/weight.hpp>
#include <tenet/ops/reduce.hpp>
#include <tenet/ops/select.hpp>

namespace tenet::prune {

/// The layer's own weight where `mask` holds, and 0 elsewhere, where no gradient arrives.
template <class T = float>
struct Masked final : nn::WeightFormat<T> {
  nn::Buffer<bool> mask;

  TENET_TAG explicit Masked(Tensor<bool> m) : mask(std::move(m)) {}
  TENET_TAG std::string_view name() const override { return "masked"; }
  TENET_TAG Shape shape() const override { return mask.shape(); }
  TENET_TAG Tensor<T> dense(const Tensor<T>& parameter) const override { return where(mask, parameter, T(0)); }
  TENET_TAG std::shared_ptr<nn::WeightFormat<T>> clone() const override { return std::make_shared<Masked>(*this); }
  TENET_TAG bool keeps_parameter() const override { return true; }
  TENET_TAG void collect(const std::string& prefix, std::vector<nn::StateSlot>& slots) override {
    slots.push_back(this->slot(prefix, "mask", mask));
  }
  /// A mask to be filled from a state. Throws nothing: loading compares the shapes.
  TENET_TAG static std::shared_ptr<nn::WeightFormat<T>> read(const Shape& shape, const nn::StateDict&) {
    return std::make_shared<Masked>(ones<bool>(shape));
  }
};

inline namespace TENET_CONFIG {

/// The weights of layers, models and weights, each once: a list to prune in place of one layer.
template <class T = float, class... X>
std::vector<nn::Weight<T>*> weights(X&... of);

namespace detail {

/// f(name, weight) for each weight of `x`.
template <class X, class F>
void each_weight(X& x, F f) {
  if constexpr (nn::IsWeight<X>) {
    f(std::string("weight"), x);
  } else if constexpr (nn::IsModule<X>) {
    x.each_weight("", f);
  } else {
    for (std::size_t i = 0; i < x.size(); ++i) f(text({"weight ", i}), *x[i]);
  }
}

/// The mask of a weight; null while it is dense. Throws Error for any other format.
template <class T>
Masked<T>* masked(const char* op, const std::string& name, const nn::Weight<T>& weight) {
  auto* format = dynamic_cast<Masked<T>*>(weight.format());
  if (weight.format() && !format) {
    throw Error(text({op, ": expected a dense or a pruned weight, but ", name, " is kept as ", weight.format_name()}));
  }
  if (!weight) throw Error(text({op, ": ", name, " is undefined"}));
  return format;
}

/// What is left of a weight.
template <class T>
Tensor<bool> mask_of(const char* op, const std::string& name, const nn::Weight<T>& weight) {
  const Masked<T>* format = masked(op, name, weight);
  return format ? static_cast<const Tensor<bool>&>(format->mask) : ones<bool>(weight.shape());
}

}  // namespace detail

template <class T, class... X>
std::vector<nn::Weight<T>*> weights(X&... of) {
  std::vector<nn::Weight<T>*> all;
  const auto add = [&](const std::string&, nn::Weight<T>& weight) {
    for (const nn::Weight<T>* w : all) {
      if (w == &weight) return;
    }
    all.push_back(&weight);
  };
  (detail::each_weight(of, add), ...);
  return all;
}

/// Whether a weight of `x` is pruned. See torch.nn.utils.prune.is_pruned.
template <class X>
bool is_pruned(X& x) {
  bool found = false;
  detail::each_weight(x, [&](const std::string&, auto& weight) { found = found || weight.format_name() == "masked"; });
  return found;
}

/// The part of the weights' elements (not of biases) that are 0, in any format; 0 without any element.
template <class X>
double sparsity(X& x) {
  const no_grad guard;
  std::int64_t left = 0, all = 0;
  detail::each_weight(x, [&](const std::string&, auto& weight) {
    left += count_nonzero(weight.dense()).item();
    all += weight.full_shape().numel();
  });
  return all ? double(all - left) / double(all) : 0;
}

/// Makes pruning permanent: each pruned weight is 0 where it was masked, and dense again. The parameter stays the same
/// tensor, which an optimizer may hold. Throws Error if none is pruned. See torch.nn.utils.prune.remove.
template <class X>
void remove(X& x) {
  const no_grad guard;
  if (!is_pruned(x)) throw Error("remove: nothing is pruned");
  detail::each_weight(x, [&](const std::string&, auto& weight) {
    if (weight.format_name() != "masked") return;
    weight.copy_(weight.dense());
    weight.set_format(nullptr);
  });
}

}  // namespace TENET_CONFIG
}  // namespace tenet::prune
