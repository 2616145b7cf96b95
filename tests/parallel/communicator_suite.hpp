// What every communicator must do; the same for each engine.
#pragma once

#include <gtest/gtest.h>
#include <tenet/parallel/communicator.hpp>
#include <tenet/parallel/mesh.hpp>

#include <numeric>
#include <vector>

#include "message.hpp"

namespace tenet::test {

/// Numbers whose sum depends on the order of its terms.
inline std::vector<float> sensitive(int rank, std::int64_t n) {
  std::vector<float> v(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    v[std::size_t(i)] = (rank == 0 ? 1e8f : 1.0f) * float(i % 7 + 1) + float(rank) * 0.37f;
  }
  return v;
}
/// Their sum over the ranks, in order.
inline std::vector<float> sensitive_sum(int ranks, std::int64_t n) {
  std::vector<float> sum = sensitive(0, n);
  for (int r = 1; r < ranks; ++r) {
    const std::vector<float> v = sensitive(r, n);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += v[i];
  }
  return sum;
}

/// Runs on each rank.
template <parallel::Communicator C>
void check_communicator(C& comm) {
  const int rank = comm.rank(), size = comm.size();
  for (const std::int64_t n : {0, 1, 3, 16, 1000, 300001}) {
    std::vector<float> a = sensitive(rank, n);
    comm.all_reduce(a.data(), n, "floats");
    EXPECT_EQ(a, sensitive_sum(size, n)) << n;

    std::vector<double> d(std::size_t(n), 0.1 * rank);
    comm.all_reduce(d.data(), n);
    double sum = 0;
    for (int r = 0; r < size; ++r) sum += 0.1 * r;
    EXPECT_EQ(d, std::vector<double>(std::size_t(n), sum));

    // 1 + 2^-6 + 2^-6 + ... in float, rounded once.
    std::vector<bfloat16> low(std::size_t(n), bfloat16(rank ? 0x1p-6f : 1.0f));
    comm.all_reduce(low.data(), n, "bfloat16");
    EXPECT_EQ(low, std::vector<bfloat16>(std::size_t(n), bfloat16(1 + float(size - 1) * 0x1p-6f)));

    std::vector<float> in = sensitive(rank, n * size), out(std::size_t(n), -1);
    comm.reduce_scatter(in.data(), out.data(), n);
    const std::vector<float> whole = sensitive_sum(size, n * size);
    EXPECT_EQ(out, std::vector<float>(whole.begin() + rank * n, whole.begin() + (rank + 1) * n));
    EXPECT_EQ(in, sensitive(rank, n * size));

    std::vector<float> gathered(std::size_t(n * size));
    const std::vector<float> mine = sensitive(rank, n);
    comm.all_gather(mine.data(), gathered.data(), 4 * n);
    for (int r = 0; r < size; ++r) {
      EXPECT_EQ(std::vector<float>(gathered.begin() + r * n, gathered.begin() + (r + 1) * n), sensitive(r, n));
    }
    // In place.
    std::fill(gathered.begin(), gathered.end(), -1.0f);
    std::copy(mine.begin(), mine.end(), gathered.begin() + rank * n);
    comm.all_gather(gathered.data() + rank * n, gathered.data(), 4 * n);
    for (int r = 0; r < size; ++r) {
      EXPECT_EQ(std::vector<float>(gathered.begin() + r * n, gathered.begin() + (r + 1) * n), sensitive(r, n));
    }

    for (int root = 0; root < size; ++root) {
      std::vector<float> b = sensitive(rank, n);
      comm.broadcast(b.data(), 4 * n, root);
      EXPECT_EQ(b, sensitive(root, n));
    }

    // Around the ring, all sending first; messages keep their order.
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    comm.send(mine.data(), 4 * n, next);
    comm.send(&rank, sizeof rank, next);
    std::vector<float> got(static_cast<std::size_t>(n));
    int who = -1;
    comm.recv(got.data(), 4 * n, before);
    comm.recv(&who, sizeof who, before);
    EXPECT_EQ(got, sensitive(before, n));
    EXPECT_EQ(who, before);
    comm.barrier();
  }
  std::int64_t big = (std::int64_t(1) << 60) + rank;
  comm.all_reduce(&big, 1);
  EXPECT_EQ(big, (std::int64_t(1) << 60) * size + size * (size - 1) / 2);
  EXPECT_THROW(comm.send(&big, 8, size), IndexError);
  EXPECT_THROW(comm.recv(&big, 8, -1), IndexError);
  EXPECT_THROW(comm.broadcast(&big, 8, size), IndexError);
}

/// Groups of a communicator work beside each other and beside the whole.
template <parallel::Communicator C>
void check_split(C& comm) {
  const int rank = comm.rank(), size = comm.size();
  // Even and odd ranks, the last one first.
  C group = comm.split(rank % 2, -rank, "parity");
  const int members = (size + 1 - rank % 2) / 2;
  ASSERT_EQ(group.size(), members);
  ASSERT_EQ(group.rank(), members - 1 - rank / 2);
  for (int r = 0; r < members; ++r) EXPECT_EQ(group.world_rank(r), 2 * (members - 1 - r) + rank % 2);
  EXPECT_EQ(comm.world_rank(rank), rank);
  EXPECT_THROW(group.world_rank(members), IndexError);
  // As often as its rank says: the groups need not keep step.
  for (int i = 0; i < 3 + 5 * (rank % 2); ++i) {
    std::vector<float> v = sensitive(group.rank(), 1000);
    group.all_reduce(v.data(), 1000);
    EXPECT_EQ(v, sensitive_sum(members, 1000));
    int who = -1;
    const int me = rank;
    group.send(&me, sizeof me, (group.rank() + 1) % members);
    const int before = (group.rank() + members - 1) % members;
    group.recv(&who, sizeof who, before);
    EXPECT_EQ(who, group.world_rank(before));
    group.barrier();
  }
  C alone = group.split(group.rank());
  EXPECT_EQ(alone.size(), 1);
  EXPECT_EQ(alone.world_rank(0), rank);
  C same = comm.split(7);
  EXPECT_EQ(same.rank(), rank);
  std::int64_t n = 1;
  alone.all_reduce(&n, 1);
  group.all_reduce(&n, 1);
  same.all_reduce(&n, 1);
  EXPECT_EQ(n, ((size + 1) / 2) * ((size + 1) / 2) + (size / 2) * (size / 2));
  EXPECT_THROW(comm.split(-1), Error);
}

template <parallel::Communicator C>
void check_mesh(C& comm) {
  const int rank = comm.rank(), size = comm.size();
  const int tensor = size % 2 ? 1 : 2, pipeline = size % 4 ? 1 : 2;
  const parallel::MeshOptions options{.data = size / (tensor * pipeline), .pipeline = pipeline, .tensor = tensor};
  parallel::Mesh mesh(comm, options);
  EXPECT_EQ(mesh.data.size(), options.data);
  EXPECT_EQ(mesh.pipeline.size(), options.pipeline);
  EXPECT_EQ(mesh.tensor.size(), options.tensor);
  EXPECT_EQ((mesh.data.rank() * pipeline + mesh.pipeline.rank()) * tensor + mesh.tensor.rank(), rank);
  EXPECT_EQ(mesh.tensor.world_rank(0), rank - rank % tensor);
  EXPECT_EQ(mesh.data.world_rank(0), rank % (tensor * pipeline));
  EXPECT_EQ(message([&] { parallel::Mesh wrong(comm, {.data = size, .pipeline = 1, .tensor = 3}); }),
            text({"mesh: expected data x pipeline x tensor = ", size, " ranks, got ", size, " x 1 x 3"}));
  EXPECT_THROW(parallel::Mesh(comm, {.data = -size, .pipeline = -1}), Error);
  if (size == 1) return;
  EXPECT_EQ(message([&] { parallel::Mesh wrong(comm, {.data = rank ? 1 : size, .tensor = rank ? size : 1}); }),
            text({"mesh: rank 0 has ", size, " x 1 x 1, rank 1 has 1 x 1 x ", size}));
}

}  // namespace tenet::test
