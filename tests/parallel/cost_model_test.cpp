// The prediction of a step against figures that can be worked out by hand.
#include <tenet/parallel/cost_model.hpp>

#include <gtest/gtest.h>

#include "message.hpp"

namespace tenet {
namespace {

using parallel::Machine;
using parallel::Plan;
using parallel::predict;
using parallel::Prediction;
using parallel::Workload;

// 1 ms of arithmetic an example, 8 MB of parameters.
Workload work() {
  return {.parameters = 2e6,
          .flops_per_example = 1e6,
          .activation_bytes = 1e4,
          .boundary_bytes = 1e3,
          .layers = 4,
          .tensor_bytes = 1e3,
          .optimizer_bytes = 8,
          .bucket_bytes = 1e6};
}
Machine machine() {
  return {.flops = 1e9,
          .memory_bandwidth = 2e9,
          .ranks_per_node = 4,
          .cores_per_node = 4,
          .within = {1e-5, 1e9},
          .between = {1e-4, 1e8}};
}

TEST(CostModel, OneRankComputesAndUpdates) {
  Machine m = machine();
  m.step_overhead = 0.002;
  const Prediction p = predict(work(), m, {.batch = 16});
  EXPECT_DOUBLE_EQ(p.compute, 0.018);
  EXPECT_DOUBLE_EQ(p.optimizer, 2e6 * 28 / 2e9);
  EXPECT_EQ(p.bubble + p.tensor + p.pipeline + p.data, 0);
  EXPECT_DOUBLE_EQ(p.step(), p.compute + p.optimizer);
  EXPECT_DOUBLE_EQ(p.efficiency, 0.016 / p.step());
  EXPECT_DOUBLE_EQ(p.memory(), 2e6 * (4 + 4 + 8) + 16e4);
}

TEST(CostModel, ReplicasExchangeGradients) {
  // 8 buckets of 1 MB in 2 rounds there and back, and 3/4 of 8 MB twice.
  EXPECT_DOUBLE_EQ(predict(work(), machine(), {.data = 4, .batch = 16}).data, 8 * 4e-5 + 2 * 0.75 * 8e6 / 1e9);
  // Eight ranks are on two nodes: the slower link.
  EXPECT_DOUBLE_EQ(predict(work(), machine(), {.data = 8, .batch = 16}).data, 8 * 6e-4 + 2 * 0.875 * 8e6 / 1e8);
}

TEST(CostModel, RanksShareCores) {
  Machine m = machine();
  m.cores_per_node = 2;
  m.contention = 1.1;
  const auto compute = [&](std::int64_t ranks) {
    return predict(work(), m, {.data = ranks, .batch = double(16 * ranks)}).compute;
  };
  EXPECT_DOUBLE_EQ(compute(1), 0.016);
  EXPECT_DOUBLE_EQ(compute(2), 0.016 * 1.1);
  EXPECT_DOUBLE_EQ(compute(4), 0.016 * 2.2);
  EXPECT_DOUBLE_EQ(compute(8), 0.016 * 2.2);  // on two nodes
}

TEST(CostModel, PipelinesWaitToFillAndDrain) {
  const Prediction p = predict(work(), machine(), {.pipeline = 4, .micro_batches = 8, .batch = 16});
  EXPECT_DOUBLE_EQ(p.compute, 0.004);
  EXPECT_DOUBLE_EQ(p.bubble, 0.004 * 3 / 8);
  EXPECT_DOUBLE_EQ(p.pipeline, 16 * (1e-5 + 2e3 / 1e9));
  // Four of eight micro-batches are alive, of two examples, of which a stage has a quarter of the activations.
  EXPECT_DOUBLE_EQ(p.activation_memory, 2e4);
  EXPECT_DOUBLE_EQ(p.parameter_memory, 2e6);
}

TEST(CostModel, TensorRanksSumActivations) {
  const Prediction p = predict(work(), machine(), {.tensor = 2, .batch = 16});
  EXPECT_DOUBLE_EQ(p.compute, 0.008);
  EXPECT_DOUBLE_EQ(p.tensor, 16 * (2e-5 + 16e3 / 1e9));
}

TEST(CostModel, ZeroSharesWhatItSays) {
  double data[4];
  for (int stage = 0; stage <= 3; ++stage) {
    const Prediction p = predict(work(), machine(), {.data = 4, .zero_stage = stage, .batch = 16});
    data[stage] = p.data;
    EXPECT_DOUBLE_EQ(p.optimizer_memory, stage >= 1 ? 4e6 : 16e6);
    EXPECT_DOUBLE_EQ(p.gradient_memory, stage >= 2 ? 2e6 : 8e6);
    EXPECT_DOUBLE_EQ(p.parameter_memory, stage >= 3 ? 2e6 + 2e6 : 8e6);  // its own, and a layer at work
  }
  EXPECT_DOUBLE_EQ(data[1], data[0]);  // as many bytes
  EXPECT_DOUBLE_EQ(data[2], data[0]);
  EXPECT_GT(data[3], 1.4 * data[0]);  // half as many again
}

TEST(CostModel, RefusesWhatMakesNoSense) {
  const auto refused = [](const Workload& w, const Machine& m, const Plan& p) {
    return test::message([&] { predict(w, m, p); });
  };
  EXPECT_EQ(refused({.flops_per_example = 1}, machine(), {}), "predict: expected parameters > 0, got 0");
  Machine still = machine();
  still.between.bandwidth = 0;
  EXPECT_EQ(refused(work(), still, {}), "predict: expected bandwidth > 0, got 0");
  EXPECT_EQ(refused(work(), machine(), {.pipeline = 5, .batch = 5}),
            "predict: expected at most 4 stages, one a layer, got 5");
  EXPECT_EQ(refused(work(), machine(), {.data = 4, .micro_batches = 2, .batch = 7}),
            "predict: expected an example for each of 4 times 2 micro-batches, got a batch of 7");
  EXPECT_EQ(refused(work(), machine(), {.zero_stage = 4}), "predict: expected a ZeRO stage from 0 to 3, got 4");
  EXPECT_EQ(refused(work(), machine(), {.tensor = 0}), "predict: expected ranks > 0, got 0");
}

}  // namespace
}  // namespace tenet
