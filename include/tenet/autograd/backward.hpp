// The ways to ask for gradients: tensor.backward(), autograd::backward() and autograd::grad().
#pragma once

#include <tenet/autograd/engine.hpp>

namespace tenet::autograd {

template <class T>
struct GradOptions {
  std::vector<Tensor<T>> grad_outputs = {};  ///< one for each output, of its shape; ones for scalars if empty
  bool retain_graph = false;                 ///< keep the graph for another backward
  bool create_graph = false;                 ///< record the backward, for gradients of gradients
  bool allow_unused = false;                 ///< give an undefined tensor for an input the outputs do not depend on
};

inline namespace TENET_CONFIG {

namespace detail {

/// The gradient to start from at output `i`: the one given, or 1 for a scalar.
template <class T>
Tensor<T> start(const char* op, const Tensor<T>& output, const std::vector<Tensor<T>>& given, std::size_t i) {
  if (!output.requires_grad()) {
    throw Error(text({op, ": the output takes part in no graph (nothing it was made of requires a gradient)"}));
  }
  if (i < given.size()) {
    if (!(given[i].shape() == output.shape())) {
      throw ShapeError(text({op, ": expected a gradient of shape ", output.shape(), ", got ", given[i].shape()}));
    }
    return given[i];
  }
  if (output.numel() != 1) {
    throw ShapeError(
        text({op, ": only a scalar needs no gradient to start from, got an output of shape ", output.shape()}));
  }
  return ones<T>(output.shape());
}

template <class T>
void walk(const char* op, const std::vector<Tensor<T>>& outputs, const std::vector<Tensor<T>>& gradients,
          BackwardOptions options, std::vector<Capture>* captures) {
  if (!gradients.empty() && gradients.size() != outputs.size()) {
    throw Error(text({op, ": expected ", outputs.size(), " gradients for as many outputs, got ", gradients.size()}));
  }
  Walk w(options, captures);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    w.seed(outputs[i], start(op, outputs[i], gradients, i), grad_math<T>());
  }
  w.run();
}

}  // namespace detail

/// Adds the gradients of `outputs` to the .grad() of the leaves they were made of. `gradients` are those of
/// the outputs, of their shapes; scalars need none. Throws ShapeError and Error as backward() does.
template <class T>
void backward(const std::vector<Tensor<T>>& outputs, const std::vector<Tensor<T>>& gradients = {},
              BackwardOptions options = {}) {
  detail::walk("backward", outputs, gradients, options, nullptr);
}

/// The gradients of `outputs` with respect to `inputs`, leaves or not, in their order; no .grad() changes.
/// Throws Error if an input is not part of the graph, unless `allow_unused`.
/// See torch.autograd.grad.
template <class T>
std::vector<AnyTensor> grad(const std::vector<Tensor<T>>& outputs, const std::vector<AnyTensor>& inputs,
                            const GradOptions<T>& options = {}) {
  std::vector<Capture> captures;
  for (const AnyTensor& x : inputs) {
    Edge e(x.impl());
    captures.push_back({e.key(), e.level()});
    e.clear();  // the caller's handle keeps the tensor
  }
  detail::walk("grad", outputs, options.grad_outputs, {options.retain_graph, options.create_graph}, &captures);
  std::vector<AnyTensor> out;
  for (std::size_t i = 0; i < captures.size(); ++i) {
    if (!captures[i].gradient && !options.allow_unused) {
      throw Error(text({"grad: the outputs do not depend on input ", i, " of shape ", inputs[i].shape(),
                        "; pass {.allow_unused = true} to get an undefined tensor"}));
    }
    out.push_back(std::move(captures[i].gradient));
  }
  return out;
}

/// The same for one output and one input.
template <class T, class U>
Tensor<U> grad(const Tensor<T>& output, const Tensor<U>& input, const GradOptions<T>& options = {}) {
  return Tensor<U>(grad<T>(std::vector<Tensor<T>>{output}, std::vector<AnyTensor>{input}, options)[0]);
}

}  // namespace TENET_CONFIG
}  // namespace tenet::autograd

namespace tenet {

template <class T>
TENET_TAG inline void Tensor<T>::backward(BackwardOptions options) const {
  autograd::Walk walk(options, nullptr);
  walk.seed(*this, autograd::detail::start<T>("backward", *this, {}, 0), autograd::grad_math<T>());
  walk.run();
}

template <class T>
TENET_TAG inline void Tensor<T>::backward(const Tensor& gradient, BackwardOptions options) const {
  autograd::backward<T>({*this}, {gradient}, options);
}

}  // namespace tenet
