#include <tenet/core/random.hpp>
#include <tenet/nn/loss.hpp>
#include <tenet/ops/extremes.hpp>

#include <gtest/gtest.h>

#include "ops/reference.hpp"

namespace tenet {
namespace {

struct Loss : testing::Test {
  Generator g{4};
  Tensor<float> x = randn({5, 3}, g), y = randn({5, 3}, g), p = rand({5, 3}, g), q = rand({5, 3}, g);
  Tensor<std::int64_t> classes = tensor<std::int64_t>({0, 2, -1, 1, 2});
  Tensor<float> weight = tensor<float>({0.5f, 1, 2});
};

void expect_same(const Tensor<float>& a, const Tensor<float>& b) {
  EXPECT_EQ(a.shape(), b.shape());
  EXPECT_EQ(a.to_vector(), b.to_vector());
}

TEST_F(Loss, OfClasses) {
  const CrossEntropyOptions o{
      .weight = weight, .ignore_index = -1, .reduction = Reduction::sum, .label_smoothing = 0.1};
  expect_same(nn::CrossEntropyLoss(o)(x, classes), cross_entropy(x, classes, o));
  const auto valid = tensor<std::int64_t>({0, 2, 0, 1, 2});
  expect_same(nn::CrossEntropyLoss()(x, valid), cross_entropy(x, valid));
  const Tensor<float> target = p / sum(p, {1}, true);
  expect_same(nn::CrossEntropyLoss()(x, target), cross_entropy(x, target));
  const NllLossOptions n{.weight = weight, .ignore_index = -1, .reduction = Reduction::none};
  expect_same(nn::NLLLoss(n)(log_softmax(x, 1), classes), nll_loss(log_softmax(x, 1), classes, n));
  EXPECT_THROW(nn::CrossEntropyLoss()(x, classes), IndexError);
}

TEST_F(Loss, OfDifferences) {
  for (const Reduction r : {Reduction::none, Reduction::mean, Reduction::sum}) {
    expect_same(nn::MSELoss(r)(x, y), mse_loss(x, y, r));
    expect_same(nn::L1Loss(r)(x, y), l1_loss(x, y, r));
    expect_same(nn::SmoothL1Loss({.beta = 0.5, .reduction = r})(x, y),
                smooth_l1_loss(x, y, {.beta = 0.5, .reduction = r}));
  }
  expect_same(nn::MSELoss()(x, y), mse_loss(x, y));
  expect_same(nn::L1Loss()(x, y), l1_loss(x, y));
}

TEST_F(Loss, OfYesAndNo) {
  const BinaryCrossEntropyOptions o{.weight = q, .reduction = Reduction::sum};
  expect_same(nn::BCELoss(o)(p, q), binary_cross_entropy(p, q, o));
  const BinaryCrossEntropyWithLogitsOptions l{.weight = q, .pos_weight = weight};
  expect_same(nn::BCEWithLogitsLoss(l)(x, q), binary_cross_entropy_with_logits(x, q, l));
}

TEST_F(Loss, HasAGradientAndNoParameters) {
  nn::CrossEntropyLoss criterion;
  const Tensor<float> logits = x.clone().requires_grad_();
  criterion(logits, tensor<std::int64_t>({0, 2, 0, 1, 2})).backward();
  EXPECT_EQ(logits.grad().shape(), x.shape());
  EXPECT_TRUE(criterion.parameters().empty());
}

TEST_F(Loss, OfDistributions) {
  const KlDivOptions o{.reduction = Reduction::sum, .log_target = true};
  expect_same(nn::KLDivLoss(o)(x, y), kl_div(x, y, o));
}

TEST(Distillation, AsInPyTorch) {
  const auto reference = test::read_reference("loss.txt", "distillation");
  const auto student = reference.inputs[0].clone().requires_grad_(), teacher = reference.inputs[1];
  const auto labels = to<std::int64_t>(reference.inputs[2]);
  const auto loss = nn::DistillationLoss({.temperature = 3, .alpha = 0.7})(student, teacher, labels);
  EXPECT_NEAR(loss.item(), reference.output.item(), 1e-12);
  loss.backward();
  EXPECT_LT((abs(student.grad() * reference.weights.item() - reference.gradients[0])).max().item(), 1e-12);
}

TEST(Distillation, TheTeacherGetsNoGradient) {
  const auto student = randn({4, 3}).requires_grad_(), teacher = randn({4, 3}).requires_grad_();
  nn::DistillationLoss()(student, teacher, zeros<std::int64_t>({4})).backward();
  EXPECT_TRUE(bool(student.grad()));
  EXPECT_FALSE(bool(teacher.grad()));
}

TEST(Distillation, RefusesOptionsOutOfRange) {
  EXPECT_THROW(nn::DistillationLoss({.temperature = 0}), Error);
  EXPECT_THROW(nn::DistillationLoss({.alpha = 1.5}), Error);
}

}  // namespace
}  // namespace tenet
