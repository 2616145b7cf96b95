#include <tenet/parallel/parallel.hpp>

#include <gtest/gtest.h>

#include "parallel/pipeline_suite.hpp"

namespace tenet {
namespace {

using parallel::Pipeline;
using parallel::run_threads;
using test::expect_contains;
using test::mean_square;
using test::message;

TEST(Pipeline, TrainsAsOneWorkerDoes) {
  for (const int stages : {2, 3}) run_threads(stages, [](auto& comm) { test::check_pipeline_trains(comm); });
}

TEST(Parts, TrainAsOneWorkerDoes) {
  run_threads(2, [](auto& comm) { test::check_parts_train(comm); });
}

TEST(Pipeline, OfDistributedStagesTrainsAsOneWorkerDoes) {
  run_threads(4, [](auto& comm) { test::check_hybrid_trains(comm); });
}

TEST(Pipeline, HasTheGradientsOfTheUnsplitModel) {
  for (const int stages : {1, 2, 3}) {
    run_threads(stages, [](auto& comm) { test::check_pipeline_gradients<double>(comm, 1e-12); });
  }
}

TEST(Pipeline, StagesMayChangeTheType) {
  run_threads(2, [](auto& comm) { test::check_pipeline_of_types(comm); });
}

struct Ignoring : nn::Module<Ignoring> {
  nn::Parameter<> weight{ones({2})};
  TENET_MODULE(weight)
  Tensor<float> forward(const Tensor<float>& x) { return weight.expand(x.shape()); }
};
TEST(Pipeline, AStageMayIgnoreItsInput) {
  run_threads(2, [&](auto& comm) {
    const auto step = [&](auto& stage, const auto& weight) {
      Pipeline(stage, comm).step(ones({4, 2}), zeros({4, 2}), mean_square);
      return weight.grad().to_vector();
    };
    nn::Linear<> first{2, 2};
    Ignoring second;
    if (comm.rank() == 0) {
      EXPECT_EQ(step(first, first.bias), (std::vector<float>{0, 0}));
    } else {
      EXPECT_EQ(step(second, second.weight), (std::vector<float>{1, 1}));
    }
  });
}

TEST(Pipeline, RunsTheStageOfItsRank) {
  manual_seed(5);
  nn::Sequential net{nn::Linear<>{3, 4}, nn::ReLU{}, nn::Linear<>{4, 2}};
  const auto x = randn({5, 3});
  const std::vector<float> expected = net(x).to_vector();
  run_threads(2, [&](auto& comm) {
    const auto check = [&](auto& stage) {
      Pipeline pipeline(stage, comm);
      const auto y = pipeline.forward(x).to_vector();
      EXPECT_EQ(&pipeline.stage(), &stage);
      for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-6f);
    };
    parallel::run_stages(
        comm, check, [&] { return parallel::layers<0, 2>(net); }, [&] { return parallel::layers<2, 3>(net); });
    parallel::run_stages<test::Tokens, test::Head>(
        comm, [&]<class S>(S&) { EXPECT_EQ((std::is_same_v<S, test::Head>), comm.rank() == 1); });
  });
}

/// What each rank gets to know when f fails on one.
template <class F>
std::vector<std::string> failures(int n, const F& f) {
  std::vector<std::string> seen(static_cast<std::size_t>(n));
  EXPECT_THROW(run_threads(n,
                           [&](auto& comm) {
                             try {
                               f(comm);
                             } catch (const Error& e) {
                               seen[std::size_t(comm.rank())] = e.what();
                               throw;
                             }
                           }),
               Error);
  return seen;
}

TEST(Pipeline, AStageThatThrowsEndsAllRanks) {
  for (const bool in_backward : {false, true}) {
    for (const int rank : {0, 1, 2}) {
      const auto seen = failures(3, [&](auto& comm) { test::fail_in_stage(comm, rank, in_backward); });
      for (int r = 0; r < 3; ++r) {
        EXPECT_EQ(seen[std::size_t(r)], r == rank ? "out of luck" : text({"rank ", rank, " failed: out of luck"}));
      }
    }
  }
}

TEST(Pipeline, StagesThatDoNotFitEndAllRanks) {
  for (const auto& s : failures(2, [](auto& comm) { test::fail_by_shape(comm); })) {
    expect_contains(s, "pipeline: the stage of rank 1 got activations [1, 2] from rank 0: linear: expected");
  }
  for (const auto& s : failures(2, [](auto& comm) { test::fail_by_type(comm); })) {
    expect_contains(s, "pipeline: rank 1 takes float32, rank 0 sent [1, 3] of float16 (activations of micro-batch 0)");
  }
  // A rank that begins a batch again.
  const auto again = failures(2, [](auto& comm) {
    test::Failing stage;
    stage.fails = comm.rank() == 0;
    Pipeline pipeline(stage, comm);
    const auto step = [&] { pipeline.step(ones({2, 2}), ones({2, 2}), mean_square); };
    if (comm.rank() == 0) {
      EXPECT_THROW(step(), Error);
    }
    step();
  });
  for (const auto& s : again) {
    expect_contains(s, "rank 1 expected activations of micro-batch 1 from rank 0, got activations of micro-batch 0");
  }
  // A rank without gradients.
  const auto without = failures(2, [](auto& comm) {
    const set_grad_enabled mode(comm.rank() == 0);
    nn::Linear<> stage{2, 2};
    Pipeline(stage, comm).step(ones({2, 2}), ones({2, 2}), mean_square);
  });
  for (const auto& s : without) expect_contains(s, "pipeline: rank 0 wants a gradient, rank 1 is in no_grad");
  // Bytes that are no tensor.
  const auto bytes = failures(2, [](auto& comm) {
    nn::Linear<> stage{2, 2};
    Pipeline pipeline(stage, comm);
    const parallel::detail::Envelope e{.mark = 1};
    if (comm.rank() == 0) comm.send(&e, sizeof e, 1);
    else pipeline.step(ones({2, 2}), ones({2, 2}), mean_square);
    comm.barrier();
  });
  for (const auto& s : bytes) {
    expect_contains(s,
                    "pipeline: rank 1 expected a tensor (activations of micro-batch 0) from rank 0, got other bytes");
  }
}

TEST(Pipeline, RefusesWhatItCannotTrain) {
  run_threads(1, [](auto& comm) {
    nn::Linear<> stage{2, 2};
    EXPECT_THROW(Pipeline(stage, comm, {.micro_batches = 0}), Error);
    Pipeline pipeline(stage, comm);
    const auto x = ones({3, 2});
    EXPECT_EQ(message<ShapeError>([&] {
                pipeline.step(ones({0, 2}), x, mean_square);
              }),
              "pipeline: expected a batch of at least one example, got [0, 2]");
    EXPECT_EQ(message<ShapeError>([&] { pipeline.step(Tensor<float>(), x, mean_square); }),
              "pipeline: expected a batch of at least one example, got an undefined tensor");
    EXPECT_EQ(message<ShapeError>([&] {
                pipeline.step(x, ones({2, 2}), mean_square);
              }),
              "pipeline: expected targets of 3 examples, got [2, 2]");
    EXPECT_EQ(message<ShapeError>([&] { pipeline.step(x, Tensor<float>(), mean_square); }),
              "pipeline: expected targets of 3 examples, got an undefined tensor");
    EXPECT_EQ(message<ShapeError>([&] { pipeline.step(x, x, [](const Tensor<float>& y, auto&) { return y; }); }),
              "pipeline: expected a scalar loss, got shape [1, 2]");
    EXPECT_EQ(message<DTypeError>([&] { pipeline.step(x, zeros<std::int64_t>({3}), mean_square); }),
              "pipeline: the loss takes no float32 and int64");
    EXPECT_EQ(message<ShapeError>([&] { pipeline.step(ones({3, 3}), x, mean_square); }).substr(0, 7), "linear:");
    test::Tokens tokens;
    Pipeline of_tokens(tokens, comm);
    EXPECT_EQ(message<DTypeError>([&] { of_tokens.forward(x); }), "pipeline: the stage of rank 0 takes no float32");
    EXPECT_EQ(message([&] { parallel::run_stages<test::Tokens, test::Head>(comm, [](auto&) {}); }),
              "run_stages: expected a stage for each of 1 ranks, got 2");
  });
}

}  // namespace
}  // namespace tenet
