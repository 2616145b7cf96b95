#include <tenet/optim/adam.hpp>

#include "message.hpp"
#include "optim/paths.hpp"

namespace tenet {
namespace {

using optim::Adam;
using optim::AdamOptions;
using optim::AdamW;
using optim::AdamWOptions;
using test::expect_path;

TEST(Adam, FollowsPyTorch) {
  test::expect_reference<Adam>("adam", AdamOptions{.lr = 0.1});
  test::expect_reference<Adam>("adam_options",
                               AdamOptions{.lr = 0.02, .betas = {0.8, 0.95}, .eps = 1e-3, .weight_decay = 0.2});
  test::expect_reference<Adam>("adam_amsgrad", AdamOptions{.lr = 0.1, .betas = {0.9, 0.5}, .amsgrad = true});
  test::expect_reference<Adam>("adam_maximize", AdamOptions{.lr = 0.1, .maximize = true});
}

TEST(AdamW, FollowsPyTorch) {
  test::expect_reference<AdamW>("adamw", AdamWOptions{.lr = 0.1});
  test::expect_reference<AdamW>("adamw_options",
                                AdamWOptions{.lr = 0.02, .betas = {0.8, 0.95}, .eps = 1e-3, .weight_decay = 0.2});
  test::expect_reference<AdamW>("adamw_amsgrad",
                                AdamWOptions{.lr = 0.1, .betas = {0.9, 0.5}, .weight_decay = 0.1, .amsgrad = true});
}

TEST(Adam, CorrectsTheBias) {
  expect_path<Adam>(AdamOptions{.lr = 0.1}, 0, {0.5}, {-0.099999998});
  expect_path<Adam>(AdamOptions{.lr = 0.1}, 1, {0.5, -0.5, 1}, {0.900000002, 0.905263160, 0.855438946});
}

TEST(Adam, DecaysThroughTheGradientAndAdamWBesideIt) {
  expect_path<Adam>(AdamOptions{.lr = 0.1, .weight_decay = 0.1}, 1, {0.5, 0.5}, {0.900000002, 0.800047340});
  expect_path<AdamW>(AdamWOptions{.lr = 0.1, .weight_decay = 0.1}, 1, {0.5, 0.5}, {0.890000002, 0.781100004});
  expect_path<Adam>(AdamOptions{.lr = 0.1, .weight_decay = 0.1}, 1, {0}, {0.90000001});
  expect_path<AdamW>(AdamWOptions{.lr = 0.1, .weight_decay = 0.1}, 1, {0}, {0.99});
  EXPECT_EQ(AdamWOptions().weight_decay, 0.01);
  EXPECT_EQ(AdamOptions().weight_decay, 0);
}

TEST(Adam, OptionsOutOfRangeAreErrors) {
  const std::vector<AnyTensor> p{ones({1}).requires_grad_()};
  EXPECT_EQ(test::message([&] { Adam(p, {.betas = {1, 0.9}}); }), "Adam: expected betas in [0, 1), got 1 and 0.9");
  EXPECT_THROW(Adam(p, {.betas = {0.9, -0.1}}), Error);
  EXPECT_THROW(Adam(p, {.eps = -1}), Error);
  EXPECT_THROW(AdamW(p, {.weight_decay = -1}), Error);
  EXPECT_THROW(AdamW(p, {.lr = -1}), Error);
}

}  // namespace
}  // namespace tenet
