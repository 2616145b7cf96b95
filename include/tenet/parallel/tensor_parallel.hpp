// Tensor parallelism: layers of which each rank has a part. Shoeybi et al., "Megatron-LM", 2019.
//   parallel::ColumnParallelLinear fc1(comm, 800, 500);  // each rank has its part of the 500
//   parallel::RowParallelLinear fc2(comm, 500, 10);      // and uses it here; the sum over the ranks is the result
//   y = fc2(relu(fc1(x)));
//
// All ranks give a model the same inputs. Each layer draws the layer that is not split, for a moment whole, and keeps
// its part: from one seed a model starts the same, and learns the same, on any number of ranks. What is not split stays
// the same on every rank, as long as it is computed from the same: clip gradients by value, not by a norm, which is
// each rank's own. Dropout outside of split layers drops the same on every rank, because all generators stand alike;
// between a column- and a row-parallel layer each rank so drops the same places of its part. To drop others on each
// rank, give it a generator of its own there: dropout(x, p, true, generator). Weights of these layers stay dense: what
// prunes, quantizes or adapts weights passes them by.
#pragma once

#include <tenet/nn/embedding.hpp>
#include <tenet/nn/linear.hpp>
#include <tenet/parallel/exchange.hpp>
#include <tenet/parallel/shard.hpp>

namespace tenet::parallel {

struct ColumnParallelOptions {
  bool bias = true;
  bool gather_output = false;  ///< all ranks get the whole output
};
struct RowParallelOptions {
  bool bias = true;
  bool input_is_parallel = true;  ///< the input is the rank's part, else the whole
};

inline namespace TENET_CONFIG {
namespace detail {

/// Throws Error on each rank where the ranks are about to make different layers, or draw different numbers for them.
inline void check_start(CommunicatorRef comm, const char* layer, std::int64_t in, std::int64_t out) {
  const GeneratorState s = default_generator().state();
  const std::string start =
      text({layer, "(", in, ", ", out, ") of seed ", s.seed, " after ", s.offset, " blocks of random numbers"});
  check_equal(comm, {hash_bytes(start.data(), start.size())}, "differ in a layer", [&](std::size_t) { return start; });
}

/// This rank's part of what a layer that is not split starts with.
template <class T>
nn::Parameter<T> start_of(const char* layer, const Tensor<T>& whole, const Shard& shard, CommunicatorRef comm) {
  if (!whole.defined()) return {};
  return nn::Parameter<T>(Tensor<T>(shard_of(whole, shard, comm, layer)));
}

}  // namespace detail
}  // namespace TENET_CONFIG

/// An nn::Linear whose outputs are split over the ranks: [..., in] -> [..., out / ranks], or with gather_output
/// [..., out]. A rank has weight [out / ranks, in] and bias [out / ranks]. Made by all ranks at once; throws ShapeError
/// where the ranks do not divide `out`, Error where they disagree. The communicator must outlive it and its graphs.
template <class T = float>
struct ColumnParallelLinear : nn::Module<ColumnParallelLinear<T>> {
  nn::Parameter<T> weight, bias;
  TENET_MODULE(weight, bias)

  TENET_TAG ColumnParallelLinear(CommunicatorRef comm, std::int64_t in, std::int64_t out,
                                 ColumnParallelOptions options = {})
      : comm_(comm), options_(options) {
    detail::check_start(comm, name, in, out);
    const nn::Linear<T> whole(in, out, {.bias = options.bias});
    weight = detail::start_of<T>(name, whole.weight, {0}, comm);
    bias = detail::start_of<T>(name, whole.bias, {0}, comm);
  }
  TENET_TAG Tensor<T> forward(const Tensor<T>& x) const {
    const Tensor<T> y = linear(copy_to(x, comm_), weight, bias);
    return options_.gather_output ? gather_from(y, comm_) : y;
  }

  TENET_TAG CommunicatorRef comm() const { return comm_; }
  template <class F>
  TENET_TAG static void each_shard(const F& f) {
    f("weight", Shard{0});
    f("bias", Shard{0});
  }

 private:
  static constexpr const char* name = "ColumnParallelLinear";
  CommunicatorRef comm_;
  ColumnParallelOptions options_;
};

/// An nn::Linear whose inputs are split over the ranks: [..., in / ranks], or without input_is_parallel [..., in],
/// -> [..., out] on each. A rank has weight [out, in / ranks] and the whole bias [out]. Made by all ranks at once;
/// throws ShapeError where the ranks do not divide `in`, Error where they disagree. The communicator must outlive it
/// and its graphs.
template <class T = float>
struct RowParallelLinear : nn::Module<RowParallelLinear<T>> {
  nn::Parameter<T> weight, bias;
  TENET_MODULE(weight, bias)

  TENET_TAG RowParallelLinear(CommunicatorRef comm, std::int64_t in, std::int64_t out, RowParallelOptions options = {})
      : comm_(comm), options_(options) {
    detail::check_start(comm, name, in, out);
    nn::Linear<T> whole(in, out, {.bias = options.bias});
    weight = detail::start_of<T>(name, whole.weight, {1}, comm);
    bias = std::move(whole.bias);
  }
  TENET_TAG Tensor<T> forward(const Tensor<T>& x) const {
    const Tensor<T> y = reduce_from(linear(options_.input_is_parallel ? x : scatter_to(x, comm_), weight), comm_);
    return bias.defined() ? y + bias : y;
  }

  TENET_TAG CommunicatorRef comm() const { return comm_; }
  template <class F>
  TENET_TAG static void each_shard(const F& f) {
    f("weight", Shard{1});
  }

 private:
  static constexpr const char* name = "RowParallelLinear";
  CommunicatorRef comm_;
  RowParallelOptions options_;
};

/// An nn::Embedding whose rows are split over the ranks: int64 [...] -> [..., d] on each. A rank has weight
/// [n / ranks, d]. Made by all ranks at once; throws ShapeError where the ranks do not divide `n`, Error where they
/// disagree, and in forward IndexError for an index that is no row. The communicator must outlive it and its graphs.
template <class T = float>
struct VocabParallelEmbedding : nn::Module<VocabParallelEmbedding<T>> {
  nn::Parameter<T> weight;
  TENET_MODULE(weight)

  TENET_TAG VocabParallelEmbedding(CommunicatorRef comm, std::int64_t n, std::int64_t d) : comm_(comm) {
    detail::check_start(comm, name, n, d);
    weight = detail::start_of<T>(name, nn::Embedding<T>(n, d).weight, {0}, comm);
  }
  TENET_TAG Tensor<T> forward(const Tensor<std::int64_t>& index) const {
    const std::int64_t rows = weight.size(0), d = weight.size(1), begin = comm_.rank() * rows;
    tenet::detail::check_index(index, {rows * comm_.size(), d}, {"embedding", 0});
    // A row of another rank is none here, and counts as 0 in the sum.
    const Tensor<std::int64_t> mine = flatten(index).clone();
    for (std::int64_t *i = mine.data(), *end = i + mine.numel(); i < end; ++i) {
      *i = *i >= begin && *i < begin + rows ? *i - begin : elsewhere;
    }
    const Tensor<std::int64_t> spread = tenet::detail::spread_index("embedding", mine, weight.shape(), 0);
    const Tensor<T>& table = weight;
    Dims sizes = index.shape();
    sizes.push_back(d);
    return view(
        reduce_from(apply<tenet::op::Gather>(table, spread, tenet::detail::Along{"embedding", 0, true, elsewhere}),
                    comm_),
        sizes);
  }

  TENET_TAG CommunicatorRef comm() const { return comm_; }
  template <class F>
  TENET_TAG static void each_shard(const F& f) {
    f("weight", Shard{0});
  }

 private:
  static constexpr const char* name = "VocabParallelEmbedding";
  static constexpr std::int64_t elsewhere = -1;
  CommunicatorRef comm_;
};

}  // namespace tenet::parallel
