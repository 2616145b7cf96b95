// The tests of communicators over MPI: `mpirun -np N program` runs the suite, with a name one way to fail. Then each
// rank prints its error and ends with 1.
#include <tenet/parallel/mpi.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "parallel/communicator_suite.hpp"
#include "parallel/distributed_suite.hpp"

namespace tenet {
namespace {

using parallel::run_mpi;

TEST(Mpi, DoesWhatACommunicatorDoes) {
  run_mpi([](auto& comm) { test::check_communicator(comm); });
}

TEST(Mpi, Splits) {
  run_mpi([](auto& comm) {
    test::check_split(comm);
    test::check_mesh(comm);
  });
}

TEST(Mpi, Trains) {
  run_mpi([](auto& comm) {
    const test::Losses losses = test::distributed_losses(comm);
    test::expect_close(losses, test::single_worker_losses());
    EXPECT_EQ(test::distributed_losses(comm), losses);
    // As threads do, bit by bit.
    test::Losses threads;
    parallel::run_threads(comm.size(), [&](auto& other) {
      const test::Losses l = test::distributed_losses(other);
      if (other.rank() == 0) threads = l;
    });
    EXPECT_EQ(losses, threads);
  });
}

TEST(Mpi, DistributesAsThreadsDo) {
  run_mpi([](auto& comm) {
    test::check_uneven_parts(comm);
    test::check_no_sync(comm);
    test::check_unused_and_buffers(comm);
  });
}

void fail(std::string_view how, parallel::MpiCommunicator& comm) {
  float data[8] = {};
  const bool last = comm.rank() == comm.size() - 1;
  if (how == "throw") {
    if (last) throw ShapeError("boom");
    comm.barrier();
  } else if (how == "sizes") {
    comm.all_reduce(data, last ? 4 : 3, "gradient of fc1.bias");
  } else if (how == "operations") {
    if (last) comm.barrier();
    else comm.broadcast(data, 8);
  } else if (how == "model") {
    nn::Linear<> model{3, last ? 3 : 2};
    parallel::DistributedDataParallel ddp(model, comm);
  } else if (how == "message") {
    if (comm.rank() == 0) comm.send(data, 8, 1);
    if (comm.rank() == 1) comm.recv(data, 4, 0, "activations");
    comm.barrier();
  } else if (how == "batches") {
    nn::Linear<> model{3, 2};
    parallel::DistributedDataParallel ddp(model, comm);
    for (int batch = 0; batch < (last ? 2 : 3); ++batch) ddp(ones({1, 3})).sum().backward();
  } else if (how == "receive") {
    if (comm.rank() == 0) comm.recv(data, 8, comm.size() - 1);  // one rank alone, so that it is the one named
  } else if (how == "hang") {
    if (last) std::this_thread::sleep_for(std::chrono::hours(1));
    comm.barrier("end of epoch");
  } else if (how == "hang_sending") {
    std::vector<char> activations(1 << 20);
    if (last) comm.send(activations.data(), std::int64_t(activations.size()), 0);
    if (last) std::this_thread::sleep_for(std::chrono::hours(1));
    if (comm.rank() == 0) comm.recv(activations.data(), std::int64_t(activations.size()), comm.size() - 1);
    comm.barrier();
  } else if (how.starts_with("group")) {
    // Rank 1 is alone.
    auto group = comm.split(comm.rank() % 2);
    if (last && how == "group_throw") throw ShapeError("boom");
    if (last && how == "group_sizes") group.all_reduce(data, 4);
    if (last && how == "group_hang") std::this_thread::sleep_for(std::chrono::hours(1));
    if (comm.rank() == 0) group.barrier("stage");
    if (comm.rank() == 1) comm.barrier();
  } else if (how == "die") {
    if (last) std::abort();
    comm.barrier();
  }
}

}  // namespace
}  // namespace tenet

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 1) return RUN_ALL_TESTS();
  try {
    tenet::parallel::run_mpi([&](auto& comm) { tenet::fail(argv[1], comm); }, {.timeout = 2});
  } catch (const tenet::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
