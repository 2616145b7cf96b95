// Gradual pruning: when it prunes, and how much.
#include <gtest/gtest.h>
#include <tenet/tenet.hpp>

namespace {

using namespace tenet;

struct Net : nn::Module<Net> {
  nn::Linear<> a{20, 20}, b{30, 20};
  TENET_MODULE(a, b)
};

TEST(GradualMagnitude, FollowsTheCubicCurve) {
  Net net;
  prune::GradualMagnitude pruning(prune::weights(net),
                                  {.sparsity = 0.8, .end = 14, .begin = 4, .frequency = 5, .initial_sparsity = 0.1});
  EXPECT_EQ(pruning.target(3), 0);
  EXPECT_NEAR(pruning.target(4), 0.1, 1e-12);
  EXPECT_NEAR(pruning.target(9), 0.8 - 0.7 / 8, 1e-12);
  EXPECT_EQ(pruning.target(14), 0.8);
  EXPECT_EQ(pruning.target(99), 0.8);
  std::vector<double> after;
  for (int i = 0; i < 17; ++i) {
    pruning.step();
    after.push_back(prune::sparsity(net.a));
  }
  EXPECT_EQ(after[3], 0);
  EXPECT_EQ(after[4], 0.1);
  EXPECT_EQ(after[8], 0.1);
  EXPECT_EQ(after[9], 0.7125);
  EXPECT_EQ(after[14], 0.8);
  EXPECT_EQ(after[16], 0.8);
  EXPECT_EQ(prune::sparsity(net.b), 0.8);
  EXPECT_EQ(pruning.current_step(), 17);
}

TEST(GradualMagnitude, EndsAtTheEndWhateverTheFrequency) {
  Net net;
  prune::GradualMagnitude pruning(prune::weights(net), {.sparsity = 0.5, .end = 10, .frequency = 7});
  for (int i = 0; i < 11; ++i) pruning.step();
  EXPECT_EQ(prune::sparsity(net), 0.5);
}

TEST(GradualMagnitude, TakesAllTogetherIfAsked) {
  Net net;
  {
    const no_grad guard;
    net.a.weight.mul_(1e-3f);
  }
  prune::GradualMagnitude pruning(prune::weights(net), {.sparsity = 0.4, .end = 0, .global = true});
  pruning.step();
  EXPECT_GT(prune::sparsity(net.a), 0.95);
  EXPECT_NEAR(prune::sparsity(net), 0.4, 1e-12);
}

TEST(GradualMagnitude, IsResumedFromItsStepAndTheMasks) {
  Net net;
  const prune::GradualMagnitudeOptions options = {.sparsity = 0.6, .end = 10};
  prune::GradualMagnitude whole(prune::weights(net), options);
  for (int i = 0; i < 5; ++i) whole.step();
  Net copy = net;
  prune::GradualMagnitude rest(prune::weights(copy), options);
  rest.set_step(whole.current_step());
  for (int i = 0; i < 3; ++i) {
    whole.step();
    rest.step();
    EXPECT_EQ(net.a.weight.dense().to_vector(), copy.a.weight.dense().to_vector());
  }
}

TEST(GradualMagnitude, RefusesOptionsOutOfRange) {
  Net net;
  const auto make = [&](prune::GradualMagnitudeOptions o) { prune::GradualMagnitude pruning(prune::weights(net), o); };
  EXPECT_THROW(make({.sparsity = 1.5, .end = 1}), Error);
  EXPECT_THROW(make({.sparsity = 0.5, .end = 1, .initial_sparsity = -1}), Error);
  EXPECT_THROW(make({.sparsity = 0.5, .end = 1, .begin = 2}), Error);
  EXPECT_THROW(make({.sparsity = 0.5, .end = 1, .begin = -1}), Error);
  EXPECT_THROW(make({.sparsity = 0.5, .end = 1, .frequency = 0}), Error);
  prune::GradualMagnitude pruning(prune::weights(net), {.sparsity = 0.5, .end = 1});
  EXPECT_THROW(pruning.set_step(-1), Error);
}

}  // namespace
