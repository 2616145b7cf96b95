// What checkpoints of trainings over ranks must do; the same for each engine. Each function runs on every rank.
#pragma once

#include <tenet/io/distributed_checkpoint.hpp>

#include "data/files.hpp"
#include "parallel/sharded_suite.hpp"

namespace tenet::test {

/// Steps [begin, end) from the checkpoint that the steps before have written, to the next; stage 0 is
/// DistributedDataParallel.
template <parallel::Communicator C>
Losses continued_losses(C& comm, const std::string& path, int begin, int end, int stage, Kind kind) {
  manual_seed(begin == 0 ? 1 : 99);  // a restart takes all from the file
  LeNet<double> model;
  const auto go = [&](auto& wrapper) {
    const auto optimizer = make_optimizer(kind, model.parameters());
    if (begin) {
      EXPECT_EQ(load_training(wrapper, *optimizer, path).batch, begin);
    }
    const Losses losses = train_steps(wrapper, *optimizer, begin, end);
    save_training(wrapper, *optimizer, path, {.batch = end});
    return losses;
  };
  if (stage == 0) {
    parallel::DistributedDataParallel ddp(model, comm);
    return go(ddp);
  }
  parallel::FullyShardedDataParallel fsdp(model, comm, {.stage = stage});
  return go(fsdp);
}

/// The same on `ranks` threads.
inline Losses continued_on_threads(int ranks, const std::string& path, int begin, int end, int stage, Kind kind) {
  Losses losses;
  parallel::run_threads(ranks, [&](auto& comm) {
    const Losses mine = continued_losses(comm, path, begin, end, stage, kind);
    if (comm.rank() == 0) losses = mine;
  });
  return losses;
}

}  // namespace tenet::test
