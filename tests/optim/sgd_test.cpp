#include <tenet/optim/sgd.hpp>

#include "message.hpp"
#include "optim/paths.hpp"

namespace tenet {
namespace {

using optim::SGD;
using optim::SGDOptions;
using test::expect_path;

TEST(SGD, FollowsPyTorch) {
  test::expect_reference<SGD>("sgd", SGDOptions{.lr = 0.1});
  test::expect_reference<SGD>("sgd_decay", SGDOptions{.lr = 0.1, .weight_decay = 0.3});
  test::expect_reference<SGD>("sgd_momentum", SGDOptions{.lr = 0.05, .momentum = 0.9});
  test::expect_reference<SGD>("sgd_dampening",
                              SGDOptions{.lr = 0.05, .momentum = 0.8, .dampening = 0.4, .weight_decay = 0.1});
  test::expect_reference<SGD>("sgd_nesterov",
                              SGDOptions{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true});
  test::expect_reference<SGD>("sgd_maximize", SGDOptions{.lr = 0.05, .momentum = 0.9, .maximize = true});
}

TEST(SGD, TheFirstStepIsNotDamped) {
  expect_path<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5}, 1, {1, 1, 1}, {0.9, 0.76, 0.584});
}

TEST(SGD, WeightsDecayWithAndWithoutMomentum) {
  expect_path<SGD>(SGDOptions{.lr = 0.1, .weight_decay = 0.1}, 1, {0.5}, {0.94});
  expect_path<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1}, 1, {0.5, 0.5}, {0.94, 0.8266});
}

TEST(SGD, AMomentumMayBeginLater) {
  const Tensor<double> p = full<double>({1}, 1).requires_grad_();
  SGD optimizer({p}, {.lr = 0.1, .dampening = 0.5});
  const auto step = [&] {
    p.impl()->grad = ones<double>({1}).ref();
    optimizer.step();
  };
  step();
  optimizer.options().momentum = 0.9;
  step();  // the first of the momentum: undamped
  EXPECT_NEAR(p.item(), 0.8, 1e-12);
  step();
  EXPECT_NEAR(p.item(), 0.66, 1e-12);
}

TEST(SGD, OptionsOutOfRangeAreErrors) {
  const std::vector<AnyTensor> p{ones({1}).requires_grad_()};
  EXPECT_EQ(test::message([&] { SGD(p, {.lr = -1}); }), "SGD: expected lr >= 0, got -1");
  EXPECT_THROW(SGD(p, {.lr = std::nan("")}), Error);
  EXPECT_THROW(SGD(p, {.momentum = -0.1}), Error);
  EXPECT_THROW(SGD(p, {.weight_decay = -0.1}), Error);
  EXPECT_THROW(SGD(p, {.nesterov = true}), Error);
  EXPECT_THROW(SGD(p, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}), Error);
}

}  // namespace
}  // namespace tenet
