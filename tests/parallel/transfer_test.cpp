#include <tenet/parallel/threads.hpp>

#include <gtest/gtest.h>

#include "parallel/transfer_suite.hpp"

namespace tenet {
namespace {

using parallel::run_threads;
using parallel::transfer;
using test::message;

TEST(Transfer, MovesValuesAndGradients) {
  for (const int n : {2, 3}) {
    run_threads(n, [](auto& comm) {
      test::check_transfer<float>(comm);
      test::check_transfer<double>(comm);
      test::check_transfer<half>(comm);
      test::check_transfer<bfloat16>(comm);
      test::check_transfer_of_integers(comm);
    });
  }
}
TEST(Transfer, MayCross) {
  run_threads(2, [](auto& comm) { test::check_transfers_that_cross(comm); });
}
TEST(Transfer, JoinsPartsOfAModel) {
  for (const int n : {2, 3}) run_threads(n, [](auto& comm) { test::check_parts(comm); });
}

TEST(Transfer, RanksThatDisagreeAreNamed) {
  const auto failure = [](auto f) { return message([&] { run_threads(2, f); }); };
  EXPECT_EQ(failure([](auto& comm) {
              if (comm.rank() == 0) transfer(ones({2, 3}), 0, 1, comm);
              else transfer(ones<double>({2, 3}), 0, 1, comm);
              comm.barrier();
            }),
            "run_threads: rank 1 failed: transfer: rank 1 takes float64, rank 0 sent [2, 3] of float32 (values)");
  EXPECT_EQ(failure([](auto& comm) {
              const set_grad_enabled mode(comm.rank() == 0);
              transfer(ones({2, 3}).requires_grad_(), 0, 1, comm);
              comm.barrier();
            }),
            "run_threads: rank 1 failed: transfer: rank 0 wants a gradient, rank 1 is in no_grad");
  EXPECT_EQ(failure([](auto& comm) {
              const Tensor<float> x = transfer(ones({1}).requires_grad_(), 0, 1, comm);
              if (comm.rank() == 0) x.backward();
            }),
            "run_threads: recv (gradient): rank 0 waits for rank 1, which has ended");
  EXPECT_EQ(failure([](auto& comm) {  // a gradient that nobody waits for
              const Tensor<float> y = transfer(ones({1}).requires_grad_(), 0, 1, comm);
              if (comm.rank() == 1) y.backward();
              transfer(ones({1}), 1, 0, comm);
              comm.barrier();
            }),
            "run_threads: rank 0 failed: transfer: rank 0 expected values from rank 1, got gradient");
  EXPECT_NE(failure([](auto& comm) {  // another's
              const Tensor<float> x = ones({1}).requires_grad_(), none;
              const Tensor<float> a = transfer(x, 0, 1, comm), b = transfer(comm.rank() ? none : x, 0, 1, comm);
              (comm.rank() ? a : b).backward();
              comm.barrier();
            })
                .find("rank 0 failed: transfer: rank 0 expected the gradient of its transfer "),
            std::string::npos);
  run_threads(2, [](auto& comm) {
    const Tensor<float> x = transfer(ones({1}).requires_grad_(), 0, 1, comm);
    EXPECT_THROW(x.backward({.create_graph = true}), NotImplemented);
  });
}

}  // namespace
}  // namespace tenet
