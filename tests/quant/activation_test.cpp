// Models in which integers flow from layer to layer.
#include <gtest/gtest.h>

#include <tenet/data/mnist.hpp>

#include "kernels/isas.hpp"
#include "message.hpp"
#include "quant/reference.hpp"

namespace {

using namespace tenet;
using quant::Activation;
using Int8 = quant::Int8Weight<>;

const Int8& int8_of(const nn::Weight<>& weight) { return static_cast<const Int8&>(*weight.format()); }

/// A weight of int8 with parameters of its own.
std::shared_ptr<Int8> int8_weight(const Shape& shape, quant::QuantParams input, quant::QuantParams output) {
  auto w = std::make_shared<Int8>(randn<float>(shape), true);
  w->set_input(input);
  w->set_output(output);
  return w;
}

/// What a layer makes of integers, by the definition: taps(o, i) gives pairs of a weight's and an input's place.
std::uint8_t requantized(std::int64_t sum, const Int8& w, std::int64_t o, const Tensor<float>& bias) {
  const float scale = w.input_scale(0) * w.scales(o) / w.output_scale(0);
  const volatile float product = float(sum) * scale;  // rounded before the sum
  const float shift = bias ? bias(o) / w.output_scale(0) : 0.0f;
  const float x = std::nearbyint(product + shift) + float(w.output_zero_point(0));
  return std::uint8_t(std::min(std::max(x, 0.0f), 255.0f));
}

TEST(Activation, LinearGivesTheIntegersOfItsDefinitionOnEveryMachine) {
  for (const int rows : {1, 3, 6, 70}) {
    const int in = 150, out = 37;
    nn::Linear<> layer{in, out, {.bias = rows != 3}};
    layer.weight.set_format(int8_weight({out, in}, {0.03f, 90}, {0.2f, rows == 6 ? 0 : 117}));
    const Int8& w = int8_of(layer.weight);
    const Activation x(quant::quantize(randn<float>({rows, in}), {0.03f, 90}), {0.03f, 90});
    Tensor<std::uint8_t> expected = empty<std::uint8_t>({rows, out});
    for (int r = 0; r < rows; ++r) {
      for (int o = 0; o < out; ++o) {
        std::int64_t sum = 0;
        for (int i = 0; i < in; ++i) sum += (x.integers()(r, i) - 90) * w.values(o, i);
        expected(r, o) = requantized(sum, w, o, layer.bias);
      }
    }
    for_each_isa_and_dots([&] {
      const auto y = layer(x);
      ASSERT_TRUE(y.is_quantized());
      EXPECT_EQ(y.params().zero_point, w.output_zero_point(0));
      EXPECT_EQ(y.integers().to_vector(), expected.to_vector()) << rows;
    });
  }
}

TEST(Activation, ConvolutionGivesTheIntegersOfItsDefinitionOnEveryMachine) {
  nn::Conv2d<> layer{3, 5, 3, {.padding = 1}};
  layer.weight.set_format(int8_weight({5, 3, 3, 3}, {0.03f, 90}, {0.1f, 40}));
  const Int8& w = int8_of(layer.weight);
  const Activation x(quant::quantize(randn<float>({2, 3, 9, 8}), {0.03f, 90}), {0.03f, 90});
  Tensor<std::uint8_t> expected = empty<std::uint8_t>({2, 5, 9, 8});
  for (int n = 0; n < 2; ++n) {
    for (int o = 0; o < 5; ++o) {
      for (int i = 0; i < 9 * 8; ++i) {
        std::int64_t sum = 0;
        for (int tap = 0; tap < 27; ++tap) {
          const int row = i / 8 + tap / 3 % 3 - 1, column = i % 8 + tap % 3 - 1;
          if (row < 0 || row > 8 || column < 0 || column > 7) continue;  // padding is 0
          sum += (x.integers()(n, tap / 9, row, column) - 90) * w.values(o, tap / 9, tap / 3 % 3, tap % 3);
        }
        expected(n, o, i / 8, i % 8) = requantized(sum, w, o, layer.bias);
      }
    }
  }
  for_each_isa_and_dots([&] {
    EXPECT_EQ(layer(x).integers().to_vector(), expected.to_vector());
    // Numbers are quantized on the way in.
    EXPECT_EQ(layer(Activation(x.dequantize())).integers().to_vector(), expected.to_vector());
    EXPECT_EQ(layer(x.map([](const auto& t) { return t[1]; })).integers().to_vector(), expected[1].to_vector());
  });
}

TEST(Activation, FunctionsOfValuesKeepTheScale) {
  const auto numbers = randn<float>({2, 3, 8, 10});
  const quant::QuantParams p{0.02f, 100};
  const Activation x(quant::quantize(numbers, p), p), same(numbers);
  EXPECT_EQ(x.shape(), (Shape{2, 3, 8, 10}));
  EXPECT_EQ(x.size(-1), 10);
  EXPECT_EQ(same.size(0), 2);
  EXPECT_EQ(same.dim(), 4);
  EXPECT_FALSE(same.is_quantized());
  EXPECT_FALSE(same.integers());
  EXPECT_EQ(same.dequantize().to_vector(), numbers.to_vector());
  const auto values = x.dequantize();
  EXPECT_EQ(values.to_vector(), quant::fake_quantize(numbers, p).to_vector());
  const auto check = [&](const Activation<>& y, const Tensor<float>& expected) {
    EXPECT_TRUE(y.is_quantized());
    EXPECT_EQ(y.params().scale, p.scale);
    EXPECT_EQ(y.shape(), expected.shape());
    EXPECT_EQ(y.dequantize().to_vector(), expected.to_vector());
  };
  check(relu(x), relu(values));
  check(nn::ReLU()(x), relu(values));
  check(nn::MaxPool2d(3, 2, 1)(x), max_pool2d(values, {.kernel_size = 3, .stride = 2, .padding = 1}));
  check(max_pool2d(x, {}), max_pool2d(values, {}));
  check(x.view({6, -1}), values.view({6, -1}));
  check(x.reshape({2, 240}), values.view({2, 240}));
  check(x.flatten(), values.flatten());
  check(nn::Flatten()(x), values.flatten(1));
  check(nn::Identity()(x), values);
  check(nn::Dropout().eval()(x), values);
  nn::Sequential net{nn::ReLU(), nn::MaxPool2d(2), nn::Flatten()};
  check(net(x), max_pool2d(relu(values), {}).flatten(1));
  const Activation low(quant::quantize(numbers, {0.02f, 0}), {0.02f, 0});
  EXPECT_TRUE(relu(low).integers().is(low.integers()));
  // These give numbers.
  EXPECT_EQ((x + same).dequantize().to_vector(), (values + numbers).to_vector());
  EXPECT_EQ(relu(same).dequantize().to_vector(), relu(numbers).to_vector());
  EXPECT_EQ(nn::GELU()(x).dequantize().to_vector(), gelu(values).to_vector());
  EXPECT_FALSE(nn::Dropout(1)(x).is_quantized());
  EXPECT_EQ(nn::Dropout(1)(x).dequantize().to_vector(), zeros<float>({480}).to_vector());
}

/// Takes only tensors, and gives more than one.
struct Sums : nn::Module<Sums> {
  TENET_MODULE()
  std::pair<Tensor<float>, Tensor<float>> forward(const Tensor<float>& a, const Tensor<float>& b, float c) {
    return {a + b, a * c};
  }
};

TEST(Activation, ModulesThatTakeTensorsGetThem) {
  const quant::QuantParams p{0.5f, 7};
  const Activation x(quant::quantize(from_vector<float>({1, 2}), p), p);
  const auto [a, b] = Sums()(x, x, 3);
  EXPECT_EQ(a.to_vector(), (std::vector<float>{2, 4}));
  EXPECT_EQ(b.to_vector(), (std::vector<float>{3, 6}));
}

struct Net : nn::Module<Net> {
  nn::Conv2d<> conv1{1, 6, 5}, conv2{6, 12, 5};
  nn::MaxPool2d pool{2, 2};
  nn::Dropout drop{0.1};
  nn::Linear<> fc1{12 * 4 * 4, 50}, fc2{50, 10};
  TENET_MODULE(conv1, conv2, pool, drop, fc1, fc2)
  auto forward(auto x) {
    x = pool(relu(conv1(x)));
    x = pool(relu(conv2(x)));
    x = relu(fc1(drop(x.view({-1, 12 * 4 * 4}))));
    return fc2(x);
  }
};

double accuracy(const data::MNIST& set, auto predict) {
  data::DataLoader loader(set, {.batch_size = 100});
  std::int64_t right = 0;
  for (auto& [images, labels] : loader) right += count_nonzero(argmax(predict(images), 1) == labels).item();
  return double(right) / double(set.size());
}

TEST(Activation, DigitsInIntegers) {
  manual_seed(1);
  Net net;
  const data::MNIST training(TENET_DIGITS_DIR, true), test(TENET_DIGITS_DIR, false);
  data::DataLoader loader(training, {.batch_size = 64, .shuffle = true, .seed = 2});
  optim::SGD optimizer(net.parameters(), {.lr = 0.02, .momentum = 0.9});
  std::vector<Tensor<float>> some;
  for (auto& [images, labels] : loader) {
    optimizer.zero_grad();
    cross_entropy(net(images), labels).backward();
    optimizer.step();
    if (some.size() < 4) some.push_back(images.clone());
  }
  net.eval();
  auto q = quant::quantize_static<nn::Conv2d, nn::Linear>(net, some);
  const no_grad guard;
  for (const nn::Weight<>* w : {&q.conv1.weight, &q.conv2.weight, &q.fc1.weight}) {
    ASSERT_TRUE(int8_of(*w).gives_integers());
    EXPECT_EQ(int8_of(*w).output_zero_point(0), 0);  // the relu comes with the rounding
  }
  EXPECT_FALSE(int8_of(q.fc2.weight).gives_integers());
  const double exact = accuracy(test, [&](const auto& x) { return net(x); });
  const double numbers = accuracy(test, [&](const auto& x) { return q(x); });
  const double integers = accuracy(test, [&](const auto& x) { return q(Activation(x)).dequantize(); });
  EXPECT_GT(exact, 0.85);
  EXPECT_NEAR(numbers, exact, 0.01);
  EXPECT_NEAR(integers, numbers, 0.004);

  Net stored;
  stored.load_state_dict(q.state_dict(), {.formats = quant::formats()});
  stored.eval();
  std::vector<float> first;
  for_each_isa_and_dots([&] {
    const auto y = stored(Activation(some[0])).dequantize().to_vector();
    if (first.empty()) first = q(Activation(some[0])).dequantize().to_vector();
    EXPECT_EQ(y, first);
  });
  stored.load_state_dict(q.state_dict());  // in place
  EXPECT_EQ(stored(Activation(some[0])).dequantize().to_vector(), first);
  EXPECT_EQ(q(Activation(zeros<float>({0, 1, 28, 28}))).dequantize().shape(), (Shape{0, 10}));
}

TEST(Activation, LayersOfFloatStandBetween) {
  Net net;
  net.eval();
  const auto x = randn<float>({4, 1, 28, 28});
  auto q = quant::quantize_static<nn::Conv2d, nn::Linear>(net, std::vector{x}, {.names = {"conv*", "fc2"}});
  EXPECT_TRUE(int8_of(q.conv1.weight).gives_integers());
  EXPECT_FALSE(int8_of(q.conv2.weight).gives_integers());
  EXPECT_EQ(q.fc1.weight.format_name(), "dense");
  const auto exact = q(x), y = q(Activation(x)).dequantize();
  for (std::int64_t i = 0; i < y.numel(); ++i) EXPECT_NEAR(y.data()[i], exact.data()[i], 0.02);
  // A layer that quantizes by each batch needs its numbers.
  auto dynamic = quant::quantize_dynamic<nn::Linear>(q, {.names = {"fc1"}});
  quant::pass_integers_(dynamic, x);
  EXPECT_FALSE(int8_of(dynamic.conv2.weight).gives_integers());
  EXPECT_TRUE(int8_of(dynamic.fc1.weight).gives_integers());
  const auto mixed = dynamic(Activation(x)).dequantize();
  for (std::int64_t i = 0; i < y.numel(); ++i) EXPECT_NEAR(mixed.data()[i], exact.data()[i], 0.05);
}

/// Each result is read in more than one way.
struct Branches : nn::Module<Branches> {
  nn::Conv2d<> stem{1, 4, 3, {.padding = 1}}, positive{4, 4, 3, {.padding = 1}}, all{4, 4, 1}, last{4, 4, 1};
  TENET_MODULE(stem, positive, all, last)
  auto forward(auto x) {
    auto y = stem(x);                     // read by `positive` behind a relu, and by `all`
    auto z = positive(relu(y)) + all(y);  // the sum reads numbers
    auto u = last(z);
    return std::pair(last(relu(u)), u);  // its result is given as it is, too
  }
};

TEST(Activation, BranchesReadWhatTheyNeed) {
  Branches net;
  const auto x = randn<float>({2, 1, 8, 8});
  auto q = quant::quantize_static<nn::Conv2d>(net, std::vector{x});
  const Int8& stem = int8_of(q.stem.weight);
  ASSERT_TRUE(stem.gives_integers());
  EXPECT_GT(stem.output_zero_point(0), 0);
  EXPECT_FALSE(int8_of(q.positive.weight).gives_integers());
  EXPECT_FALSE(int8_of(q.all.weight).gives_integers());
  EXPECT_FALSE(int8_of(q.last.weight).gives_integers());
  const no_grad guard;
  const auto [a, b] = net(x);
  const auto [c, d] = q(Activation(x));
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    EXPECT_NEAR(c.dequantize().data()[i], a.data()[i], 0.05);
    EXPECT_NEAR(d.dequantize().data()[i], b.data()[i], 0.05);
  }
}

struct Plain : nn::Module<Plain> {
  nn::Linear<> fc1{8, 6}, fc2{6, 3};
  TENET_MODULE(fc1, fc2)
  Tensor<float> forward(const Tensor<float>& x) { return fc2(relu(fc1(x))); }
};

TEST(Activation, ModelsThatTakeTensorsAreAsBefore) {
  const auto x = randn<float>({5, 8});
  auto q = quant::quantize_static<nn::Linear>(Plain(), std::vector{x});
  EXPECT_FALSE(int8_of(q.fc1.weight).gives_integers());
  EXPECT_EQ(q(Activation(x)).dequantize().to_vector(), q(x).to_vector());
}

TEST(Activation, TrainedForInt8) {
  nn::Sequential net{nn::Linear<>(8, 6), nn::ReLU(), nn::Linear<>(6, 3)};
  const auto x = randn<float>({5, 8});
  quant::prepare_qat_<nn::Linear>(net);
  net(x);
  auto q = quant::convert(net);
  EXPECT_FALSE(int8_of(q.get<0>().weight).gives_integers());
  quant::pass_integers_(q, x);
  EXPECT_TRUE(int8_of(q.get<0>().weight).gives_integers());
  EXPECT_FALSE(int8_of(q.get<2>().weight).gives_integers());
  const auto exact = q(x), y = q(Activation(x)).dequantize();
  for (std::int64_t i = 0; i < y.numel(); ++i) EXPECT_NEAR(y.data()[i], exact.data()[i], 0.01);
  // Where integers flowed already, those that no one reads any more do not.
  q.get<2>().weight.set_format(nullptr);
  q.get<2>().weight = nn::Weight<>(randn<float>({3, 6}));
  quant::pass_integers_(q, x);
  EXPECT_FALSE(int8_of(q.get<0>().weight).gives_integers());
}

TEST(Activation, SumsThatDoNotFitAreOfNumbers) {
  nn::Linear<> wide{70000, 2};
  quant::quantize_dynamic_<nn::Linear>(wide);
  const auto x = randn<float>({1, 70000});
  EXPECT_EQ(wide(Activation(x)).dequantize().to_vector(), wide(x).to_vector());
}

TEST(Activation, Errors) {
  const auto q = zeros<std::uint8_t>({2, 8});
  EXPECT_EQ(test::message([&] { Activation(q, {0, 0}); }), "Activation: expected a positive scale, got 0");
  EXPECT_EQ(test::message([&] { Activation(q, {1, 256}); }), "Activation: expected a zero point in [0, 255], got 256");
  nn::Linear<> layer{8, 3};
  layer.weight.set_format(int8_weight({3, 8}, {0.1f, 3}, {0.1f, 3}));
  EXPECT_EQ(test::message<ShapeError>([&] {
              layer(Activation(q.view({4, 4}), {1, 0}));
            }),
            "linear: expected 8 input features, got input [4, 4]");
  EXPECT_THROW(layer(Activation(full<float>({2, 8}, std::numeric_limits<float>::infinity()))), Error);

  auto state = layer.state_dict();
  const auto changed = [&](const std::string& name, AnyTensor value) {
    nn::StateDict other;
    for (const auto& [key, tensor] : state) {
      if (key != name) other.emplace_back(key, tensor);
      else if (value) other.emplace_back(key, value);
    }
    return other;
  };
  const std::string scale = "weight.int8.output_scale", zero = "weight.int8.output_zero_point";
  EXPECT_THROW(layer.load_state_dict(changed(scale, AnyTensor())), Error);
  EXPECT_THROW(layer.load_state_dict(changed(zero, AnyTensor())), Error);
  EXPECT_THROW(layer.load_state_dict(changed(scale, full<float>({1}, -1))), Error);
  EXPECT_THROW(layer.load_state_dict(changed(scale, full<float>({2}, 1))), Error);
  EXPECT_THROW(layer.load_state_dict(changed(zero, full<std::int32_t>({1}, 256))), Error);
  EXPECT_EQ(layer(Activation(q, {0.1f, 3})).integers().shape(), (Shape{2, 3}));
  static_cast<Int8&>(*layer.weight.format()).output_zero_point(0) = std::numeric_limits<std::int32_t>::min();
  EXPECT_THROW(layer(Activation(q, {0.1f, 3})), Error);
}

}  // namespace
