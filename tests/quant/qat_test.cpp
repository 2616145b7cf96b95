// Quantization-aware training, and what it becomes.
#include <gtest/gtest.h>

#include "message.hpp"
#include "quant/reference.hpp"

namespace {

using namespace tenet;
using Fake = quant::FakeQuantizedWeight<>;

struct Net : nn::Module<Net> {
  nn::Conv2d<> conv{1, 4, 3};
  nn::Linear<> fc{4 * 4 * 4, 3};
  TENET_MODULE(conv, fc)
  Tensor<float> forward(const Tensor<float>& x) { return fc(flatten(relu(conv(x)), 1)); }
};

TEST(Qat, ComputesWithRoundedValuesAndTrainsTheOriginals) {
  Net net;
  quant::prepare_qat_<nn::Linear>(net);
  const auto x = randn<float>({5, 64});
  const auto y = net.fc(x);
  const auto w = quant::fake_quantize(net.fc.weight, quant::choose_channel_qparams(net.fc.weight));
  const auto expected = linear(quant::fake_quantize(x, quant::choose_qparams(x)), w, net.fc.bias);
  EXPECT_EQ(y.to_vector(), expected.to_vector());
  y.sum().backward();
  const auto column = quant::fake_quantize(x, quant::choose_qparams(x)).sum({0});
  const auto row = net.fc.weight[1];
  const float most = std::max(row.max().item(), -row.min().item());
  for (int i = 0; i < 64; ++i) {
    // The greatest magnitude rounds to 128 if it is positive, and saturates.
    EXPECT_NEAR(net.fc.weight.grad()(1, i), row(i) == most ? 0 : column(i), 1e-4);
  }
}

TEST(Qat, AveragesTheBoundsOfInputsWhileItTrains) {
  const auto& r = test::quant_reference("moving_average");
  nn::Linear<> layer{20, 3};
  quant::prepare_qat_<nn::Linear>(layer, {.averaging_constant = 0.1});
  const auto& fake = static_cast<const Fake&>(*layer.weight.format());
  {
    const no_grad guard;
    EXPECT_EQ(layer(r.inputs[0].to<float>()).shape(), (Shape{10, 3}));
  }
  EXPECT_FALSE(fake.seen());
  for (const auto& x : r.inputs) layer(x.to<float>());
  EXPECT_NEAR(fake.bounds(0), r.output(0), 1e-6);
  EXPECT_NEAR(fake.bounds(1), r.output(1), 1e-6);
  layer(zeros<float>({0, 20}));
  const no_grad guard;
  layer(r.inputs[0].to<float>() * 100.0f);
  EXPECT_NEAR(fake.bounds(1), r.output(1), 1e-6);
}

TEST(Qat, LearnsAndBecomesInt8) {
  manual_seed(3);
  Net net;
  optim::SGD optimizer(net.parameters(), {.lr = 0.05, .momentum = 0.9});
  quant::prepare_qat_<nn::Conv2d, nn::Linear>(net);
  const auto x = randn<float>({16, 1, 6, 6});
  const auto target = from_vector<std::int64_t>({0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0});
  nn::CrossEntropyLoss criterion;
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    optimizer.zero_grad();
    const auto loss = criterion(net(x), target);
    loss.backward();
    optimizer.step();
    last = loss.item();
    if (step == 0) first = last;
  }
  EXPECT_LT(last, first / 4);
  const no_grad guard;
  const auto trained = net(x);
  auto int8 = quant::convert(net);
  EXPECT_EQ(net.fc.weight.format_name(), "fake_int8");
  EXPECT_EQ(int8.conv.weight.format_name(), "int8");
  const auto y = int8(x);
  for (std::int64_t i = 0; i < y.numel(); ++i) EXPECT_NEAR(y.data()[i], trained.data()[i], 0.05);
}

TEST(Qat, IsStored) {
  Net net, other;
  quant::prepare_qat_<nn::Conv2d, nn::Linear>(net, {.per_channel = false});
  const auto x = randn<float>({2, 1, 6, 6});
  net(x);
  other.load_state_dict(net.state_dict(), {.formats = quant::formats()});
  const no_grad guard;
  EXPECT_EQ(other(x).to_vector(), net(x).to_vector());
  EXPECT_EQ(quant::convert(other)(x).to_vector(), quant::convert(net)(x).to_vector());
  const auto bounds = from_vector<float>({-1, 1});
  const auto settings = from_vector<float>({0.01f, 1});
  EXPECT_TRUE(Fake::read({2, 2}, {{"bounds", bounds}, {"settings", settings}}));
  EXPECT_THROW(Fake::read({2, 2}, {{"bounds", bounds}}), Error);
  EXPECT_THROW(Fake::read({2, 2}, {{"bounds", bounds}, {"settings", settings * 0}}), Error);
  EXPECT_THROW(Fake::read({2, 2}, {{"bounds", bounds / 0}, {"settings", settings}}), Error);
}

TEST(Qat, RefusesWhatItCannotTrain) {
  Net net;
  quant::prepare_qat_<nn::Linear>(net, {.names = {"fc"}});
  EXPECT_EQ(test::message([&] { quant::convert_(net); }), "convert: no data reached fc.weight");
  EXPECT_EQ(test::message([&] { quant::prepare_qat_<nn::Linear>(net); }),
            "prepare_qat: layer 'fc' has a weight of format fake_int8");
  Net other;
  EXPECT_THROW(quant::prepare_qat_<nn::Linear>(other, {.averaging_constant = 0}), Error);
  EXPECT_THROW(quant::prepare_qat_<nn::Linear>(other, {.names = {"conv"}}), Error);
}

TEST(Compare, TellsTheErrorTheSizeAndTheTimeOfEachLayer) {
  Net net;
  auto q = quant::quantize_dynamic<nn::Linear>(net);
  const std::vector<Tensor<float>> data{randn<float>({4, 1, 6, 6}), randn<float>({4, 1, 6, 6})};
  const auto c = quant::compare(net, q, data);
  ASSERT_EQ(c.layers.size(), 2u);
  EXPECT_EQ(c.layers[0].name, "conv");
  EXPECT_EQ(c.layers[0].format, "dense");
  EXPECT_TRUE(std::isinf(c.layers[0].sqnr));
  EXPECT_EQ(c.layers[0].bytes, 4 * 9 * 4);
  EXPECT_EQ(c.layers[1].format, "int8");
  EXPECT_EQ(c.layers[1].bytes, 3 * 64 + 4);
  EXPECT_EQ(c.layers[1].reference_bytes, 3 * 64 * 4);
  EXPECT_EQ(c.total.bytes, 4 * 9 * 4 + 4 * 4 + 3 * 64 + 4 + 3 * 4);
  double signal = 0, noise = 0;
  for (const auto& x : data) {
    const auto exact = net(x).to<double>(), d = exact - q(x).to<double>();
    signal += (exact * exact).sum().item(), noise += (d * d).sum().item();
  }
  EXPECT_NEAR(c.total.sqnr, 10 * std::log10(signal / noise), 1e-6);
  EXPECT_NEAR(c.layers[1].sqnr, c.total.sqnr, 1e-9);
  EXPECT_GT(c.total.sqnr, 25);
  for (const auto& row : {c.layers[0], c.layers[1], c.total}) {
    EXPECT_NE(row.seconds, 0);
    EXPECT_NE(row.reference_seconds, 0);
  }
  const std::string table = c.str();
  EXPECT_NE(table.find("ms  float ms"), std::string::npos) << table;
  EXPECT_NE(table.find("fc     int8"), std::string::npos) << table;
  EXPECT_NE(table.find("model"), std::string::npos) << table;
}

TEST(Compare, TakesModulesThatGiveNoTensor) {
  struct Twice : nn::Module<Twice> {
    nn::Linear<> fc{2, 2};
    TENET_MODULE(fc)
    std::pair<Tensor<float>, Tensor<float>> forward(const Tensor<float>& x) { return {fc(x), fc(x)}; }
  };
  struct Sum : nn::Module<Sum> {
    Twice twice;
    TENET_MODULE(twice)
    Tensor<float> forward(const Tensor<float>& x) {
      const auto [a, b] = twice(x);
      return a + b;
    }
  } net;
  const auto wrong = quant::compare(net, net, std::vector{full({1, 2}, std::numeric_limits<float>::quiet_NaN())});
  EXPECT_TRUE(std::isnan(wrong.total.sqnr));  // not the best of all
  const auto c = quant::compare(net, net, std::vector{ones({1, 2})});
  ASSERT_EQ(c.layers.size(), 1u);
  EXPECT_TRUE(std::isinf(c.total.sqnr));
}

}  // namespace
