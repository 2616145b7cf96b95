#include <tenet/ops/view.hpp>
#include <tenet/optim/clip.hpp>

#include <limits>

#include "message.hpp"

namespace tenet {
namespace {

using optim::clip_grad_norm_;
using optim::clip_grad_value_;

constexpr float inf = std::numeric_limits<float>::infinity();
const float nan = std::nanf("");

template <class T = float>
AnyTensor with_gradient(const std::vector<T>& gradient) {
  const Tensor<T> p = zeros<T>({std::int64_t(gradient.size())}).requires_grad_();
  p.impl()->grad = from_vector(gradient).ref();
  return p;
}
template <class T = float>
std::vector<T> gradient_of(const AnyTensor& p) {
  return Tensor<T>(p.grad_any()).to_vector();
}

TEST(ClipGradNorm, ScalesAllGradientsTogether) {
  const std::vector<AnyTensor> params{with_gradient<float>({3}), with_gradient<float>({4})};
  EXPECT_DOUBLE_EQ(clip_grad_norm_(params, 1), 5);
  EXPECT_EQ(gradient_of(params[0])[0], 0.6f);
  EXPECT_EQ(gradient_of(params[1])[0], 0.8f);
  EXPECT_NEAR(clip_grad_norm_(params, 1), 1, 1e-7);
}

TEST(ClipGradNorm, LeavesSmallGradientsAlone) {
  const std::vector<AnyTensor> params{with_gradient<float>({3, 4}), ones({2}).requires_grad_()};
  const auto version = params[0].grad_any().version();
  EXPECT_EQ(clip_grad_norm_(params, 5), 5);
  EXPECT_EQ(gradient_of(params[0]), (std::vector<float>{3, 4}));
  EXPECT_EQ(params[0].grad_any().version(), version);
  EXPECT_FALSE(params[1].grad_any().defined());
  EXPECT_EQ(clip_grad_norm_({}, 1), 0);
  EXPECT_EQ(clip_grad_norm_({with_gradient<float>({0, 0})}, 1), 0);
  const std::vector<AnyTensor> cleared{with_gradient<float>({3, 4})};
  EXPECT_EQ(clip_grad_norm_(cleared, 0), 5);
  EXPECT_EQ(gradient_of(cleared[0]), (std::vector<float>{0, 0}));
}

TEST(ClipGradNorm, OfHugeGradients) {
  const std::vector<AnyTensor> params{with_gradient(std::vector<float>(100, 1e20f))};
  EXPECT_NEAR(clip_grad_norm_(params, 1) / 1e21, 1, 1e-6);
  for (const float g : gradient_of(params[0])) EXPECT_NEAR(g, 0.1f, 1e-6);
  const std::vector<AnyTensor> wide{with_gradient<double>({3e200, -4e200})};  // squares overflow in double
  EXPECT_NEAR(clip_grad_norm_(wide, 1) / 5e200, 1, 1e-12);
  EXPECT_NEAR(gradient_of<double>(wide[0])[1], -0.8, 1e-12);
  const std::vector<AnyTensor> halves{with_gradient(std::vector<half>(4, half(60000)))};
  EXPECT_NEAR(clip_grad_norm_(halves, 1) / 120000, 1, 1e-3);
  EXPECT_EQ(float(gradient_of<half>(halves[0])[0]), 0.5f);
}

TEST(ClipGradNorm, LeavesInfiniteAndNaNGradientsAlone) {
  for (const float bad : {inf, -inf, nan}) {
    const std::vector<AnyTensor> params{with_gradient<float>({1, bad}), with_gradient<float>({5})};
    EXPECT_FALSE(std::isfinite(clip_grad_norm_(params, 1)));
    EXPECT_EQ(std::isnan(clip_grad_norm_(params, 1)), std::isnan(bad));
    EXPECT_THROW(clip_grad_norm_(params, 1, {.error_if_nonfinite = true}), Error);
    EXPECT_EQ(gradient_of(params[0])[0], 1);
    EXPECT_EQ(gradient_of(params[1])[0], 5);
    EXPECT_FALSE(std::isfinite(clip_grad_norm_(params, 1, {.norm_type = 1})));
    EXPECT_FALSE(std::isfinite(clip_grad_norm_(params, 1, {.norm_type = inf})));
    EXPECT_EQ(gradient_of(params[1])[0], 5);
  }
}

TEST(ClipGradNorm, KnowsOtherNorms) {
  const auto params = [] { return std::vector<AnyTensor>{with_gradient<float>({3, -4}), with_gradient<float>({5})}; };
  EXPECT_DOUBLE_EQ(clip_grad_norm_(params(), 100, {.norm_type = 1}), 12);
  EXPECT_NEAR(clip_grad_norm_(params(), 100, {.norm_type = 3}), 6, 1e-12);
  const auto most = params();
  EXPECT_DOUBLE_EQ(clip_grad_norm_(most, 1, {.norm_type = inf}), 5);
  EXPECT_FLOAT_EQ(gradient_of(most[0])[1], -0.8f);
}

TEST(ClipGradNorm, OfStridedGradients) {
  const Tensor<float> p = zeros({2, 3}).requires_grad_();
  p.impl()->grad = Tensor<float>(full({3, 2}, 2.f).t()).ref();
  const Tensor<float> q = zeros({4}).requires_grad_();
  q.impl()->grad = Tensor<float>(full({1}, 1.f).expand({4})).ref();
  EXPECT_DOUBLE_EQ(clip_grad_norm_({p, q}, 1), std::sqrt(28));
  EXPECT_FLOAT_EQ(p.grad()(1, 2), 2 / std::sqrt(28.f));
  EXPECT_FLOAT_EQ(q.grad()(3), 1 / std::sqrt(28.f));
}

TEST(ClipGradNorm, WrongArgumentsAreErrors) {
  const std::vector<AnyTensor> params{with_gradient<float>({3, 4})};
  EXPECT_EQ(test::message([&] { clip_grad_norm_(params, -1); }), "clip_grad_norm_: expected max_norm >= 0, got -1");
  EXPECT_THROW(clip_grad_norm_(params, std::nan("")), Error);
  EXPECT_THROW(clip_grad_norm_(params, 1, {.norm_type = 0}), Error);
  EXPECT_EQ(gradient_of(params[0]), (std::vector<float>{3, 4}));
}

TEST(ClipGradValue, LimitsEveryElement) {
  const std::vector<AnyTensor> params{with_gradient<float>({-3, 0.5f, 2, inf, nan, -inf})};
  clip_grad_value_(params, 1);
  const std::vector<float> g = gradient_of(params[0]);
  EXPECT_EQ((std::vector<float>{g[0], g[1], g[2], g[3], g[5]}), (std::vector<float>{-1, 0.5f, 1, 1, -1}));
  EXPECT_TRUE(std::isnan(g[4]));
  EXPECT_THROW(clip_grad_value_(params, -1), Error);
}

}  // namespace
}  // namespace tenet
