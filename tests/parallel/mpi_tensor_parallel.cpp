#include <tenet/parallel/mpi.hpp>

#include <gtest/gtest.h>

#include "parallel/tensor_parallel_suite.hpp"

namespace tenet {
namespace {

using parallel::run_mpi;

TEST(MpiTensorParallel, LayersAreThoseThatAreNotSplit) {
  run_mpi([](auto& comm) {
    test::check_split_linear(comm);
    test::check_split_embedding(comm);
    test::check_split_attention(comm);
    test::check_exchange(comm);
    test::check_split_errors(comm);
  });
}

TEST(MpiTensorParallel, TrainsAsThreadsDo) {
  run_mpi([](auto& comm) {
    const test::Losses losses = test::split_losses(comm);
    test::expect_close(losses, test::single_worker_losses());
    test::Losses threads;
    parallel::run_threads(comm.size(), [&](auto& other) {
      const test::Losses l = test::split_losses(other);
      if (other.rank() == 0) threads = l;
    });
    EXPECT_EQ(losses, threads);
  });
}

}  // namespace
}  // namespace tenet
