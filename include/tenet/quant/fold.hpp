// Folding: a layer takes over the batch normalization that follows it.
//   model.eval();
//   quant::fold_batch_norm_(model.conv1, model.bn1);
//   quant::fold_batch_norm_(model);                      // what stands in a row in each nn::Sequential
// First of all: integers then stand for what the layer really gives, and training for int8 sees the weights that int8
// will have. The order is: train, fold, prepare_qat_, train on.
#pragma once

#include <tenet/nn/container.hpp>
#include <tenet/nn/conv.hpp>
#include <tenet/nn/linear.hpp>
#include <tenet/nn/norm.hpp>

namespace tenet::quant {
inline namespace TENET_CONFIG {

namespace detail {

template <class A, class B>
inline constexpr bool foldable = false;
template <class T>
inline constexpr bool foldable<nn::Conv2d<T>, nn::BatchNorm2d<T>> = true;
template <class T>
inline constexpr bool foldable<nn::Linear<T>, nn::BatchNorm1d<T>> = true;

template <class Layer, class Norm>
void check_fold(const Layer& layer, const Norm& norm) {
  if (norm.is_folded()) throw Error("fold_batch_norm: the normalization is folded already");
  if (norm.is_training()) throw Error("fold_batch_norm: expected evaluation mode: call eval() first");
  if (!norm.running_mean) throw Error("fold_batch_norm: expected a normalization with running statistics");
  if (layer.weight.format()) {
    throw Error(text({"fold_batch_norm: expected a dense weight, got one of format ", layer.weight.format_name()}));
  }
  if (layer.weight.size(0) != norm.num_features) {
    throw ShapeError(text({"fold_batch_norm: expected a normalization of the ", layer.weight.size(0),
                           " outputs of a weight ", layer.weight.shape(), ", got one of ", norm.num_features}));
  }
}

template <class Layer, class Norm>
void fold(Layer& layer, Norm& norm) {
  using T = element_t<decltype(layer.weight)>;
  const no_grad guard;
  Tensor<T> scale = rsqrt(norm.running_var + T(norm.options.eps)), bias = -norm.running_mean;
  if (norm.weight) scale = scale * norm.weight;
  if (layer.bias) bias = bias + layer.bias;
  bias = bias * scale;
  if (norm.bias) bias = bias + norm.bias;
  Dims by_output{scale.numel()};
  while (by_output.size() < layer.weight.dim()) by_output.push_back(1);
  const bool trains = layer.weight.requires_grad();
  layer.weight = nn::Weight<T>(layer.weight * view(scale, by_output));
  layer.bias = nn::Parameter<T>(bias);
  layer.weight.requires_grad_(trains);
  layer.bias.requires_grad_(trains);
  norm.fold();
}

/// f(layer, norm) for the neighbours in a Sequential that fold and have not yet.
template <class... M, class F>
void each_foldable(nn::Sequential<M...>& net, const F& f) {
  const auto pair = [&]<class A, class B>(A& layer, B& norm) {
    if constexpr (foldable<A, B>) {
      if (!norm.is_folded()) f(layer, norm);
    }
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) { (pair(net.template get<I>(), net.template get<I + 1>()), ...); }
  (std::make_index_sequence < sizeof...(M) ? sizeof...(M) - 1 : 0 > ());
}
template <class M, class F>
void each_foldable(M&, const F&) {}

}  // namespace detail

/// Makes `layer` give in evaluation what `norm` behind it gives, and `norm` the identity without parameters; so the
/// names of `norm` leave the state, and those of a bias enter it. The layer gets new parameters: make optimizers
/// afterwards. Of a Linear, whose output must be [n, channels]. Throws Error in training mode, for a `norm` without
/// running statistics or folded already, and for weights of a format (fold before quantizing, and after
/// prune::remove); ShapeError if the channels do not fit. See torch.nn.utils.fusion.fuse_conv_bn_eval.
template <class T>
void fold_batch_norm_(nn::Conv2d<T>& layer, nn::BatchNorm2d<T>& norm) {
  detail::check_fold(layer, norm);
  detail::fold(layer, norm);
}
template <class T>
void fold_batch_norm_(nn::Linear<T>& layer, nn::BatchNorm1d<T>& norm) {
  detail::check_fold(layer, norm);
  detail::fold(layer, norm);
}

/// The same for each Conv2d with a BatchNorm2d behind it, and Linear with BatchNorm1d, in `model` if it is a
/// Sequential, and in each Sequential inside it. Returns how many; where it throws, nothing has changed.
template <nn::IsModule M>
std::int64_t fold_batch_norm_(M& model) {
  const auto each = [&](const auto& f) {
    model.each_module([&](const std::string&, auto& m) { detail::each_foldable(m, f); });
  };
  std::int64_t count = 0;
  each([](auto& layer, auto& norm) { detail::check_fold(layer, norm); });
  each([&](auto& layer, auto& norm) { detail::fold(layer, norm), ++count; });
  return count;
}

}  // namespace TENET_CONFIG
}  // namespace tenet::quant
