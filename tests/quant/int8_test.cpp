// Layers with weights of int8: their arithmetic, their states, and the models made of them.
#include <gtest/gtest.h>

#include "kernels/isas.hpp"
#include "message.hpp"
#include "quant/reference.hpp"

namespace {

using namespace tenet;
using Int8 = quant::Int8Weight<>;

nn::Linear<> layer(const Tensor<float>& weight, const Tensor<float>& bias) {
  nn::Linear<> l{weight.shape()[1], weight.shape()[0], {.bias = bool(bias)}};
  l.weight = nn::Weight<>(weight);
  if (bias) l.bias = nn::Parameter<>(bias);
  return l;
}

TEST(DynamicInt8, AgreesWithPyTorch) {
  for (const bool per_channel : {false, true}) {
    const auto& r = test::quant_reference(per_channel ? "dynamic_linear_channel" : "dynamic_linear_tensor");
    auto l = layer(r.inputs[1].to<float>(), r.inputs[2].to<float>());
    quant::quantize_dynamic_<nn::Linear>(l, {.per_channel = per_channel});
    const auto y = l(r.inputs[0].to<float>());
    ASSERT_EQ(y.shape(), r.output.shape());
    for (std::int64_t i = 0; i < y.numel(); ++i) EXPECT_NEAR(y.data()[i], r.output.data()[i], 2e-5);
  }
}

TEST(DynamicInt8, SumsAreExactOnEveryMachine) {
  // Products of pairs leave 16 bits.
  auto l = layer(full<float>({3, 2}, -1), {});
  auto q = std::make_shared<Int8>();
  q->values = nn::Buffer<std::int8_t>(from_vector<std::int8_t>({71, 107, 127, 127, -128, -128}, {3, 2}));
  q->scales = nn::Buffer<float>(ones<float>({1}));
  q->set_input({1, 0});
  l.weight.set_format(q);
  EXPECT_EQ(l(from_vector<float>({211, 171, 255, 255}, {2, 2})).to_vector(),
            (std::vector<float>{33278, 48514, -48896, 45390, 64770, -65280}));
  for (const int rows : {1, 3, 6, 70}) {
    for (const int in : {1, 31, 300, 1100}) {
      auto model = quant::quantize_dynamic<nn::Linear>(layer(randn<float>({45, in}), randn<float>({45})),
                                                       {.per_channel = rows % 2 == 0});
      const auto x = randn<float>({rows, in}) + 1.0f;
      std::vector<float> first;
      for_each_isa_and_dots([&] {
        const auto y = model(x).to_vector();
        if (first.empty()) first = y;
        EXPECT_EQ(y, first) << rows << " " << in;
      });
      const auto* format = static_cast<const Int8*>(model.weight.format());
      const auto p = quant::choose_qparams(x);
      const auto reference = linear(quant::dequantize(quant::quantize(x, p), p).to<double>(),
                                    format->dense({}).to<double>(), model.bias.to<double>());
      for (std::int64_t i = 0; i < reference.numel(); ++i) {
        EXPECT_NEAR(first[std::size_t(i)], reference.data()[i], 1e-5 * in + 1e-5);
      }
    }
  }
}

TEST(DynamicInt8, InputsOfEveryShape) {
  auto l = quant::quantize_dynamic<nn::Linear>(nn::Linear<>{6, 4});
  const auto x = randn<float>({2, 3, 6});
  EXPECT_EQ(l(x).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(l(x).to_vector(), l(x.view({6, 6})).to_vector());
  EXPECT_EQ(l(x.transpose(0, 1)).to_vector(), l(x.transpose(0, 1).contiguous()).to_vector());
  EXPECT_EQ(l(x[0][0]).shape(), (Shape{4}));
  EXPECT_EQ(l(zeros<float>({0, 6})).shape(), (Shape{0, 4}));
  EXPECT_EQ(test::message<ShapeError>([&] {
              l(zeros<float>({2, 5}));
            }),
            "linear: expected 6 input features, got input [2, 5]");
  EXPECT_THROW(l(full<float>({2, 6}, std::numeric_limits<float>::infinity())), Error);
  EXPECT_FALSE(l(x).requires_grad());
  auto one = quant::quantize_dynamic<nn::Linear>(nn::Linear<>{3, 1}, {.per_channel = true});
  EXPECT_EQ(one(ones<float>({5, 3})).shape(), (Shape{5, 1}));
  // Sums too long for 32 bits.
  auto wide = quant::quantize_dynamic<nn::Linear>(layer(full<float>({1, 70000}, 1), {}));
  EXPECT_NEAR(wide(full<float>({2, 70000}, 1))(0, 0), 70000, 1000);
}

TEST(DynamicInt8, FollowsChangesOfTheWeight) {
  auto a = quant::quantize_dynamic<nn::Linear>(nn::Linear<>{40, 7}), b = a;
  b.weight.set_format(quant::quantize_dynamic<nn::Linear>(nn::Linear<>{40, 7}).weight.format()->clone());
  const auto x = randn<float>({8, 40});
  EXPECT_NE(a(x).to_vector(), b(x).to_vector());
  auto copy = a;
  a.load_state_dict(b.state_dict());
  const auto hoped = b(x) - b.bias + a.bias;
  const auto got = a(x);
  for (std::int64_t i = 0; i < got.numel(); ++i) EXPECT_NEAR(got.data()[i], hoped.data()[i], 1e-6);
  EXPECT_NE(copy(x).to_vector(), got.to_vector());
}

struct Net : nn::Module<Net> {
  nn::Conv2d<> conv{1, 2, 3};
  nn::Linear<> fc1{8, 6}, fc2{6, 3};
  TENET_MODULE(conv, fc1, fc2)
  Tensor<float> forward(const Tensor<float>& x) { return fc2(relu(fc1(flatten(relu(conv(x)), 1)))); }
};

TEST(DynamicInt8, ChangesTheNamedLayers) {
  Net net;
  auto all = quant::quantize_dynamic<nn::Linear>(net);
  EXPECT_EQ(net.fc1.weight.format_name(), "dense");
  EXPECT_EQ(all.fc1.weight.format_name(), "int8");
  EXPECT_EQ(all.fc2.weight.format_name(), "int8");
  EXPECT_EQ(all.conv.weight.format_name(), "dense");
  EXPECT_EQ(all.num_parameters(), 18 + 2 + 6 + 3);
  auto some = quant::quantize_dynamic<nn::Linear, nn::Conv2d>(net, {.names = {"*2", "co?v"}});
  EXPECT_EQ(some.fc1.weight.format_name(), "dense");
  EXPECT_EQ(some.fc2.weight.format_name(), "int8");
  EXPECT_EQ(some.conv.weight.format_name(), "int8");
  EXPECT_EQ(test::message([&] { quant::quantize_dynamic<nn::Linear>(net, {.names = {"fc3"}}); }),
            "quantize_dynamic: 'fc3' is none of the layers fc1, fc2");
  EXPECT_THROW(quant::quantize_dynamic_<nn::Linear>(net, {.names = {"fc1", "fc3"}}), Error);
  EXPECT_THROW(quant::quantize_weights_<nn::Linear>(net, {.names = {"fc1", "fc3"}}), Error);
  EXPECT_THROW(quant::prepare_qat_<nn::Linear>(net, {.names = {"fc1", "fc3"}}), Error);
  EXPECT_EQ(net.fc1.weight.format_name(), "dense");
  const auto x = randn<float>({5, 1, 4, 4});
  const auto exact = net(x), y = all(x);
  for (std::int64_t i = 0; i < y.numel(); ++i) EXPECT_NEAR(y.data()[i], exact.data()[i], 0.05);
  net.fc2.weight.data()[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(quant::quantize_dynamic_<nn::Linear>(net), Error);
  EXPECT_EQ(net.fc1.weight.format_name(), "dense");
}

TEST(DynamicInt8, TiedWeightsStayTied) {
  struct Tied : nn::Module<Tied> {
    nn::Linear<> a{4, 4}, b{4, 4};
    TENET_MODULE(a, b)
  } model;
  model.b.weight.tie(model.a.weight);
  quant::quantize_dynamic_<nn::Linear>(model);
  EXPECT_EQ(model.a.weight.format(), model.b.weight.format());
}

TEST(DynamicInt8, Patterns) {
  EXPECT_TRUE(quant::matches("*", ""));
  EXPECT_TRUE(quant::matches("encoder.*.fc?", "encoder.0.x.fc1"));
  EXPECT_TRUE(quant::matches("*a*b", "aab"));
  EXPECT_TRUE(quant::matches("", ""));
  EXPECT_FALSE(quant::matches("", "x"));
  EXPECT_FALSE(quant::matches("a?", "a"));
  EXPECT_FALSE(quant::matches("*b", "ba"));
  EXPECT_FALSE(quant::matches("fc1", "fc12"));
}

TEST(DynamicInt8, IsStored) {
  for (const bool per_channel : {false, true}) {
    auto stored = quant::quantize_dynamic<nn::Linear>(Net{}, {.per_channel = per_channel});
    Net net;
    net.load_state_dict(stored.state_dict(), {.formats = quant::formats()});
    const auto x = randn<float>({5, 1, 4, 4});
    EXPECT_EQ(net(x).to_vector(), stored(x).to_vector());
    static_cast<Int8*>(stored.fc1.weight.format())->set_input({0.1f, 3});
    net = Net();
    net.load_state_dict(stored.state_dict(), {.formats = quant::formats()});
    EXPECT_EQ(net(x).to_vector(), stored(x).to_vector());
  }
}

TEST(DynamicInt8, StatesThatDoNotFitAreRefused) {
  const auto values = zeros<std::int8_t>({3, 2});
  const auto scale = full<float>({1}, 0.5f), scales = full<float>({3}, 0.5f);
  const auto zero = zeros<std::int32_t>({1});
  const auto read = [](const nn::StateDict& part) { return Int8::read({3, 2}, part); };
  EXPECT_TRUE(read({{"values", values}, {"scales", scale}}));
  EXPECT_TRUE(read({{"values", values}, {"scales", scales}, {"input_scale", scale}, {"input_zero_point", zero}}));
  for (const nn::StateDict& part : std::vector<nn::StateDict>{
           {},
           {{"values", values}},
           {{"scales", scale}},
           {{"values", zeros<std::uint8_t>({3, 2})}, {"scales", scale}},
           {{"values", zeros<std::int8_t>({2, 3})}, {"scales", scale}},
           {{"values", values}, {"scales", full<float>({2}, 1)}},
           {{"values", values}, {"scales", full<float>({0}, 1)}},
           {{"values", values}, {"scales", full<float>({1, 1}, 1)}},
           {{"values", values}, {"scales", full<double>({1}, 1)}},
           {{"values", values}, {"scales", full<float>({1}, 0)}},
           {{"values", values}, {"scales", full<float>({1}, -1)}},
           {{"values", values}, {"scales", full<float>({1}, std::numeric_limits<float>::infinity())}},
           {{"values", values}, {"scales", full<float>({3}, std::numeric_limits<float>::quiet_NaN())}},
           {{"values", values}, {"scales", scale}, {"input_scale", scale}},
           {{"values", values}, {"scales", scale}, {"input_zero_point", zero}},
           {{"values", values}, {"scales", scale}, {"input_scale", scale}, {"input_zero_point", zero - 1}},
           {{"values", values}, {"scales", scale}, {"input_scale", scales}, {"input_zero_point", zero}},
           {{"values", values}, {"scales", scale}, {"else", scale}}}) {
    EXPECT_THROW(read(part), Error);
  }
  // Nor by a layer of this format already, which copies a state with the same tensors.
  auto copied = quant::quantize_dynamic<nn::Linear>(nn::Linear<>{2, 3});
  auto state = copied.clone().state_dict();
  Tensor<float>(state[1].second)(0) = -1;
  EXPECT_THROW(copied.load_state_dict(state), Error);
  auto other = quant::quantize_dynamic<nn::Linear>(nn::Linear<>{2, 3}, {.per_channel = true});
  EXPECT_THROW(copied.load_state_dict(other.state_dict()), Error);
  copied.load_state_dict(other.state_dict(), {.formats = quant::formats()});
  EXPECT_EQ(copied.weight.dense().to_vector(), other.weight.dense().to_vector());

  auto l = quant::quantize_dynamic<nn::Linear>(nn::Linear<>{2, 3});
  static_cast<Int8*>(l.weight.format())->set_input({1, 0});
  static_cast<Int8*>(l.weight.format())->input_zero_point(0) = std::numeric_limits<std::int32_t>::min();
  EXPECT_THROW(l(ones<float>({1, 2})), Error);
}

}  // namespace
