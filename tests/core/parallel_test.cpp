#include <tenet/core/parallel.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "core/support.hpp"

using namespace tenet;

namespace {

using Pieces = std::vector<std::pair<std::int64_t, std::int64_t>>;

Pieces pieces(std::int64_t n, std::int64_t grain) {
  std::mutex mutex;
  Pieces all;
  parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    all.emplace_back(begin, end);
  });
  std::sort(all.begin(), all.end());
  return all;
}

/// Threads that took part in a parallel_for of 64 pieces.
int team_size() {
  std::mutex mutex;
  std::vector<std::thread::id> ids;
  parallel_for(64, 1, [&](std::int64_t, std::int64_t) {
    const std::lock_guard lock(mutex);
    const auto id = std::this_thread::get_id();
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  });
  return int(ids.size());
}

std::int64_t sum_to(std::int64_t n) {
  std::atomic<std::int64_t> sum{0};
  parallel_for(n, 10, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) sum += i;
  });
  return sum;
}

}  // namespace

TEST(ParallelFor, EvenGrainGivesTeamsEqualShares) {
  EXPECT_EQ(pieces(29, even_grain(29, 29)).size(), 1u);  // not worth a second thread
  for (std::int64_t n : {30, 140, 1000, 4096}) {
    for (std::int64_t least : {1, 3, 29}) {
      const std::int64_t grain = even_grain(n, least);
      EXPECT_LE(grain, least);
      const auto count = std::int64_t(pieces(n, grain).size());
      for (std::int64_t team : {2, 4, 8}) {
        const std::int64_t largest_share = (count + team - 1) / team * grain;
        EXPECT_LE(double(largest_share), 1.125 * double(n) / double(team)) << n << ' ' << least << ' ' << team;
      }
    }
  }
  EXPECT_EQ(pieces(64, even_grain(64, 5)).size(), 16u);
}

TEST(ParallelFor, PiecesDependOnSizeAndGrainOnly) {
  for (int threads : {1, 2, 3, 16}) {
    const WithThreads guard(threads);
    EXPECT_EQ(pieces(10, 4), (Pieces{{0, 4}, {4, 8}, {8, 10}})) << threads;
    EXPECT_EQ(pieces(8, 4), (Pieces{{0, 4}, {4, 8}})) << threads;
    EXPECT_EQ(pieces(4, 4), (Pieces{{0, 4}})) << threads;
    EXPECT_EQ(pieces(3, 0), (Pieces{{0, 1}, {1, 2}, {2, 3}})) << threads;
    EXPECT_EQ(pieces(1000, 1).size(), 1000u) << threads;
  }
}

TEST(ParallelFor, NothingToDo) {
  EXPECT_TRUE(pieces(0, 1).empty());
  EXPECT_TRUE(pieces(-5, 1).empty());
}

TEST(ParallelFor, EndsOfInt64DoNotOverflow) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max(), half = std::int64_t{1} << 62;
  EXPECT_EQ(pieces(most, half), (Pieces{{0, half}, {half, most}}));
  EXPECT_EQ(pieces(most, most - 1), (Pieces{{0, most - 1}, {most - 1, most}}));
}

TEST(ParallelFor, UsesTheThreadsAskedFor) {
  const WithThreads guard(3);
  EXPECT_LE(team_size(), 3);
#if TENET_OPENMP
  EXPECT_EQ(num_threads(), 3);
  EXPECT_GT(team_size(), 1);
#else
  EXPECT_EQ(num_threads(), 1);
#endif
  set_num_threads(1);
  EXPECT_EQ(team_size(), 1);
}

TEST(ParallelFor, RefusesWrongThreadCounts) {
  const int before = num_threads();
  EXPECT_THROW(set_num_threads(0), Error);
  EXPECT_THROW(set_num_threads(-1), Error);
  EXPECT_THROW(set_num_threads(1 << 30), Error);
  EXPECT_EQ(num_threads(), before);
}

TEST(ParallelFor, AnExceptionArrivesWithItsType) {
  for (int threads : {1, 2, 4}) {
    const WithThreads guard(threads);
    try {
      parallel_for(100, 1, [](std::int64_t begin, std::int64_t) {
        if (begin == 57) throw std::out_of_range("piece 57");
      });
      FAIL() << "nothing thrown";
    } catch (const std::out_of_range& e) {
      EXPECT_STREQ(e.what(), "piece 57");
    }
    // All at once, and the next region works.
    EXPECT_THROW(parallel_for(100, 1, [](std::int64_t, std::int64_t) { throw Error("each"); }), Error);
    EXPECT_EQ(sum_to(1000), 499500);
  }
}

TEST(ParallelFor, NestedRegionsRunOnTheirThread) {
  const WithThreads guard(2);
  std::atomic<int> strangers{0};
  std::atomic<std::int64_t> sum{0};
  parallel_for(8, 1, [&](std::int64_t, std::int64_t) {
    const auto me = std::this_thread::get_id();
    parallel_for(100, 1, [&](std::int64_t begin, std::int64_t) {
      strangers += num_threads() > 1 && std::this_thread::get_id() != me;
      sum += begin;
    });
  });
#if TENET_OPENMP
  EXPECT_EQ(strangers, 0);
#endif
  EXPECT_EQ(sum, 8 * 4950);
}

#if TENET_OPENMP
TEST(ParallelFor, RunsSeriallyInsideAForeignTeam) {
  const WithThreads guard(4);
  std::int64_t sums[2] = {};
  int teams[2] = {};
  const int levels = omp_get_max_active_levels();
  omp_set_max_active_levels(3);  // OpenMP itself would nest
#pragma omp parallel num_threads(2)
  {
    sums[omp_get_thread_num()] = sum_to(1000);
    teams[omp_get_thread_num()] = team_size();
  }
  omp_set_max_active_levels(levels);
  EXPECT_EQ(sums[0], 499500);
  EXPECT_LE(teams[0], 1);
  EXPECT_LE(teams[1], 1);
}
#endif

TEST(ParallelFor, SerialGuardKeepsToThisThread) {
  const WithThreads guard(4);
  {
    const SerialGuard serial;
    EXPECT_EQ(team_size(), 1);
    { const SerialGuard again; }
    EXPECT_EQ(team_size(), 1);
    // It holds for this thread alone.
    int other = 0;
    std::thread([&] { other = team_size(); }).join();
    EXPECT_EQ(other > 1, bool(TENET_OPENMP));
  }
  EXPECT_EQ(team_size() > 1, bool(TENET_OPENMP));
}

TEST(ParallelFor, SeveralThreadsMayEachRunARegion) {
  const WithThreads guard(2);
  std::int64_t sums[4] = {};
  std::vector<std::thread> pool;
  for (auto& sum : sums) pool.emplace_back([&sum] { sum = sum_to(10000); });
  for (auto& t : pool) t.join();
  for (std::int64_t sum : sums) EXPECT_EQ(sum, 49995000);
}

TEST(ParallelFor, FinishesInAForkedChild) {
  const WithThreads guard(2);
  EXPECT_EQ(sum_to(1000), 499500);  // the parent has a team
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);  // a hang ends here
    _exit(sum_to(1000) == 499500 && team_size() == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(sum_to(1000), 499500);
}
