// Observers against PyTorch and against what they promise.
#include <gtest/gtest.h>

#include "message.hpp"
#include "quant/reference.hpp"

namespace {

using namespace tenet;
using quant::Calibration;
using quant::Observer;

Observer<> observer(const std::string& name, const quant::ObserverOptions& options) {
  Observer<> o(options);
  for (const auto& x : test::quant_reference(name).inputs) o.observe(x.to<float>());
  return o;
}

TEST(Observer, BoundsAgreeWithPyTorch) {
  const auto min_max = observer("min_max", {.method = Calibration::min_max}).bounds();
  const auto& r = test::quant_reference("min_max").output;
  EXPECT_EQ(double(min_max.low), r(0));
  EXPECT_EQ(double(min_max.high), r(1));
  const auto average =
      observer("moving_average", {.method = Calibration::moving_average, .averaging_constant = 0.1}).bounds();
  EXPECT_EQ(double(average.low), test::quant_reference("moving_average").output(0));
  EXPECT_EQ(double(average.high), test::quant_reference("moving_average").output(1));
  for (const std::string name : {"histogram_one", "histogram_two"}) {
    const auto b = observer(name, {.bins = 256}).bounds();
    EXPECT_NEAR(b.low, test::quant_reference(name).output(0), 1e-6) << name;
    EXPECT_NEAR(b.high, test::quant_reference(name).output(1), 1e-6) << name;
  }
}

double error(const Tensor<float>& x, quant::QuantParams p) {
  const auto d = (quant::fake_quantize(x, p) - x).to<double>();
  return (d * d).sum().item();
}

TEST(Observer, HistogramsCutRareValues) {
  auto x = randn<float>({20000});
  x(7) = 40;
  const auto of = [&](Calibration method, double percentile = 99.9) {
    Observer<> o({.method = method, .percentile = percentile});
    o.observe(x.narrow(0, 0, 5000));
    o.observe(x.narrow(0, 5000, 15000));
    return o;
  };
  const auto all = of(Calibration::min_max);
  EXPECT_EQ(all.bounds().high, 40);
  const auto squares = of(Calibration::histogram), entropy = of(Calibration::entropy);
  EXPECT_LE(error(x, squares.params()), error(x, all.params()) * 1.0001);
  EXPECT_LT(entropy.bounds().high, 10);
  EXPECT_GT(entropy.bounds().high, 2);
  Observer<> many_zeros({.method = Calibration::entropy});
  many_zeros.observe(relu(x - 1.0f));
  EXPECT_GT(many_zeros.bounds().high, 1.5);
  const auto percentile = of(Calibration::percentile);
  EXPECT_NEAR(percentile.bounds().low, -3.29, 0.4);
  EXPECT_NEAR(percentile.bounds().high, 3.29, 0.4);
  EXPECT_EQ(of(Calibration::percentile, 100).bounds().high, 40);
}

TEST(Observer, CountsSurviveGrowingBounds) {
  quant::Histogram<> h(256);
  const auto total = [&] {
    double sum = 0;
    for (double c : h.counts()) sum += c;
    return sum;
  };
  const float a[] = {0, 0.25f, 1}, b[] = {-7, 3, 9}, c[] = {2, 2};
  h.add(c, 2, 2, 2);
  h.add(a, 3, 0, 1);
  h.add(b, 3, -7, 9);
  h.add(c, 2, 2, 2);
  EXPECT_NEAR(total(), 10, 1e-9);
  EXPECT_EQ(h.low(), -7);
  EXPECT_EQ(h.high(), 9);
  EXPECT_EQ(h.counts().back(), 1);
  EXPECT_NEAR(h.counts()[(2 + 7) * 16 - 1] + h.counts()[(2 + 7) * 16], 4, 1e-9);
}

TEST(Observer, DegenerateValues) {
  for (const auto method : {Calibration::min_max, Calibration::moving_average, Calibration::histogram,
                            Calibration::entropy, Calibration::percentile}) {
    Observer<> o({.method = method});
    EXPECT_EQ(test::message([&] { o.params(); }), "observer: has seen no values: run the model on some data first");
    o.observe(zeros<float>({0}));
    EXPECT_FALSE(o.seen());
    o.observe(full<float>({3}, 0.5f));
    EXPECT_EQ(o.params().scale, 0.5f / 255);
    o.observe(full<float>({3}, 0.5f));
    o.observe(full<float>({3}, -0.5f));
    o.observe(full<float>({3}, 1e-30f));
    o.observe(randn<float>({500}) * 1e30f);
    EXPECT_GT(o.params().scale, 0);
    EXPECT_LE(o.bounds().low, o.bounds().high);
    EXPECT_THROW(o.observe(full<float>({2}, std::numeric_limits<float>::quiet_NaN())), Error);
    EXPECT_THROW(o.observe(full<float>({2}, std::numeric_limits<float>::infinity())), Error);
  }
  EXPECT_THROW(Observer<>({.bins = 0}), Error);
  EXPECT_THROW(Observer<>({.averaging_constant = 0}), Error);
  EXPECT_THROW(Observer<>({.percentile = 101}), Error);
}

}  // namespace
