#include <tenet/parallel/parallel.hpp>

#include <gtest/gtest.h>

#include "parallel/tensor_parallel_suite.hpp"

namespace tenet {
namespace {

using parallel::run_threads;
using test::message;

TEST(TensorParallel, LayersAreThoseThatAreNotSplit) {
  for (const int n : {1, 2, 3, 4}) {
    run_threads(n, [](auto& comm) {
      test::check_split_linear(comm);
      test::check_split_embedding(comm);
      test::check_split_attention(comm);
    });
  }
}

TEST(TensorParallel, MovesTensors) {
  for (const int n : {1, 2, 3}) run_threads(n, [](auto& comm) { test::check_exchange(comm); });
}

TEST(TensorParallel, RefusesWhatCannotBeSplit) {
  for (const int n : {1, 2, 3}) run_threads(n, [](auto& comm) { test::check_split_errors(comm); });
}

TEST(TensorParallel, PartsAreNotTakenForTheWhole) {
  run_threads(2, [](auto& comm) {
    parallel::Mesh mesh(comm, {.tensor = 2});
    parallel::ColumnParallelLinear layer(mesh.tensor, 4, 6);
    parallel::DistributedDataParallel ddp(layer, mesh.data);
    EXPECT_EQ(message([&] { ddp.state_dict(); }),
              "distributed: 'weight' is split over ranks: save and load by parallel::whole_state_dict(model) and "
              "load_whole_state_dict");
  });
}

TEST(TensorParallel, TrainsAsOneWorkerDoes) {
  for (const int n : {2, 4}) {  // the layers of one model, and two such models of half a batch
    const auto train = [n] {
      std::vector<test::Losses> losses(static_cast<std::size_t>(n));
      run_threads(n, [&](auto& comm) { losses[std::size_t(comm.rank())] = test::split_losses(comm); });
      for (const auto& l : losses) EXPECT_EQ(l, losses[0]);
      return losses[0];
    };
    const test::Losses losses = train();
    test::expect_close(losses, test::single_worker_losses());
    EXPECT_EQ(train(), losses);
  }
}

TEST(TensorParallel, RanksWithOtherInputsAreNamed) {
  const std::string text = message([] {
    run_threads(2, [](auto& comm) {
      parallel::ColumnParallelLinear<> fc1(comm, 3, 4);
      parallel::RowParallelLinear<> fc2(comm, 4, 2);
      fc2(relu(fc1(ones({1 + comm.rank(), 3}))));
    });
  });
  EXPECT_NE(text.find("rank 0 is in all_reduce (reduce_from) of 2 float32, rank 1 is in all_reduce (reduce_from) of 4"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace tenet
