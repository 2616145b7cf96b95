#include <tenet/nn/conv.hpp>
#include <tenet/nn/embedding.hpp>
#include <tenet/nn/init.hpp>
#include <tenet/nn/linear.hpp>

#include "message.hpp"

namespace tenet {
namespace {

struct Moments {
  double least = 1e300, greatest = -1e300, mean = 0, variance = 0;
  explicit Moments(const Tensor<float>& t) {
    const std::vector<float> v = t.to_vector();
    for (const float x : v) {
      least = std::min(least, double(x));
      greatest = std::max(greatest, double(x));
      mean += double(x) / double(v.size());
    }
    for (const float x : v) variance += (double(x) - mean) * (double(x) - mean) / double(v.size());
  }
};

// n numbers: the mean strays by the deviation over sqrt(n), the variance by less than twice its own over sqrt(n).
void expect_uniform(const Tensor<float>& t, double bound) {
  const Moments m(t);
  const double root = std::sqrt(double(t.numel()));
  EXPECT_GE(m.least, -bound * (1 + 1e-6));
  EXPECT_LE(m.greatest, bound * (1 + 1e-6));
  EXPECT_LT(m.least, -bound * (1 - 20 / double(t.numel())));
  EXPECT_GT(m.greatest, bound * (1 - 20 / double(t.numel())));
  EXPECT_NEAR(m.mean, 0, 5 * bound / root);
  EXPECT_NEAR(m.variance, bound * bound / 3, 5 * bound * bound / 3 / root);
}

void expect_normal(const Tensor<float>& t, double deviation) {
  const Moments m(t);
  const double root = std::sqrt(double(t.numel()));
  EXPECT_NEAR(m.mean, 0, 5 * deviation / root);
  EXPECT_NEAR(m.variance, deviation * deviation, 8 * deviation * deviation / root);
  EXPECT_GT(m.greatest, 2.5 * deviation);
}

TEST(Init, LayersStartAsInPyTorch) {
  manual_seed(1);
  const nn::Linear<> linear(100, 300);
  expect_uniform(linear.weight, 0.1);
  expect_uniform(linear.bias, 0.1);
  const nn::Conv2d<> conv(8, 64, {3, 5}, {.groups = 2});
  expect_uniform(conv.weight, 1 / std::sqrt(4.0 * 15));
  expect_uniform(conv.bias, 1 / std::sqrt(4.0 * 15));
  expect_normal(nn::Embedding<>(500, 20).weight, 1);
}

TEST(Init, ASeedGivesTheSameLayers) {
  manual_seed(5);
  const nn::Linear<> a(7, 9), b(7, 9);
  manual_seed(5);
  const nn::Linear<> c(7, 9);
  EXPECT_EQ(a.weight.to_vector(), c.weight.to_vector());
  EXPECT_EQ(a.bias.to_vector(), c.bias.to_vector());
  EXPECT_NE(a.weight.to_vector(), b.weight.to_vector());
}

TEST(Init, FollowsThePapers) {
  Generator g(2);
  const Tensor<float> t = empty({40, 30, 5, 5});  // fans 750 and 1000
  nn::init::xavier_uniform_(t, 2, g);
  expect_uniform(t, 2 * std::sqrt(6.0 / 1750));
  nn::init::xavier_normal_(t, 0.5, g);
  expect_normal(t, 0.5 * std::sqrt(2.0 / 1750));
  nn::init::kaiming_uniform_(t, 0, nn::init::FanMode::in, g);
  expect_uniform(t, std::sqrt(6.0 / 750));
  nn::init::kaiming_uniform_(t, std::sqrt(5.0), nn::init::FanMode::in, g);  // what PyTorch's layers do
  expect_uniform(t, 1 / std::sqrt(750.0));
  nn::init::kaiming_normal_(t, 0.2, nn::init::FanMode::out, g);
  expect_normal(t, std::sqrt(2.0 / 1.04 / 1000));
  nn::init::kaiming_normal_(t);
  expect_normal(t, std::sqrt(2.0 / 750));
}

TEST(Init, ChangesParametersInPlace) {
  nn::Linear<> l(3, 4);
  const auto version = l.weight.version();
  nn::init::constant_(l.weight, 2.5);
  EXPECT_EQ(l.weight.to_vector(), std::vector<float>(12, 2.5f));
  EXPECT_GT(l.weight.version(), version);
  EXPECT_TRUE(l.weight.is_leaf() && l.weight.requires_grad());
  nn::init::ones_(l.bias);
  EXPECT_EQ(l.bias.to_vector(), std::vector<float>(4, 1.f));
  nn::init::zeros_(l.bias);
  EXPECT_EQ(l.bias.to_vector(), std::vector<float>(4, 0.f));
  nn::init::uniform_(l.weight, 7, 7);
  EXPECT_EQ(l.weight.to_vector(), std::vector<float>(12, 7.f));
  const Tensor<float> wide = zeros({4, 4});
  nn::init::constant_(wide.slice(1, 0, 4, 2), 1);
  EXPECT_EQ(wide[0].to_vector(), (std::vector<float>{1, 0, 1, 0}));
}

TEST(Init, FansNeedTwoDimensions) {
  EXPECT_EQ(test::message<ShapeError>([] { nn::init::xavier_uniform_(ones({4})); }),
            "init: fan-in and fan-out need two dimensions, got [4]");
}

TEST(Init, EmptyLayers) {
  const nn::Linear<> l(0, 3);
  EXPECT_EQ(l.weight.shape(), (Shape{3, 0}));
  EXPECT_EQ(l.bias.to_vector(), std::vector<float>(3, 0.f));
  EXPECT_EQ(nn::Linear<>(3, 0).bias.shape(), (Shape{0}));
}

TEST(Init, WrongSizesAreErrors) {
  EXPECT_THROW(nn::Linear<>(-1, 3), ShapeError);
  EXPECT_THROW(nn::Linear<>(3, -1), ShapeError);
  EXPECT_EQ(test::message<ShapeError>([] { nn::Conv2d<>(3, 4, 3, {.groups = 2}); }),
            "Conv2d: 2 groups do not divide 3 and 4 channels");
  EXPECT_THROW(nn::Conv2d<>(3, 4, 3, {.groups = 3}), ShapeError);
  EXPECT_THROW(nn::Conv2d<>(3, 3, 3, {.groups = 0}), ShapeError);
  EXPECT_THROW(nn::Conv2d<>(3, 3, -3), ShapeError);
  EXPECT_THROW(nn::Embedding<>(3, 2, {.padding_idx = 3}), IndexError);
}

}  // namespace
}  // namespace tenet
