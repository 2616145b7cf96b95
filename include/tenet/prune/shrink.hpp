// Physical shrinking: channels that structured pruning left without use disappear, and with them the inputs of the
// layer that follows.
//
// The layers get new, smaller parameters: make optimizers afterwards. A forward() that names sizes, as
// view({-1, 50 * 4 * 4}), has to be written without: flatten(x, 1).
#pragma once

#include <tenet/nn/activation.hpp>
#include <tenet/nn/container.hpp>
#include <tenet/nn/conv.hpp>
#include <tenet/nn/dropout.hpp>
#include <tenet/nn/flatten.hpp>
#include <tenet/nn/linear.hpp>
#include <tenet/nn/norm.hpp>
#include <tenet/nn/pooling.hpp>
#include <tenet/ops/index.hpp>
#include <tenet/prune/mask.hpp>

namespace tenet::prune {
inline namespace TENET_CONFIG {

namespace detail {

using Channels = Tensor<std::int64_t>;

/// Leaves entries `keep` of dimension `dim` of the weight seen in shape `as`, then of shape `to`.
template <class T>
void keep_channels(nn::Weight<T>& weight, const Shape& as, int dim, const Channels& keep, const Shape& to) {
  const auto part = [&](const auto& x) { return reshape(index_select(reshape(x, as), dim, keep), to); };
  const bool trains = weight.requires_grad();
  const Tensor<bool> mask = weight.format() ? part(mask_of("shrink", "weight", weight)) : Tensor<bool>();
  weight = nn::Weight<T>(part(static_cast<const Tensor<T>&>(weight)));
  weight.requires_grad_(trains);
  if (mask && !all(mask).item()) weight.set_format(std::make_shared<Masked<T>>(mask));
}

/// Leaves entries `keep` of what a layer has for each of its outputs, if it is defined.
template <class T, bool Trains>
void keep_channels(nn::ModuleTensor<T, Trains>& t, const Channels& keep) {
  if (!t.defined()) return;
  const bool trains = t.requires_grad();
  t = nn::ModuleTensor<T, Trains>(index_select(t.detach(), 0, keep));
  if constexpr (Trains) t.requires_grad_(trains);
}
template <class M>
void keep_channels_between(M& layer, const Channels& keep) {
  if constexpr (nn::IsBatchNorm<M>) {
    layer.num_features = keep.numel();
    keep_channels(layer.weight, keep);
    keep_channels(layer.bias, keep);
    keep_channels(layer.running_mean, keep);
    keep_channels(layer.running_var, keep);
  }
}

/// What a layer makes of channels [channels] that are the same everywhere; a batch normalization in evaluation.
template <class T, class M>
Tensor<T> constant_behind(M& layer, const Tensor<T>& x) {
  if constexpr (nn::IsBatchNorm<std::remove_const_t<M>>) {
    if (layer.is_folded()) return x;
    return view(batch_norm(view(x, {1, -1}), layer.running_mean, layer.running_var, layer.weight, layer.bias, false, 0,
                           layer.options.eps),
                {-1});
  } else {
    return layer(x);
  }
}
/// Adds the channels that a batch normalization scales by 0.
template <class M>
void find_dead(const M& layer, Tensor<bool>& dead) {
  if constexpr (nn::IsBatchNorm<M>) {
    if (layer.weight) dead = dead | (layer.weight.detach() == 0);
  }
}

/// Whether a layer adds zeros around its input, so that a constant channel is none at the edges.
template <class Layer>
bool pads(const Layer& layer) {
  if constexpr (requires { layer.options.padding; }) return layer.options.padding.h || layer.options.padding.w;
  else return false;
}
template <class Layer>
void check_groups(const Layer& layer) {
  if constexpr (requires { layer.options.groups; }) {
    if (layer.options.groups != 1) {
      throw Error(text({"shrink: expected a convolution of one group, got ", layer.options.groups}));
    }
  }
}

/// shrink(); unless `known`, a channel goes only if its bias is 0.
template <class T, bool known, class A, class B, class... F>
std::int64_t shrink_pair(A& first, B& next, F&... between) {
  const no_grad guard;
  check_groups(first);
  check_groups(next);
  masked("shrink", "first.weight", first.weight);
  masked("shrink", "next.weight", next.weight);
  const Tensor<T> w = first.weight.dense(), v = next.weight.dense();
  const std::int64_t channels = w.size(0), inputs = v.size(1), outputs = v.size(0);
  if (channels == 0 || outputs == 0 || inputs % channels || ((v.dim() == 4 || w.dim() == 2) && inputs != channels)) {
    throw ShapeError(
        text({"shrink: the inputs of a weight ", v.shape(), " are not those that come from a weight ", w.shape()}));
  }
  const std::int64_t rest = v.numel() / outputs / channels;
  const Tensor<T> by_channel = reshape(v, {outputs, channels, rest});
  // A channel without weights is the same everywhere: what the layers between make of its bias.
  Tensor<bool> dead = !any(reshape(w, {channels, -1}), {1});
  (find_dead(between, dead), ...);
  const Tensor<bool> unused = !any(by_channel, {0, 2});
  Tensor<T> constant = first.bias ? first.bias.detach().clone() : zeros<T>({channels});
  ((constant = constant_behind<T>(between, constant)), ...);
  const Tensor<bool> silent = constant == T(0);
  const bool folds = known && next.bias && !pads(next);
  const Tensor<bool> goes = unused | (dead & (folds ? ones<bool>({channels}) : silent));
  Channels keep = select(nonzero(!goes), 1, 0);
  if (keep.numel() == 0) keep = zeros<std::int64_t>({1});
  if (keep.numel() == channels) return 0;
  if (folds) {
    const Tensor<bool> folded = index_fill(goes & !unused, 0, keep, false);
    next.bias.add_(sum(by_channel * view(where(folded, constant, T(0)), {1, channels, 1}), {1, 2}));
  }
  Dims first_shape = w.shape(), next_shape = v.shape();
  first_shape[0] = keep.numel();
  next_shape[1] = inputs / channels * keep.numel();
  keep_channels(first.weight, w.shape(), 0, keep, first_shape);
  keep_channels(next.weight, {outputs, channels, rest}, 1, keep, next_shape);
  keep_channels(first.bias, keep);
  (keep_channels_between(between, keep), ...);
  return channels - keep.numel();
}

template <class X, class... Of>
inline constexpr bool one_of = (std::is_same_v<X, Of> || ...);

/// Layers that map each element by itself.
template <class M>
inline constexpr bool is_activation =
    one_of<M, nn::ReLU, nn::LeakyReLU, nn::ELU, nn::GELU, nn::SiLU, nn::Sigmoid, nn::Hardtanh, nn::ReLU6, nn::SELU,
           nn::Hardswish, nn::Mish, nn::Tanh, nn::Softplus>;
/// Layers that keep channels apart, and in their order, and a constant one as it is.
template <class M>
inline constexpr bool is_neutral = one_of<M, nn::MaxPool2d, nn::Flatten, nn::Dropout, nn::Identity>;

template <class M>
concept WeightLayer = requires(M& m) {
  requires nn::IsWeight<decltype(m.weight)>;
  m.bias;
};

/// The activations and batch normalizations among layers [from, to) of a Sequential.
template <std::size_t from, std::size_t to, class Net>
auto between(Net& net) {
  if constexpr (from == to) {
    return std::tuple<>();
  } else {
    auto& layer = net.template get<from>();
    using Layer = std::remove_reference_t<decltype(layer)>;
    if constexpr (is_neutral<Layer>) return between<from + 1, to>(net);
    else return std::tuple_cat(std::tie(layer), between<from + 1, to>(net));
  }
}

/// Whether the outputs of `first` become the inputs of `next` channel by channel: those of a Linear as they are, those
/// of a Conv2d before a Linear once they are flattened.
template <bool flattened, class A, class B>
bool is_fed(const A& first, const B& next) {
  const Shape w = first.weight.full_shape(), v = next.weight.full_shape();
  return w.size() == 2 ? v[1] == w[0] : v.size() == 4 || flattened;
}
template <std::size_t from, std::size_t to, class... M>
inline constexpr bool has_flatten = []<std::size_t... K>(std::index_sequence<K...>) {
  return (std::is_same_v<std::tuple_element_t<from + K, std::tuple<M...>>, nn::Flatten> || ...);
}
(std::make_index_sequence<to - from>());

/// Shrinks layer I with the next one that has weights, J at the least; then that one with its next.
template <std::size_t I, std::size_t J, class... M>
std::int64_t shrink_from(nn::Sequential<M...>& net) {
  if constexpr (J < sizeof...(M)) {
    auto& first = net.template get<I>();
    auto& layer = net.template get<J>();
    using First = std::remove_cvref_t<decltype(first)>;
    using Layer = std::remove_cvref_t<decltype(layer)>;
    if constexpr (!WeightLayer<First>) {
      return shrink_from<J, J + 1>(net);
    } else if constexpr (WeightLayer<Layer>) {
      using T = element_t<decltype(first.weight)>;
      if (!is_fed<has_flatten<I + 1, J, M...>>(first, layer)) return shrink_from<J, J + 1>(net);
      const std::int64_t removed = std::apply(
          [&](auto&... layers) { return shrink_pair<T, true>(first, layer, layers...); }, between<I + 1, J>(net));
      return removed + shrink_from<J, J + 1>(net);
    } else if constexpr (is_activation<Layer> || is_neutral<Layer> || nn::IsBatchNorm<Layer>) {
      if constexpr (std::is_same_v<Layer, nn::Flatten>) {
        if (layer.start_dim != 1 || layer.end_dim != -1) return shrink_from<J, J + 1>(net);
      }
      if constexpr (nn::IsBatchNorm<Layer>) {  // not one of features that were channels, nor of a batch's statistics
        const bool follows = layer.running_mean && layer.num_features == first.weight.full_shape()[0];
        if (!layer.is_folded() && !follows) return shrink_from<J, J + 1>(net);
      }
      return shrink_from<I, J + 1>(net);
    } else {
      return shrink_from<J, J + 1>(net);
    }
  } else {
    return 0;
  }
}

}  // namespace detail

/// Removes the output channels of `first` without which `next`, the layer that reads them, answers the same, and
/// returns how many. Those are channels whose weights are all 0, and channels for which all weights of `next` are 0;
/// one channel stays. Layers are Conv2d of one group and Linear; if `next` is Linear behind a flattened image, each
/// channel gives it as many features in a row. Masks shrink with the weights.
///
/// `between` are the activations and batch normalizations between the layers, in their order, such as `bn1,
/// nn::ReLU()`: a channel without weights, or one that a batch normalization scales by 0, is what they make of its bias
/// everywhere, in evaluation, which is added to the bias of `next`. If `next` has no bias, or pads its input, channels
/// for which that is not 0 stay. Batch normalizations lose the channels too. Pooling, dropout and flattening in between
/// do not count. Answers differ by rounding only.
///
/// Throws ShapeError if the layers' sizes do not fit, Error for groups, for weights neither dense nor pruned and for
/// batch normalizations without running statistics.
template <class A, class B, class... F>
requires(sizeof...(F) > 0) std::int64_t shrink(A& first, B& next, F&&... between) {
  return detail::shrink_pair<element_t<decltype(first.weight)>, true>(first, next, between...);
}
/// The same behind any activation that is 0 at 0: a channel without weights stays unless its bias is 0 too.
template <class A, class B>
std::int64_t shrink(A& first, B& next) {
  return detail::shrink_pair<element_t<decltype(first.weight)>, false>(first, next);
}

/// The same for each two layers with weights in a row, where activations, batch normalizations, MaxPool2d, Dropout,
/// Flatten(1) and Identity alone stand between them. Returns the number of channels removed.
template <class... M>
std::int64_t shrink(nn::Sequential<M...>& net) {
  if constexpr (sizeof...(M) > 0) return detail::shrink_from<0, 1>(net);
  else return 0;
}

}  // namespace TENET_CONFIG
}  // namespace tenet::prune
