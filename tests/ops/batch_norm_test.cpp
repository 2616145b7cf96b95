#include <tenet/ops/batch_norm.hpp>

#include <gtest/gtest.h>

#include "message.hpp"
#include "ops/op_cases.hpp"

namespace tenet {
namespace {

using test::check;
using test::message;

TEST(BatchNorm, AgreesWithPyTorch) {
  for (const char* name : {"2d", "3d", "4d", "long", "pair"}) {
    check({.name = std::string("batch_norm_") + name,
           .f = [](const auto& x) { return batch_norm(x[0], {}, {}, x[1], x[2], true); },
           .file = "norm.txt",
           .expands = std::string(name) != "pair",  // two equal values have no deviation
           .tolerance = 1e-9,
           .float_tolerance = 1e-4});
  }
  check({.name = "batch_norm_plain",
         .f = [](const auto& x) { return batch_norm(x[0], {}, {}, {}, {}, true, 0.1, 0.1); },
         .file = "norm.txt"});
  check({.name = "batch_norm_eval",
         .f = [](const auto& x) { return batch_norm(x[0], x[1], x[2], x[3], x[4]); },
         .file = "norm.txt"});
  check({.name = "batch_norm_eval_plain",
         .f = [](const auto& x) { return batch_norm(x[0], x[1], x[2]); },
         .file = "norm.txt"});
}

TEST(BatchNorm, NormalizesByTheBiasedAndKeepsTheUnbiasedVariance) {
  // https://github.com/ml-explore/mlx/pull/3817
  const auto mean = zeros({1}), var = ones({1}), x = tensor<float>({{1}, {3}});
  const auto y = batch_norm(x, mean, var, {}, {}, true);
  EXPECT_NEAR(y.data()[0], -0.999995, 1e-6);
  EXPECT_NEAR(y.data()[1], 0.999995, 1e-6);
  EXPECT_FLOAT_EQ(mean.item(), 0.2f);
  EXPECT_FLOAT_EQ(var.item(), 1.1f);
}

TEST(BatchNorm, AnEmptyBatchLeavesTheRunningStatistics) {
  // https://github.com/pytorch/pytorch/issues/12013
  const auto mean = zeros({5}), var = ones({5}), x = ones({0, 5, 9}).requires_grad_(), w = ones({5}).requires_grad_();
  const auto y = batch_norm(x, mean, var, w, {}, true);
  EXPECT_EQ(y.shape(), (Shape{0, 5, 9}));
  EXPECT_EQ(mean.to_vector(), zeros({5}).to_vector());
  EXPECT_EQ(var.to_vector(), ones({5}).to_vector());
  y.sum().backward();
  EXPECT_EQ(x.grad().shape(), x.shape());
  EXPECT_EQ(w.grad().to_vector(), zeros({5}).to_vector());
  EXPECT_EQ(batch_norm(ones({3, 0}), {}, {}, {}, {}, true).shape(), (Shape{3, 0}));
}

TEST(BatchNorm, HalvesAreComputedInFloat) {
  const auto x = (randn({6, 3, 4}) * 100 + 300).requires_grad_();
  const auto low = x.detach().to<half>().requires_grad_();
  const auto mean = zeros<half>({3}), var = ones<half>({3}), w = full<half>({3}, half(2));
  const auto y = batch_norm(low, mean, var, w, {}, true);
  const auto wide_mean = zeros({3}), wide_var = ones({3});
  const auto exact = batch_norm(low.detach().to<float>(), wide_mean, wide_var, full({3}, 2), {}, true);
  EXPECT_EQ(y.to_vector(), exact.to<half>().to_vector());
  EXPECT_EQ(mean.to_vector(), wide_mean.to<half>().to_vector());
  EXPECT_EQ(var.to_vector(), wide_var.to<half>().to_vector());
  y.sum().backward();
  EXPECT_TRUE(low.grad());
}

TEST(BatchNorm, RefusesWhatDoesNotFit) {
  const auto three = ones({3});
  EXPECT_EQ(message<ShapeError>([] {
              batch_norm(ones({1, 4, 1}), {}, {}, {}, {}, true);
            }),
            "batch_norm: expected more than one value a channel in training, got input [1, 4, 1]");
  EXPECT_EQ(batch_norm(ones({1, 3}), three, three).shape(), (Shape{1, 3}));
  EXPECT_EQ(message<ShapeError>([&] {
              batch_norm(ones({2, 4}), three, three);
            }),
            "batch_norm: expected a running mean [4], got [3]");
  EXPECT_THROW(batch_norm(ones({2, 4}), {}, {}, three, {}, true), ShapeError);
  EXPECT_THROW(batch_norm(ones({2, 4}), {}, {}, {}, three, true), ShapeError);
  EXPECT_THROW(batch_norm(ones({4}), {}, {}, {}, {}, true), ShapeError);
  EXPECT_EQ(message<Error>([&] {
              batch_norm(ones({2, 3}), {}, {});
            }),
            "batch_norm: expected a running mean and variance, or in training neither");
  EXPECT_THROW(batch_norm(ones({2, 3}), three, {}, {}, {}, true), Error);
}

}  // namespace
}  // namespace tenet
