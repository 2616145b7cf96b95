// Multi-head attention.
#pragma once

#include <tenet/nn/linear.hpp>
#include <tenet/ops/attention.hpp>

namespace tenet::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;        ///< of the attention weights, in training
  bool bias = true;          ///< of the projections
  bool batch_first = false;  ///< [N, L, E] instead of [L, N, E], of inputs and output
};

/// What queries do not attend to; both masks may be undefined.
struct AttentionMasks {
  Tensor<bool> key_padding_mask = {};  ///< [N, S], or [S] without a batch: true where a key is padding
  Tensor<bool> attn_mask = {};         ///< [L, S]: true where a query does not attend to a key
  bool is_causal = false;              ///< query i attends to keys 0 to i only
};

inline namespace TENET_CONFIG {
namespace detail {

/// The projections of queries, keys and values, one below the other: [3 E, E].
template <class T>
Tensor<T> draw_in_projection(std::int64_t embed_dim) {
  Tensor<T> w = empty<T>({3 * embed_dim, embed_dim});
  init::xavier_uniform_(w);
  return w;
}

inline void check_heads(const char* layer, std::int64_t embed_dim, std::int64_t heads, double dropout) {
  if (heads < 1 || embed_dim < 1 || embed_dim % heads) {
    throw ShapeError(
        text({layer, ": expected an embed_dim that the heads divide, got ", embed_dim, " and ", heads, " heads"}));
  }
  if (!(dropout >= 0 && dropout <= 1)) throw Error(text({layer, ": expected a dropout in [0, 1], got ", dropout}));
}

/// The heads of MultiheadAttention, side by side, before the output's projection.
/// weight [3 F, E] and bias [3 F] or undefined project to `heads` heads of F / heads features each.
template <class T>
Tensor<T> attend(const Tensor<T>& query, const Tensor<T>& key, const Tensor<T>& value, const Tensor<T>& weight,
                 const Tensor<T>& bias, std::int64_t heads, const AttentionMasks& masks, bool batch_first,
                 double dropout_p) {
  if (query.dim() == 2) {  // no batch
    AttentionMasks one = masks;
    if (masks.key_padding_mask.defined()) one.key_padding_mask = unsqueeze(masks.key_padding_mask, 0);
    const Tensor<T> q = unsqueeze(query, 0), k = key.is(query) ? q : unsqueeze(key, 0),
                    v = value.is(key) ? k : unsqueeze(value, 0);
    return squeeze(attend(q, k, v, weight, bias, heads, one, true, dropout_p), 0);
  }
  if (query.dim() != 3 || key.dim() != 3 || value.dim() != 3) {
    throw ShapeError(text({"MultiheadAttention: expected inputs of 3 dimensions, or 2 without a batch, got ",
                           query.shape(), ", ", key.shape(), " and ", value.shape()}));
  }
  // Each of them as [N, heads, length, features of a head].
  const auto split = [&](const Tensor<T>& x) {
    const Tensor<T> each = unflatten(x, -1, {heads, x.size(-1) / heads});
    return batch_first ? transpose(each, 1, 2) : permute(each, {1, 2, 0, 3});
  };
  Tensor<T> q, k, v;
  if (key.is(query) && value.is(query)) {
    const std::vector<Tensor<T>> parts = chunk(linear(query, weight, bias), 3, -1);
    q = split(parts[0]), k = split(parts[1]), v = split(parts[2]);
  } else {
    const std::int64_t f = weight.size(0) / 3;
    const auto project = [&](const Tensor<T>& x, std::int64_t i) {
      return split(linear(x, narrow(weight, 0, i * f, f), bias.defined() ? narrow(bias, 0, i * f, f) : bias));
    };
    q = project(query, 0), k = project(key, 1), v = project(value, 2);
  }
  Tensor<bool> open = masks.attn_mask;
  if (masks.key_padding_mask.defined()) {
    if (!(masks.key_padding_mask.shape() == Shape{k.size(0), k.size(2)})) {
      throw ShapeError(text({"MultiheadAttention: expected a key_padding_mask [", k.size(0), ", ", k.size(2), "], got ",
                             masks.key_padding_mask.shape()}));
    }
    const Tensor<bool> padding = unflatten(masks.key_padding_mask, 0, {k.size(0), 1, 1});
    open = open.defined() ? logical_or(open, padding) : padding;
  }
  if (open.defined()) open = logical_not(open);
  const Tensor<T> y =
      scaled_dot_product_attention(q, k, v, open, {.is_causal = masks.is_causal, .dropout_p = dropout_p});
  return flatten(batch_first ? transpose(y, 1, 2) : permute(y, {2, 0, 1, 3}), -2);
}

}  // namespace detail
}  // namespace TENET_CONFIG

/// Queries [L, N, E] attend to keys and values [S, N, E], in `heads` groups of features; -> [L, N, E]. With
/// batch_first, [N, L, E] and [N, S, E] -> [N, L, E]; a batch of one may be left out: [L, E] and [S, E] -> [L, E].
///   auto y = attention(x, x, x, nn::AttentionMasks{.is_causal = true});
/// in_proj_weight [3 E, E], the projections of queries, keys and values, starts Glorot-uniform, the projection of the
/// output as a Linear, biases at 0. Throws ShapeError unless heads divide E and for inputs that do not fit, Error
/// unless dropout is in [0, 1]. See torch.nn.MultiheadAttention, whose weights are not returned here.
template <class T = float>
struct MultiheadAttention : Module<MultiheadAttention<T>> {
  Parameter<T> in_proj_weight, in_proj_bias;
  Linear<T> out_proj;
  std::int64_t num_heads;
  MultiheadAttentionOptions options;
  TENET_MODULE(in_proj_weight, in_proj_bias, out_proj)

  TENET_TAG MultiheadAttention(std::int64_t embed_dim, std::int64_t heads, MultiheadAttentionOptions o = {})
      : in_proj_weight(checked(embed_dim, heads, o)),
        out_proj(embed_dim, embed_dim, {.bias = o.bias}),
        num_heads(heads),
        options(o) {
    if (!o.bias) return;
    in_proj_bias = Parameter<T>(zeros<T>({3 * embed_dim}));
    init::zeros_(out_proj.bias);
  }
  TENET_TAG Tensor<T> forward(const Tensor<T>& query, const Tensor<T>& key, const Tensor<T>& value,
                              const AttentionMasks& masks = {}) const {
    return out_proj.forward(detail::attend<T>(query, key, value, in_proj_weight, in_proj_bias, num_heads, masks,
                                              options.batch_first, this->is_training() ? options.dropout : 0));
  }

 private:
  TENET_TAG static Tensor<T> checked(std::int64_t embed_dim, std::int64_t heads, const MultiheadAttentionOptions& o) {
    detail::check_heads("MultiheadAttention", embed_dim, heads, o.dropout);
    return detail::draw_in_projection<T>(embed_dim);
  }
};

}  // namespace tenet::nn
