// What the backward of an operation sees.
#pragma once

#include <tenet/autograd/node.hpp>

namespace tenet::autograd {
inline namespace TENET_CONFIG {

/// The kept tensors, the options, which gradients are wanted, and where they go:
///   template <class T> static void backward(Grad grad, const Tensor<T>& g) {
///     if (grad.wants(0)) grad[0] = g * grad.kept<T>(1);
///   }
/// A gradient may have a shape that the input broadcasts to: the engine sums it down.
class Grad {
 public:
  Grad(Node& node, AnyTensor* out) : node_(node), out_(out) {}

  /// Whether the gradient of input `i` is wanted.
  bool wants(int i) const { return bool(node_.edges()[i]); }
  int inputs() const { return node_.inputs; }
  /// Where the gradient of input `i` goes.
  AnyTensor& operator[](int i) const { return out_[i]; }
  /// The shape of input `i`, whose gradient is wanted.
  const Shape& input_shape(int i) const { return node_.edges()[i].shape(); }

  /// The k-th tensor that forward kept; throws Error if it was changed in place since.
  template <class T>
  Tensor<T> kept(int k) const {
    return Tensor<T>(checked(k));
  }
  /// The output, if forward kept it; part of the graph where the backward is recorded itself.
  template <class T>
  Tensor<T> output() const {
    ImplRef kept = checked(node_.kept - 1);
    if (!state::grad_enabled) return Tensor<T>(std::move(kept));
    ImplRef y = make_alias(*kept, kept->shape, kept->strides, 0);
    y->node = Ref<GraphNode>::share(&node_);
    return Tensor<T>(std::move(y));
  }

  /// What apply() was given after the tensors.
  template <class O>
  const O& options() const {
    return *static_cast<const O*>(node_.options());
  }

 private:
  ImplRef checked(int k) const {
    const Kept& kept = node_.kept_tensors()[k];
    if (kept.tensor && kept.tensor->storage->version != kept.version) throw_changed(kept);
    return ImplRef::share(kept.tensor);
  }
  [[noreturn]] TENET_COLD void throw_changed(const Kept& kept) const {
    throw Error(text({node_.type->name, ": a tensor of shape ", kept.tensor->shape,
                      " that backward needs was changed in place: it was kept at version ", kept.version,
                      " and is at version ", kept.tensor->storage->version}));
  }

  Node& node_;
  AnyTensor* out_;
};

}  // namespace TENET_CONFIG
}  // namespace tenet::autograd
