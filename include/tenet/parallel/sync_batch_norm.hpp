// Synchronized batch normalization: the statistics of a batch of which each rank has a part.
//   parallel::sync_batch_norm_(model, comm);
//   parallel::DistributedDataParallel ddp(model, comm);
#pragma once

#include <tenet/nn/norm.hpp>
#include <tenet/parallel/communicator.hpp>

namespace tenet::parallel {
inline namespace TENET_CONFIG {

namespace detail {

template <Communicator C>
struct RankExchange final : BatchExchange {
  C& comm;
  explicit RankExchange(C& c) : comm(c) {}

  void merge(BatchMoments* moments, std::int64_t channels) override {
    std::vector<BatchMoments> all(std::size_t(channels * comm.size()));
    comm.all_gather(moments, all.data(), channels * std::int64_t(sizeof(BatchMoments)), "statistics of batch_norm");
    for (std::int64_t c = 0; c < channels; ++c) {
      cpu::Moments<double> sum = cpu::Var::identity<double>();
      for (std::int64_t i = c; i < std::int64_t(all.size()); i += channels) {
        const BatchMoments& m = all[std::size_t(i)];
        sum = cpu::Var{}.merge(sum, cpu::Moments<double>{m.count, m.mean, m.deviation});
      }
      moments[c] = {sum.count, sum.mean, sum.deviation};
    }
  }
  // A rank's loss counts by its examples, and so do gradients that come from another's.
  void sum(double* data, std::int64_t n, std::int64_t examples) override {
    for (std::int64_t i = 0; i < n; ++i) data[i] *= double(examples);
    comm.all_reduce(data, n, "gradients of batch_norm");
    for (std::int64_t i = 0; i < n && examples; ++i) data[i] /= double(examples);
  }
};

}  // namespace detail

/// Makes the batch normalizations in `model`, in training, take mean, variance and running statistics over the parts of
/// a batch that all ranks have, however uneven. All ranks then call forward and backward equally often and in the same
/// order. Gradients are those of the mean of the ranks' losses weighted by their examples, as DistributedDataParallel
/// makes it of losses that are means. All ranks get the same statistics, bit by bit.
///
/// Copies of the model do so too. The communicator must outlive them, and the model its graphs; `layer.exchange = {}`
/// ends it. Gradients of gradients (create_graph) throw NotImplemented. See
/// torch.nn.SyncBatchNorm.convert_sync_batchnorm.
template <nn::IsModule M, Communicator C>
M& sync_batch_norm_(M& model, C& comm) {
  const auto exchange = std::make_shared<detail::RankExchange<C>>(comm);
  model.apply([&]<class X>(X& m) {
    if constexpr (nn::IsBatchNorm<X>) m.exchange = exchange;
  });
  return model;
}

}  // namespace TENET_CONFIG
}  // namespace tenet::parallel
