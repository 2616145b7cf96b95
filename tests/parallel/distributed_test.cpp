#include <tenet/parallel/parallel.hpp>

#include <gtest/gtest.h>

#include "parallel/distributed_suite.hpp"

namespace tenet {
namespace {

using parallel::run_threads;
using test::expect_contains;
using test::message;

TEST(Distributed, TrainsAsOneWorkerDoes) {
  for (const int n : {2, 4}) {
    const auto train = [n] {
      std::vector<test::Losses> losses(static_cast<std::size_t>(n));
      run_threads(n, [&](auto& comm) { losses[std::size_t(comm.rank())] = test::distributed_losses(comm); });
      for (const auto& l : losses) EXPECT_EQ(l, losses[0]);
      return losses[0];
    };
    const test::Losses losses = train();
    test::expect_close(losses, test::single_worker_losses());
    EXPECT_EQ(train(), losses);
  }
}

TEST(Distributed, WeighsRanksByTheirExamples) {
  for (const int n : {1, 2, 3, 4}) run_threads(n, [](auto& comm) { test::check_uneven_parts(comm); });
}
TEST(Distributed, AccumulatesWithoutExchange) {
  for (const int n : {1, 2, 3}) run_threads(n, [](auto& comm) { test::check_no_sync(comm); });
}
TEST(Distributed, ParametersMayBeUnusedAndOfSeveralTypes) {
  for (const int n : {1, 2, 3}) run_threads(n, [](auto& comm) { test::check_unused_and_buffers(comm); });
}

TEST(Distributed, CompressesGradients) {
  for (const int n : {1, 2, 3}) run_threads(n, [](auto& comm) { test::check_compression(comm); });
}

TEST(Distributed, MeansOfGradientsAreExact) {
  // [1, 2, 3] and [3, 2, 1] have the mean [2, 2, 2].
  run_threads(2, [](auto& comm) {
    nn::Linear<> model{3, 1};
    parallel::DistributedDataParallel ddp(model, comm);
    const float rows[2][3] = {{1, 2, 3}, {3, 2, 1}};
    const float* row = rows[comm.rank()];
    ddp(tensor<float>({{row[0], row[1], row[2]}})).sum().backward();
    EXPECT_EQ(model.weight.grad().to_vector(), (std::vector<float>{2, 2, 2}));
  });
}

/// The text that each rank gets, without the name of the one that came first.
template <class F>
std::string failure(int n, const F& f) {
  std::vector<std::string> seen(static_cast<std::size_t>(n));
  run_threads(n, [&](auto& comm) { seen[std::size_t(comm.rank())] = message([&] { f(comm); }); });
  for (const std::string& s : seen) EXPECT_EQ(s, seen[0]);
  return seen[0];
}

struct AB : nn::Module<AB> {
  nn::Linear<> a{2, 2, {.bias = false}}, b{2, 2, {.bias = false}};
  TENET_MODULE(a, b)
  Tensor<float> forward(const Tensor<float>& x) { return b(a(x)); }
};
struct BA : nn::Module<BA> {
  nn::Linear<> a{2, 2, {.bias = false}}, b{2, 2, {.bias = false}};
  TENET_MODULE(b, a)
  Tensor<float> forward(const Tensor<float>& x) { return b(a(x)); }
};

TEST(Distributed, ModelsThatDisagreeAreNamedOnEveryRank) {
  expect_contains(failure(2,
                          [](auto& comm) {
                            nn::Linear<> model{3, 2 + comm.rank()};
                            parallel::DistributedDataParallel ddp(model, comm);
                          }),
                  "rank 0 has parameter 'weight' [2, 3] of float32, rank 1 has parameter 'weight' [3, 3] of float32");
  expect_contains(failure(2,
                          [](auto& comm) {
                            AB ab;
                            BA ba;
                            if (comm.rank() == 0) parallel::DistributedDataParallel ddp(ab, comm);
                            else parallel::DistributedDataParallel ddp(ba, comm);
                          }),
                  "rank 0 has parameter 'a.weight' [2, 2] of float32, rank 1 has parameter 'b.weight'");
  expect_contains(failure(3,
                          [](auto& comm) {
                            nn::Linear<> model{3, 2, {.bias = comm.rank() < 2}};
                            parallel::DistributedDataParallel ddp(model, comm);
                          }),
                  "rank 0 has 2 parameters and buffers, rank 2 has 1");
  expect_contains(failure(2,
                          [](auto& comm) {
                            nn::Linear<> model{3, 2};
                            parallel::DistributedDataParallel ddp(model, comm);
                            if (comm.rank() == 1) model.bias.data()[1] += 1;
                            ddp.check_agreement();
                          }),
                  "differ in their values: rank 0 has parameter 'bias' [2] of float32 with hash");
  // Compressed, they are half the bytes.
  expect_contains(failure(2,
                          [](auto& comm) {
                            nn::Linear<> model{3, 2};
                            parallel::DistributedDataParallel ddp(
                                model, comm, {.compression = comm.rank() ? DType::bfloat16 : DType::float32});
                            ddp(ones({1, 3})).sum().backward();
                          }),
                  "of 8 float32, rank 1 is in all_reduce (gradients of weight to bias) of 8 bfloat16");
  // One rank goes on with another shape: its bucket is of another size.
  expect_contains(failure(2,
                          [](auto& comm) {
                            nn::Linear<> model{3, 2};
                            parallel::DistributedDataParallel ddp(model, comm);
                            if (comm.rank() == 1) {
                              model.weight = nn::Weight<>(ones({1, 3}));
                              model.bias = nn::Parameter<>(ones({1}));
                            }
                            ddp(ones({1, 3})).sum().backward();
                          }),
                  "gradients of weight to bias) of 8 float32, rank 1 is in all_reduce (gradients of weight to bias) of "
                  "4 float32");
}

TEST(Distributed, ARankWithFewerBatchesIsNamed) {
  const std::string text = message([] {
    run_threads(2, [](auto& comm) {
      nn::Linear<> model{3, 2};
      parallel::DistributedDataParallel ddp(model, comm);
      for (int batch = 0; batch < 3 - comm.rank(); ++batch) ddp(ones({1, 3})).sum().backward();
    });
  });
  expect_contains(text, "rank 0 waits for rank 1, which has ended");
}

TEST(Distributed, AnExceptionInBackwardIsNamed) {
  const std::string text = message([] {
    run_threads(2, [](auto& comm) {
      nn::Linear<> model{3, 2};
      parallel::DistributedDataParallel ddp(model, comm);
      const Tensor<float> y = ddp(ones({1, 3}));
      if (comm.rank() == 1) y.register_hook([](const Tensor<float>&) { throw Error("overflow"); });
      y.sum().backward();
    });
  });
  EXPECT_EQ(text, "run_threads: rank 1 failed: overflow");
}

/// Its backward fails between its layers, if it is told to.
struct Failing : nn::Module<Failing> {
  nn::Linear<> first{3, 2}, second{2, 2};
  bool fails = true;
  TENET_MODULE(first, second)
  Tensor<float> forward(const Tensor<float>& x) {
    const Tensor<float> h = first(x);
    if (fails) h.register_hook([](const Tensor<float>&) { throw Error("not now"); });
    return second(h);
  }
};

TEST(Distributed, NothingIsLeftOfABackwardThatFailed) {
  run_threads(2, [](auto& comm) {
    Failing model;
    parallel::DistributedDataParallel ddp(model, comm);
    const Tensor<float> x = ones({1, 3});
    EXPECT_EQ(message([&] { ddp(x).sum().backward(); }), "not now");
    model.fails = false;
    ddp(x).sum().backward();
    EXPECT_EQ(model.second.bias.grad().to_vector(), (std::vector<float>{1, 1}));
  });
}

TEST(Distributed, RefusesOptionsOutOfRange) {
  run_threads(1, [](auto& comm) {
    nn::Linear<> model{3, 2};
    EXPECT_THROW(parallel::DistributedDataParallel(model, comm, {.bucket_bytes = 0}), Error);
    EXPECT_THROW(parallel::DistributedDataParallel(model, comm, {.compression = DType::float16}), Error);
    parallel::DistributedDataParallel ddp(model, comm);
    EXPECT_THROW(ddp(ones({1, 3})).sum().backward({.create_graph = true}), NotImplemented);
  });
}

TEST(Distributed, LoadersOfAllRanksReadTheBatchesOfOne) {
  const data::TensorDataset set(arange<std::int64_t>(23));
  for (const int ranks : {2, 3}) {
    for (const bool drop_last : {false, true}) {
      for (const std::int64_t batch : {1, 2, 3, 5}) {
        const auto read = [&](data::DataLoaderOptions options) {
          options.shuffle = true;
          options.drop_last = drop_last;
          data::DataLoader loader(set, options);
          std::vector<std::vector<std::int64_t>> batches;
          for (auto& [x] : loader) batches.push_back(x.to_vector());
          EXPECT_EQ(loader.size(), std::int64_t(batches.size()));
          return batches;
        };
        auto whole = read({.batch_size = batch * ranks});
        std::vector<std::vector<std::int64_t>> joined(whole.size());
        for (int rank = 0; rank < ranks; ++rank) {
          const auto mine = read({.batch_size = batch, .rank = rank, .ranks = ranks});
          ASSERT_EQ(mine.size(), whole.size());
          for (std::size_t b = 0; b < mine.size(); ++b) {
            EXPECT_GE(mine[b].size(), 1u);
            joined[b].insert(joined[b].end(), mine[b].begin(), mine[b].end());
          }
        }
        // Too few for all: the first stands in.
        if (!whole.empty()) {
          while (whole.back().size() < std::size_t(ranks)) whole.back().push_back(whole.back()[0]);
        }
        EXPECT_EQ(joined, whole);
      }
    }
  }
  EXPECT_THROW(data::DataLoader(set, {.rank = 2, .ranks = 2}), Error);
  EXPECT_THROW(data::DataLoader(set, {.rank = 0, .ranks = 0}), Error);
}

}  // namespace
}  // namespace tenet
