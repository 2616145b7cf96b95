// Sharded training, restarts and compression over MPI.
#include <tenet/parallel/mpi.hpp>

#include <gtest/gtest.h>

#include "parallel/distributed_suite.hpp"
#include "parallel/restart_suite.hpp"

namespace tenet {
namespace {

using parallel::run_mpi;
using test::Kind;

TEST(MpiSharded, TrainsAsThreadsDo) {
  run_mpi([](auto& comm) {
    const test::Losses losses = test::sharded_losses(comm, 3, Kind::sgd);
    for (const int stage : {1, 2}) EXPECT_EQ(test::sharded_losses(comm, stage, Kind::sgd), losses);
    const test::Losses by_adamw = test::sharded_losses(comm, 3, Kind::adamw);
    if (comm.rank() == 0) {
      test::expect_close(losses, test::single_worker_losses(Kind::sgd));
      test::expect_close(by_adamw, test::single_worker_losses(Kind::adamw));
      // As threads do, bit by bit.
      parallel::run_threads(comm.size(), [&](auto& other) {
        const test::Losses l = test::sharded_losses(other, 3, Kind::adamw);
        if (other.rank() == 0) {
          EXPECT_EQ(l, by_adamw);
        }
      });
    }
    comm.barrier();
  });
}

TEST(MpiSharded, ExchangesAsThreadsDo) {
  run_mpi([](auto& comm) {
    for (const int stage : {1, 2, 3}) test::check_gradients(comm, stage);
    test::check_clipping(comm);
    test::check_compression(comm);
  });
}

TEST(MpiSharded, ARankHoldsItsShare) {
  run_mpi([](auto& comm) {
    if (comm.size() == 4) test::check_memory(comm, 1);
  });
}

TEST(MpiSharded, GoesOnWithAnotherNumberOfRanks) {
  run_mpi([](auto& comm) {
    std::optional<TemporaryFolder> folder;
    if (comm.rank() == 0) folder.emplace();
    std::array<char, 256> path{};
    if (folder) folder->file("run.safetensors").copy(path.data(), path.size() - 1);
    comm.broadcast(path.data(), std::int64_t(path.size()));
    test::Losses losses = test::continued_losses(comm, path.data(), 0, 20, 3, Kind::adamw);
    const test::Losses more = test::continued_losses(comm, path.data(), 20, 35, 2, Kind::adamw);
    losses.insert(losses.end(), more.begin(), more.end());
    if (comm.rank() == 0) {
      const test::Losses rest = test::continued_on_threads(2, path.data(), 35, 50, 3, Kind::adamw);
      losses.insert(losses.end(), rest.begin(), rest.end());
      test::expect_close(losses, test::single_worker_losses(Kind::adamw));
    }
    comm.barrier();
  });
}

TEST(MpiSharded, EveryRankLearnsThatRank0CannotWrite) {
  run_mpi([](auto& comm) {
    nn::Linear<> model{3, 2};
    parallel::FullyShardedDataParallel fsdp(model, comm);
    optim::SGD optimizer(fsdp.parameters());
    const std::string said = test::message([&] { save_training(fsdp, optimizer, "/nowhere/run.safetensors", {}); });
    EXPECT_NE(said.find("rank 0 failed: save_tensors: cannot write '/nowhere/run.safetensors'"), std::string::npos);
  });
}

}  // namespace
}  // namespace tenet
