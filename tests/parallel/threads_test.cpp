#include <tenet/core/random.hpp>
#include <tenet/parallel/threads.hpp>

#include <gtest/gtest.h>

#include "message.hpp"
#include "parallel/communicator_suite.hpp"

namespace tenet {
namespace {

using parallel::run_threads;
using test::expect_contains;
using test::message;

TEST(RunThreads, DoesWhatACommunicatorDoes) {
  for (const int n : {1, 2, 3, 4, 8}) run_threads(n, [](auto& comm) { test::check_communicator(comm); });
}

TEST(RunThreads, Splits) {
  for (const int n : {1, 2, 3, 4, 8}) {
    run_threads(n, [](auto& comm) {
      test::check_split(comm);
      test::check_mesh(comm);
    });
  }
}

TEST(RunThreads, RanksStartWithTheCallersStateAndEqualNumbers) {
  manual_seed(5);
  const GeneratorState before = default_generator().state();
  std::vector<std::vector<float>> numbers(3);
  const SerialGuard serial;
  {
    const no_grad guard;
    run_threads(3, [&](auto& comm) {
      EXPECT_FALSE(is_grad_enabled());
      numbers[std::size_t(comm.rank())] = rand({5}).to_vector();
    });
  }
  EXPECT_EQ(numbers[0], numbers[1]);
  EXPECT_EQ(numbers[0], numbers[2]);
  EXPECT_EQ(default_generator().state(), before);
  EXPECT_EQ(rand({5}).to_vector(), numbers[0]);
}

TEST(RunThreads, RanksShareTheProcessor) {
  const int before = num_threads();
  set_num_threads(5);
  run_threads(2, [](auto&) { EXPECT_LE(num_threads(), 2); });
  run_threads(8, [](auto&) { EXPECT_EQ(num_threads(), 1); });
  set_num_threads(before);
}

TEST(RunThreads, AnExceptionOfARankEndsTheOthersAndIsNamed) {
  std::vector<std::string> seen(3);
  try {
    run_threads(3, [&](auto& comm) {
      if (comm.rank() == 1) throw ShapeError("boom");
      seen[std::size_t(comm.rank())] = message([&] { comm.barrier(); });
    });
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "run_threads: rank 1 failed: boom");
    EXPECT_THROW(std::rethrow_if_nested(e), ShapeError);
  }
  EXPECT_EQ(seen[0], "rank 1 failed: boom");
  EXPECT_EQ(seen[2], "rank 1 failed: boom");
  expect_contains(message([] {
                    run_threads(2, [](auto& comm) {
                      if (comm.rank() == 0) throw 7;
                      int x;
                      comm.recv(&x, 4, 0);
                    });
                  }),
                  "rank 0 failed: an exception of unknown type");
}

/// What each of `n` ranks sees; all must see the same.
template <class F>
std::string disagreement(int n, const F& f) {
  std::vector<std::string> seen(static_cast<std::size_t>(n));
  run_threads(n, [&](auto& comm) {
    seen[std::size_t(comm.rank())] = message([&] { f(comm); });
    // It stays an error.
    EXPECT_THROW(comm.barrier(), Error);
  });
  for (const std::string& s : seen) EXPECT_EQ(s, seen[0]);
  return seen[0];
}

TEST(RunThreads, RanksThatDisagreeGetAnErrorEach) {
  float data[8] = {};
  expect_contains(disagreement(2, [&](auto& comm) { comm.all_reduce(data, 3 + comm.rank(), "gradient of fc1.bias"); }),
                  "rank 0 is in all_reduce (gradient of fc1.bias) of 3 float32, rank 1 is in all_reduce (gradient of "
                  "fc1.bias) of 4 float32");
  expect_contains(disagreement(3,
                               [&](auto& comm) {
                                 if (comm.rank() == 2) comm.barrier();
                                 else comm.broadcast(data, 8);
                               }),
                  "rank 0 is in broadcast of 8 bytes from rank 0, rank 2 is in barrier");
  expect_contains(disagreement(2, [&](auto& comm) { comm.broadcast(data, 8, comm.rank()); }), "from rank 1");
  expect_contains(disagreement(2,
                               [&](auto& comm) {
                                 double d = 0;
                                 if (comm.rank()) comm.all_reduce(&d, 1);
                                 else comm.all_reduce(data, 1);
                               }),
                  "1 float32, rank 1 is in all_reduce of 1 float64");
  expect_contains(disagreement(2,
                               [&](auto& comm) {
                                 if (comm.rank() == 0) comm.send(data, 8, 1);
                                 else comm.recv(data, 4, 0, "activations");
                                 comm.barrier();
                               }),
                  "recv (activations): rank 1 expected 4 bytes from rank 0, got 8");
}

TEST(RunThreads, ARankThatEndsEarlyIsNamed) {
  expect_contains(message([] {
                    run_threads(3, [](auto& comm) {
                      for (int batch = 0; batch < (comm.rank() == 1 ? 2 : 3); ++batch) comm.barrier("batch");
                    });
                  }),
                  "waits for rank 1, which has ended");
  expect_contains(message([] {
                    run_threads(2, [](auto& comm) {
                      float x;
                      if (comm.rank() == 0) comm.recv(&x, 4, 1);
                    });
                  }),
                  "recv: rank 0 waits for rank 1, which has ended");
}

TEST(RunThreads, ARankThatHangsIsNamed) {
  const auto wait = [](auto& comm) {
    float x;
    if (comm.rank() == 1) comm.recv(&x, 4, 0);  // never sent
    else comm.barrier("end of epoch");
  };
  const std::string text = message([&] { run_threads(2, wait, {.timeout = 0.2}); });
  EXPECT_TRUE(text.find("barrier (end of epoch): rank 0 waited 0.2 s for rank 1") != std::string::npos ||
              text.find("recv: rank 1 waited 0.2 s for rank 0") != std::string::npos)
      << text;
}

/// What each rank sees when rank 3 goes its own way in the group of the odd ones of 4; all must see the same.
template <class F>
std::string failure_in_a_group(const F& f) {
  std::vector<std::string> seen(4);
  message([&] {
    run_threads(4,
                [&](auto& comm) {
                  auto odd = comm.split(comm.rank() % 2);
                  if (comm.rank() == 3) return f(odd);
                  seen[std::size_t(comm.rank())] = message([&] {
                    // Ranks 0 and 2 do not know of it, and would wait for ever.
                    odd.barrier("group");
                    if (comm.rank() != 1) comm.barrier("all");
                  });
                  throw Error("late");
                },
                {.timeout = 0.3});
  });
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
  return seen[0];
}

TEST(RunThreads, AFailureInAGroupEndsAllAndNamesTheRank) {
  EXPECT_EQ(failure_in_a_group([](auto&) { throw Error("boom"); }), "rank 3 failed: boom");
  // Whoever notices first says so.
  expect_contains(failure_in_a_group([](auto&) {}), " waits for rank 3, which has ended");
  expect_contains(failure_in_a_group([](auto&) { std::this_thread::sleep_for(std::chrono::milliseconds(600)); }),
                  " waited 0.3 s for rank 3");
  EXPECT_EQ(failure_in_a_group([](auto& odd) {
              char data[4] = {};
              EXPECT_THROW(odd.broadcast(data, 4, 1), Error);
            }),
            "communicator: the ranks disagree: rank 1 is in barrier (group), rank 3 is in broadcast of 4 bytes from "
            "rank 3");
}

TEST(RunThreads, RefusesOptionsOutOfRange) {
  EXPECT_THROW(run_threads(0, [](auto&) {}), Error);
  EXPECT_THROW(run_threads(2, [](auto&) {}, {.timeout = 0}), Error);
}

}  // namespace
}  // namespace tenet
