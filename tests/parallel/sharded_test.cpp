#include <tenet/parallel/parallel.hpp>

#include <gtest/gtest.h>

#include "parallel/sharded_suite.hpp"

namespace tenet {
namespace {

using parallel::run_threads;
using test::expect_contains;
using test::Kind;
using test::message;

test::Losses train(int ranks, int stage, Kind kind) {
  std::vector<test::Losses> losses(static_cast<std::size_t>(ranks));
  run_threads(ranks, [&](auto& comm) { losses[std::size_t(comm.rank())] = test::sharded_losses(comm, stage, kind); });
  for (const auto& l : losses) EXPECT_EQ(l, losses[0]);
  return losses[0];
}

void check_training(int ranks, Kind kind) {
  const test::Losses losses = train(ranks, 3, kind);
  test::expect_close(losses, test::single_worker_losses(kind));
  for (const int stage : {1, 2}) EXPECT_EQ(train(ranks, stage, kind), losses);  // the same sums, bit by bit
}
TEST(Sharded, TrainsAsOneWorkerDoes) {
  check_training(2, Kind::sgd);
  check_training(4, Kind::sgd);
  check_training(4, Kind::adamw);
}

TEST(Sharded, GradientsAreThoseOfReplicas) {
  for (const int n : {1, 2, 3}) {
    for (const int stage : {1, 2, 3}) run_threads(n, [&](auto& comm) { test::check_gradients(comm, stage); });
  }
}

TEST(Sharded, ClipsByTheNormOfAllRanks) {
  for (const int n : {1, 3}) run_threads(n, [](auto& comm) { test::check_clipping(comm); });
}

TEST(Sharded, ARankHoldsItsShare) {
  if (TENET_SANITIZED) GTEST_SKIP() << "nothing is cached";
  run_threads(4, [](auto& comm) { test::check_memory(comm, 4); });
}

/// The text that each rank gets.
template <class F>
std::string failure(int n, const F& f) {
  std::vector<std::string> seen(static_cast<std::size_t>(n));
  run_threads(n, [&](auto& comm) { seen[std::size_t(comm.rank())] = message([&] { f(comm); }); });
  for (const std::string& s : seen) EXPECT_EQ(s, seen[0]);
  return seen[0];
}

TEST(Sharded, RanksThatDisagreeEndOrThrowAreNamed) {
  expect_contains(failure(2,
                          [](auto& comm) {
                            nn::Linear<> model{3, 2 + comm.rank()};
                            parallel::FullyShardedDataParallel fsdp(model, comm);
                          }),
                  "rank 0 has parameter 'weight' [2, 3] of float32, rank 1 has parameter 'weight' [3, 3] of float32");
  expect_contains(failure(2,
                          [](auto& comm) {
                            nn::Linear<> model{3, 2};
                            parallel::FullyShardedDataParallel fsdp(model, comm, {.stage = 2 + comm.rank()});
                            fsdp(ones({1, 3})).sum().backward();
                          }),
                  "rank 0 is in reduce_scatter (weight) of 4 float32, rank 1 is in all_gather (weight) of 12 bytes");
  for (const int stage : {1, 2, 3}) {
    expect_contains(message([&] {
                      run_threads(2, [&](auto& comm) {
                        nn::Linear<> model{3, 2};
                        parallel::FullyShardedDataParallel fsdp(model, comm, {.stage = stage});
                        for (int batch = 0; batch < 3 - comm.rank(); ++batch) fsdp(ones({1, 3})).sum().backward();
                      });
                    }),
                    "rank 0 waits for rank 1, which has ended");
    EXPECT_EQ(message([&] {
                run_threads(2, [&](auto& comm) {
                  nn::Linear<> model{3, 2};
                  parallel::FullyShardedDataParallel fsdp(model, comm, {.stage = stage});
                  const Tensor<float> y = fsdp(ones({1, 3}));
                  if (comm.rank() == 1) y.register_hook([](const Tensor<float>&) { throw Error("overflow"); });
                  y.sum().backward();
                });
              }),
              "run_threads: rank 1 failed: overflow");
  }
}

/// Its layer throws once, and then works.
struct Careful : nn::Module<Careful> {
  struct Layer : nn::Module<Layer> {
    nn::Linear<> fc{2, 2};
    nn::Parameter<> scale{ones({1})};
    TENET_MODULE(fc, scale)
    Tensor<float> forward(const Tensor<float>& x, bool fail) {
      const Tensor<float> y = fc(x) * scale;
      if (fail) throw Error("not now");
      return y;
    }
  } layer;
  nn::Parameter<> bias{ones({2})};
  TENET_MODULE(layer, bias)
  Tensor<float> forward(const Tensor<float>& x) {
    try {
      return layer(x, true);
    } catch (const Error&) {
      return layer(x, false) + bias;
    }
  }
};

/// Uses its parameter on some ranks.
struct Sometimes : nn::Module<Sometimes> {
  nn::Parameter<> w{ones({2})};
  bool uses = true;
  TENET_MODULE(w)
  Tensor<float> forward(const Tensor<float>& x) { return uses ? x * w : x * 2.0f; }
};

TEST(Sharded, ARankMayLeaveAParameterOut) {
  run_threads(2, [](auto& comm) {
    for (const int stage : {1, 2, 3}) {
      Sometimes model;
      parallel::FullyShardedDataParallel fsdp(model, comm, {.stage = stage});
      model.uses = comm.rank() == 0;
      fsdp(ones({1, 2})).sum().backward();
      EXPECT_EQ(Tensor<float>(fsdp.parameters()[0].grad_any()).to_vector(), std::vector<float>{0.5f}) << stage;
    }
  });
}

/// A layer whose result is no tensor.
struct Pair : nn::Module<Pair> {
  struct Layer : nn::Module<Layer> {
    nn::Linear<> fc{2, 2};
    nn::Parameter<> scale{ones({1})};
    TENET_MODULE(fc, scale)
    std::pair<Tensor<float>, int> forward(const Tensor<float>& x) { return {fc(x) * scale, 1}; }
  } layer;
  TENET_MODULE(layer)
  Tensor<float> forward(const Tensor<float>& x) { return layer(x).first; }
};

TEST(Sharded, UnitsAreClosedAndErrorsTell) {
  run_threads(2, [](auto& comm) {
    Careful model;
    const Tensor<float> x = ones({1, 2}), expected = model(x);
    comm.barrier();
    parallel::FullyShardedDataParallel fsdp(model, comm);
    manual_seed(5);
    Tensor<float> y = fsdp(x);
    y.sum().backward();
    if (comm.rank() == 0) {
      EXPECT_EQ(y.to_vector(), expected.to_vector());
    }
    EXPECT_EQ(model.bias.shape(), Shape({1}));  // the shard is back
    EXPECT_EQ(model.bias.grad().item(), 1);
    EXPECT_THROW(model(x), ShapeError);  // past the wrapper

    y = fsdp(x);
    optim::SGD(fsdp.parameters(), {.lr = 0.1}).step();
    expect_contains(message([&] { y.sum().backward(); }), "was changed in place");
    EXPECT_THROW(fsdp(x).sum().backward({.create_graph = true}), NotImplemented);
    model.zero_grad();
    fsdp(x).sum().backward();
    EXPECT_EQ(model.bias.grad().item(), 1);  // nothing is left of the gradients that failed

    Pair pair;
    parallel::FullyShardedDataParallel sharded(pair, comm);
    EXPECT_EQ(
        message([&] { sharded(x); }),
        "fully_sharded_data_parallel: expected module 'layer', which has parameters, to give one floating tensor");
    const no_grad guard;
    EXPECT_EQ(sharded(x).shape(), Shape({1, 2}));
    EXPECT_THROW(parallel::FullyShardedDataParallel(pair, comm, {.stage = 4}), Error);
  });
}

}  // namespace
}  // namespace tenet
