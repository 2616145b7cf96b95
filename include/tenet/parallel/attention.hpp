// Multi-head attention whose heads are split over ranks.
#pragma once

#include <tenet/nn/attention.hpp>
#include <tenet/parallel/tensor_parallel.hpp>

namespace tenet::parallel {

/// An nn::MultiheadAttention with heads / ranks of the heads on each rank: arguments, results and options are the same.
/// A rank has in_proj_weight [3 E / ranks, E], in_proj_bias [3 E / ranks] and an out_proj of its part of the inputs.
/// Each head's dropout in training is that of the head in its place on the other ranks; see tensor_parallel.hpp. Made
/// by all ranks at once; throws as nn::MultiheadAttention, ShapeError where the ranks do not divide the heads, Error
/// where they disagree. The communicator must outlive it and its graphs.
template <class T = float>
struct ParallelMultiheadAttention : nn::Module<ParallelMultiheadAttention<T>> {
  nn::Parameter<T> in_proj_weight, in_proj_bias;
  RowParallelLinear<T> out_proj;
  nn::MultiheadAttentionOptions options;
  TENET_MODULE(in_proj_weight, in_proj_bias, out_proj)

  TENET_TAG ParallelMultiheadAttention(CommunicatorRef comm, std::int64_t embed_dim, std::int64_t heads,
                                       nn::MultiheadAttentionOptions o = {})
      : in_proj_weight(start(comm, embed_dim, heads, o)),
        out_proj(comm, embed_dim, embed_dim, {.bias = o.bias}),
        options(o),
        heads_(heads / comm.size()) {
    if (!o.bias) return;
    in_proj_bias = nn::Parameter<T>(zeros<T>({in_proj_weight.size(0)}));
    nn::init::zeros_(out_proj.bias);
  }
  TENET_TAG Tensor<T> forward(const Tensor<T>& query, const Tensor<T>& key, const Tensor<T>& value,
                              const nn::AttentionMasks& masks = {}) const {
    const Tensor<T> q = copy_to(query, comm()), k = key.is(query) ? q : copy_to(key, comm()),
                    v = value.is(query) ? q
                        : value.is(key) ? k
                                        : copy_to(value, comm());
    return out_proj.forward(nn::detail::attend<T>(q, k, v, in_proj_weight, in_proj_bias, heads_, masks,
                                                  options.batch_first, this->is_training() ? options.dropout : 0));
  }

  TENET_TAG CommunicatorRef comm() const { return out_proj.comm(); }
  template <class F>
  TENET_TAG static void each_shard(const F& f) {
    f("in_proj_weight", Shard{0, 3});
    f("in_proj_bias", Shard{0, 3});
  }

 private:
  TENET_TAG static nn::Parameter<T> start(CommunicatorRef comm, std::int64_t embed_dim, std::int64_t heads,
                                          const nn::MultiheadAttentionOptions& o) {
    constexpr const char* name = "ParallelMultiheadAttention";
    nn::detail::check_heads(name, embed_dim, heads, o.dropout);
    if (heads % comm.size()) {
      throw ShapeError(text({name, ": expected heads that ", comm.size(), " ranks divide, got ", heads}));
    }
    detail::check_start(comm, name, embed_dim, heads);
    return detail::start_of<T>(name, nn::detail::draw_in_projection<T>(embed_dim), {0, 3}, comm);
  }
  std::int64_t heads_;  // of this rank
};

}  // namespace tenet::parallel
