// Static quantization: networks whose layers compute with integers throughout.
#include <gtest/gtest.h>

#include "kernels/isas.hpp"
#include "message.hpp"
#include "quant/reference.hpp"

namespace {

using namespace tenet;

struct Net : nn::Module<Net> {
  nn::Conv2d<> conv1{1, 6, 3}, conv2{6, 9, 3, {.stride = 2, .padding = 1}};
  nn::Dropout drop{0.5};
  nn::Linear<> fc{9 * 4 * 4, 5};
  TENET_MODULE(conv1, conv2, drop, fc)
  Tensor<float> forward(const Tensor<float>& x) { return fc(flatten(relu(conv2(relu(conv1(drop(x))))), 1)); }
};

std::vector<Tensor<float>> batches() {
  std::vector<Tensor<float>> all;
  for (int i = 0; i < 4; ++i) all.push_back(randn<float>({8, 1, 10, 10}));
  return all;
}

Tensor<float> rounded(const Tensor<float>& x, const quant::Int8Weight<>& w) {
  return quant::fake_quantize(x, quant::QuantParams{w.input_scale(0), w.input_zero_point(0)});
}

TEST(StaticInt8, ComputesWithRoundedInputsAndWeights) {
  Net net;
  net.eval();
  const auto data = batches();
  for (const bool per_channel : {false, true}) {
    auto q = quant::quantize_static<nn::Conv2d, nn::Linear>(net, data, {.per_channel = per_channel});
    EXPECT_EQ(net.conv1.weight.format_name(), "dense");
    const auto& w = static_cast<quant::Int8Weight<>&>(*q.conv2.weight.format());
    ASSERT_TRUE(w.is_static());
    const auto x = randn<float>({3, 6, 10, 10});
    const auto expected = conv2d(rounded(x, w), w.dense({}), q.conv2.bias, {.stride = 2, .padding = 1});
    const auto y = q.conv2(x);
    ASSERT_EQ(y.shape(), expected.shape());
    for (std::int64_t i = 0; i < y.numel(); ++i) EXPECT_NEAR(y.data()[i], expected.data()[i], 1e-4);
    const auto exact = net(data[0]), answer = q(data[0]);
    for (std::int64_t i = 0; i < exact.numel(); ++i) EXPECT_NEAR(answer.data()[i], exact.data()[i], 0.1);
    std::vector<float> first;
    for_each_isa_and_dots([&] {
      const auto now = q(data[1]).to_vector();
      if (first.empty()) first = now;
      EXPECT_EQ(now, first);
    });
    EXPECT_EQ(q.conv1(data[0][0]).to_vector(), q.conv1(data[0].narrow(0, 0, 1)).to_vector());
    EXPECT_EQ(q(zeros<float>({0, 1, 10, 10})).shape(), (Shape{0, 5}));
    EXPECT_THROW(q.conv1(zeros<float>({1, 2, 10, 10})), ShapeError);
    EXPECT_THROW(q(full<float>({1, 1, 10, 10}, std::numeric_limits<float>::quiet_NaN())), Error);
  }
}

TEST(StaticInt8, TakesWhatALoaderGives) {
  Net net;
  net.eval();
  const auto x = randn<float>({12, 1, 10, 10});
  const data::TensorDataset set(x, zeros<std::int64_t>({12}));
  data::DataLoader loader(set, {.batch_size = 4});
  const quant::StaticOptions options{.observer = {.method = quant::Calibration::min_max}, .names = {"conv*"}};
  auto a = quant::quantize_static<nn::Conv2d, nn::Linear>(net, loader, options);
  auto b = quant::quantize_static<nn::Conv2d, nn::Linear>(net, std::vector{x}, options);
  EXPECT_EQ(a.fc.weight.format_name(), "dense");
  EXPECT_EQ(a(x).to_vector(), b(x).to_vector());
}

TEST(StaticInt8, DynamicConvolutionsToo) {
  Net net;
  auto q = quant::quantize_dynamic<nn::Conv2d>(net, {.per_channel = true});
  const auto x = randn<float>({2, 6, 10, 10});
  const auto& w = static_cast<quant::Int8Weight<>&>(*q.conv2.weight.format());
  const auto expected =
      conv2d(quant::fake_quantize(x, quant::choose_qparams(x)), w.dense({}), q.conv2.bias, {.stride = 2, .padding = 1});
  const auto y = q.conv2(x);
  for (std::int64_t i = 0; i < y.numel(); ++i) EXPECT_NEAR(y.data()[i], expected.data()[i], 1e-4);
  nn::Conv2d<> grouped{6, 4, 3, {.groups = 2}};
  const auto exact = grouped(x);
  quant::quantize_dynamic_<nn::Conv2d>(grouped);
  const auto close = grouped(x);
  for (std::int64_t i = 0; i < exact.numel(); ++i) EXPECT_NEAR(close.data()[i], exact.data()[i], 0.1);
}

TEST(StaticInt8, CalibrationLeavesTheModelAsItWas) {
  Net net;  // in training mode
  const auto none = std::vector<Tensor<float>>{};
  EXPECT_EQ(test::message([&] { quant::quantize_static_<nn::Linear>(net, none); }),
            "quantize_static: no data reached layer 'fc'");
  EXPECT_EQ(net.fc.weight.format_name(), "dense");
  EXPECT_TRUE(net.drop.is_training());
  quant::quantize_static_<nn::Conv2d, nn::Linear>(net, batches());
  EXPECT_TRUE(net.drop.is_training());
  Net other;
  other.load_state_dict(net.state_dict(), {.formats = quant::formats()});
  net.eval();
  other.eval();
  const auto x = randn<float>({2, 1, 10, 10});
  EXPECT_EQ(other(x).to_vector(), net(x).to_vector());
}

}  // namespace
