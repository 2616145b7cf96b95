#include <tenet/parallel/threads.hpp>

#include <gtest/gtest.h>

#include "parallel/sync_batch_norm_suite.hpp"

namespace tenet {
namespace {

TEST(SyncBatchNorm, IsThatOfTheUnsplitBatch) {
  for (const int n : {1, 2, 4}) parallel::run_threads(n, [](auto& comm) { test::check_sync_batch_norm(comm); });
}
TEST(SyncBatchNorm, SaysWhatItCannotDo) {
  parallel::run_threads(2, [](auto& comm) { test::check_sync_batch_norm_errors(comm); });
}

}  // namespace
}  // namespace tenet
