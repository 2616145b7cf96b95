#include <tenet/parallel/mpi.hpp>

#include <gtest/gtest.h>

#include "parallel/sync_batch_norm_suite.hpp"

namespace tenet {
namespace {

TEST(MpiSyncBatchNorm, IsThatOfTheUnsplitBatch) {
  parallel::run_mpi([](auto& comm) {
    test::check_sync_batch_norm(comm);
    test::check_sync_batch_norm_errors(comm);
  });
}

}  // namespace
}  // namespace tenet
