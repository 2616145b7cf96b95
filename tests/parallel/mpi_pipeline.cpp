// Models over MPI ranks by their layers, as over threads.
#include <tenet/parallel/mpi.hpp>

#include <gtest/gtest.h>

#include "parallel/pipeline_suite.hpp"
#include "parallel/transfer_suite.hpp"

namespace tenet {
namespace {

using parallel::run_mpi;

TEST(MpiPipeline, Trains) {
  run_mpi([](auto& comm) { test::check_pipeline_trains(comm); });
}
TEST(MpiPipeline, OfDistributedStagesTrains) {
  run_mpi([](auto& comm) {
    if (comm.size() == 4) test::check_hybrid_trains(comm);
  });
}
TEST(MpiPipeline, HasTheGradientsOfTheUnsplitModel) {
  run_mpi([](auto& comm) { test::check_pipeline_gradients<double>(comm, 1e-12); });
}
TEST(MpiPipeline, AStageThatThrowsEndsAllRanks) {
  std::string seen;
  int size = 0;
  try {
    run_mpi([&](auto& comm) {
      size = comm.size();
      test::fail_in_stage(comm, size - 1, true);
    });
  } catch (const Error& e) {
    seen = e.what();
  }
  EXPECT_EQ(seen, text({"run_mpi: rank ", size - 1, " failed: out of luck"}));
}
TEST(MpiTransfer, MovesValuesAndGradients) {
  run_mpi([](auto& comm) {
    if (comm.size() < 2) return;
    test::check_transfer<float>(comm);
    test::check_transfer_of_integers(comm);
    test::check_transfers_that_cross(comm);
    test::check_parts(comm);
  });
}

}  // namespace
}  // namespace tenet
