// Affine quantization against PyTorch, degenerate ranges, and values that cannot be quantized.
#include <gtest/gtest.h>
#include "message.hpp"
#include "quant/reference.hpp"

#include <cmath>

namespace {

using namespace tenet;
using test::doubles;
using test::Reference;

const Reference& reference(const std::string& name) { return test::quant_reference(name); }

constexpr const char* values[] = {"spread", "positive",  "negative", "lopsided", "zeros",
                                  "half",   "minus_two", "tiny",     "huge"};

template <class Q>
void check_type(const std::string& type, quant::Levels levels) {
  for (const std::string value : values) {
    for (const bool symmetric : {false, true}) {
      const std::string label = type + (symmetric ? "_symmetric_" : "_affine_") + value;
      SCOPED_TRACE(label);
      const Reference& r = reference("qparams_" + label);
      const auto x = r.inputs[0].to<float>();
      const auto p = quant::choose_qparams(x, levels, symmetric);
      EXPECT_EQ(double(p.scale), r.output(0, 0));
      EXPECT_EQ(double(p.zero_point), r.output(1, 0));
      if (value == "huge") continue;
      EXPECT_EQ(doubles(quant::quantize<Q>(x, p)), reference("quantize_" + label).output.to_vector());
    }
  }
}

TEST(Affine, AgreesWithPyTorch) {
  check_type<std::uint8_t>("u8", quant::uint8_levels);
  check_type<std::int8_t>("s8", quant::int8_levels);
  const Reference& ties = reference("quantize_ties");
  EXPECT_EQ(doubles(quant::quantize<std::int8_t>(ties.inputs[0].to<float>(), quant::QuantParams{0.25f, 3})),
            ties.output.to_vector());
}

TEST(Affine, ChannelsAgreeWithPyTorch) {
  for (const int axis : {0, 1}) {
    const Reference& r = reference("qparams_channel_" + std::to_string(axis));
    const auto x = r.inputs[0].to<float>();
    const auto p = quant::choose_channel_qparams(x, quant::int8_levels, true, axis);
    EXPECT_EQ(doubles(p.scales), r.output[0].to_vector());
    EXPECT_EQ(doubles(p.zero_points), r.output[1].to_vector());
    const auto q = quant::quantize(x, p);
    EXPECT_EQ(doubles(q), reference("quantize_channel_" + std::to_string(axis)).output.to_vector());
    const auto back = quant::dequantize(q, p);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(back.select(axis, i).to_vector(),
                quant::dequantize(q.select(axis, i), quant::QuantParams{p.scales(i), 0}).to_vector());
    }
  }
}

TEST(Affine, FakeQuantizationAgreesWithPyTorch) {
  struct Case {
    quant::Levels levels;
    std::int32_t zero_point;
  };
  for (const Case c : {Case{{0, 255}, 128}, {{-128, 127}, 0}, {{0, 15}, 3}, {{-8, 7}, 0}}) {
    const Reference& r = reference("fake_quantize_" + std::to_string(c.levels.high));
    SCOPED_TRACE(r.name);
    auto x = r.inputs[0].to<float>().requires_grad_();
    const auto y = quant::fake_quantize(x, quant::QuantParams{0.03125f, c.zero_point}, c.levels);
    EXPECT_EQ(doubles(y), r.output.to_vector());
    y.backward(r.weights.to<float>());
    EXPECT_EQ(doubles(x.grad()), doubles(r.gradients[0].to<float>()));
  }
  for (const int axis : {0, 1}) {
    const Reference& r = reference("fake_quantize_channel_" + std::to_string(axis));
    auto x = r.inputs[0].to<float>().requires_grad_();
    const quant::ChannelParams p{r.inputs[1].to<float>(), r.inputs[2].to<std::int32_t>(), axis};
    const auto y = quant::fake_quantize(x, p);
    EXPECT_EQ(doubles(y), r.output.to_vector());
    y.backward(r.weights.to<float>());
    EXPECT_EQ(doubles(x.grad()), doubles(r.gradients[0].to<float>()));
  }
}

TEST(Affine, FakeQuantizationIsQuantizationAndBack) {
  const auto x = randn<float>({3, 1000}) * 3;
  const auto p = quant::choose_qparams(x * 0.5f);
  EXPECT_EQ(quant::fake_quantize(x, p).to_vector(), quant::dequantize(quant::quantize(x, p), p).to_vector());
  const auto turned = x.t();
  EXPECT_EQ(quant::quantize(turned, p).to_vector(), quant::quantize(turned.contiguous(), p).to_vector());
  const auto wide = quant::fake_quantize(x.to<double>(), quant::QuantParams{0.5f, 10});
  EXPECT_EQ(doubles(quant::fake_quantize(x, quant::QuantParams{0.5f, 10})), wide.to_vector());
}

TEST(Affine, DegenerateRanges) {
  const auto one = [](float v) { return full<float>({3}, v); };
  const auto zeros = quant::choose_qparams(one(0));
  EXPECT_GT(zeros.scale, 0);
  EXPECT_EQ(zeros.zero_point, 0);
  EXPECT_EQ(quant::dequantize(quant::quantize(one(0), zeros), zeros)(0), 0.0f);
  const auto half = quant::choose_qparams(one(0.5f));
  EXPECT_EQ(half.scale, 0.5f / 255);
  EXPECT_EQ(quant::quantize(one(0.5f), half)(0), 255);
  EXPECT_EQ(quant::dequantize(quant::quantize(one(0.5f), half), half)(0), 0.5f);
  const auto minus = quant::choose_qparams(one(-2));
  EXPECT_EQ(minus.zero_point, 255);
  EXPECT_EQ(quant::quantize(one(-2), minus)(0), 0);
  const auto positive = quant::choose_qparams(1.0f, 3.0f);
  EXPECT_EQ(positive.scale, 3.0f / 255);
  EXPECT_EQ(positive.zero_point, 0);
  const auto tiny = quant::choose_qparams(one(1e-40f));
  EXPECT_TRUE(std::isfinite(1 / tiny.scale));
  EXPECT_EQ(quant::quantize(one(1e-40f), tiny)(0), 0);
  const auto huge = quant::choose_qparams(-3e38f, 3e38f);
  EXPECT_TRUE(std::isfinite(huge.scale));
}

TEST(Affine, RefusesWhatItCannotQuantize) {
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()}) {
    for (const int n : {1, 5, 40, 70000}) {
      auto x = ones<float>({n});
      x(n / 2) = bad;
      EXPECT_THROW(quant::choose_qparams(x), Error);
      EXPECT_THROW(quant::choose_channel_qparams(x), Error);
      EXPECT_EQ(test::message([&] { quant::quantize(x, quant::QuantParams{}); }),
                "quantize: expected finite numbers, got an infinity or NaN");
    }
    EXPECT_THROW(quant::choose_qparams(bad, 1.0f), Error);
  }
  EXPECT_THROW(quant::choose_qparams(zeros<float>({0})), ShapeError);
  EXPECT_THROW(quant::quantize(zeros<float>({2, 0}), quant::QuantParams{}), ShapeError);
  const auto x = ones<float>({2});
  EXPECT_THROW(quant::quantize(x, quant::QuantParams{0}), Error);
  EXPECT_THROW(quant::quantize(x, quant::QuantParams{-1}), Error);
  EXPECT_THROW(quant::quantize(x, quant::QuantParams{NAN}), Error);
  EXPECT_EQ(test::message([&] {
              quant::fake_quantize(x, quant::QuantParams{1, 256});
            }),
            "fake_quantize: expected a zero point in [0, 255], got 256");
  EXPECT_THROW(quant::quantize(x, quant::ChannelParams{ones<float>({3}), zeros<std::int32_t>({3})}), ShapeError);
  EXPECT_EQ(test::message([&] { quant::quantize<std::int8_t>(x, quant::QuantParams{}, quant::uint8_levels); }),
            "quantize: expected levels low < high in [-128, 127], got 0 and 255");
  const quant::ChannelParams channels{ones<float>({2}), zeros<std::int32_t>({2})};
  EXPECT_THROW(quant::quantize<std::int8_t>(x, channels, quant::uint8_levels), Error);
  for (const quant::Levels& bad : {quant::Levels{5, 5}, {5, -5}, {0, std::numeric_limits<std::int32_t>::max()}}) {
    EXPECT_THROW(quant::choose_qparams(0.0f, 0.5f, bad), Error);
    EXPECT_THROW(quant::choose_channel_qparams(x, bad), Error);
    EXPECT_THROW(quant::fake_quantize(x, quant::QuantParams{}, bad), Error);
    EXPECT_THROW(quant::fake_quantize(x, channels, bad), Error);
    quant::Observer<float> observer;
    observer.observe(x);
    EXPECT_THROW(observer.params(bad), Error);
  }
  EXPECT_TRUE(std::isnan(quant::fake_quantize(full<float>({1}, NAN), quant::QuantParams{})(0)));
}

TEST(Affine, GradientOfFakeQuantizationAtItsEnds) {
  // 255 is the last level: what rounds to it passes, what rounds beyond does not.
  auto x = from_vector<float>({-0.5f, -0.51f, 255.49f, 255.5f, 256, 3e38f, -3e38f}).requires_grad_();
  quant::fake_quantize(x, quant::QuantParams{1, 0}).sum().backward();
  EXPECT_EQ(x.grad().to_vector(), (std::vector<float>{1, 0, 1, 0, 0, 0, 0}));
}

}  // namespace
