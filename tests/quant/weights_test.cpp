// Weight-only formats: what they keep, what layers compute with them, and their states.
#include <gtest/gtest.h>

#include "kernels/isas.hpp"
#include "message.hpp"
#include "quant/reference.hpp"

namespace {

using namespace tenet;
using Int4 = quant::GroupWeight<float, 4>;
using Int8 = quant::GroupWeight<float, 8>;

/// The definition: each group rounded to its own levels.
Tensor<float> rounded(const Tensor<float>& w, std::int64_t size, quant::Levels levels) {
  const auto rows = w.view({w.shape()[0], -1});
  auto out = rows.clone();
  for (std::int64_t i = 0; i < rows.shape()[0]; ++i) {
    for (std::int64_t at = 0; at < rows.shape()[1]; at += size) {
      const auto group = rows[i].narrow(0, at, std::min(size, rows.shape()[1] - at));
      const auto p = quant::choose_qparams(group, levels, true);
      out[i].narrow(0, at, group.numel()).copy_(quant::fake_quantize(group, p, levels));
    }
  }
  return out;
}

TEST(WeightOnly, GroupsAreRoundedByThemselves) {
  for (const std::int64_t columns : {1, 2, 7, 32, 33, 100}) {
    for (const std::int64_t size : {2, 8, 32, 128}) {
      const auto w = randn<float>({5, columns});
      SCOPED_TRACE(text({columns, " by ", size}));
      for_each_isa([&] {
        EXPECT_EQ(Int4(w, size).dense({}).to_vector(), rounded(w, size, quant::int4_levels).to_vector());
        EXPECT_EQ(Int8(w, size).dense({}).to_vector(), rounded(w, size, quant::int8_levels).to_vector());
      });
    }
  }
  const auto kernel = randn<float>({6, 3, 5, 5});
  EXPECT_EQ(Int4(kernel, 64).dense({}).to_vector(), rounded(kernel, 64, quant::int4_levels).to_vector());
  EXPECT_EQ(Int4(kernel, 64).shape(), kernel.shape());
  EXPECT_EQ(Int4(kernel, 64).values.shape(), (Shape{6, 38}));
}

TEST(WeightOnly, LayersComputeWithTheRoundedWeight) {
  const nn::Linear<> layer{300, 250};
  for (const int bits : {4, 8, 16}) {
    auto q = quant::quantize_weights<nn::Linear>(layer, {.bits = bits});
    const auto w = q.weight.dense();
    for (const int rows : {1, 3, 40}) {
      const auto x = randn<float>({2, rows, 300});
      const auto expected = linear(x, w, q.bias);
      const no_grad guard;
      const auto y = q(x);
      ASSERT_EQ(y.shape(), expected.shape());
      for (std::int64_t i = 0; i < y.numel(); ++i) EXPECT_NEAR(y.data()[i], expected.data()[i], 1e-4);
    }
    auto x = randn<float>({4, 300}).requires_grad_();
    q(x).sum().backward();
    const auto g = w.sum({0});
    for (int i = 0; i < 300; ++i) EXPECT_NEAR(x.grad()(2, i), g(i), 1e-4);
    EXPECT_EQ(q.bias.grad()(0), 4);
    EXPECT_EQ(q(zeros<float>({0, 300})).shape(), (Shape{0, 250}));
    EXPECT_THROW(q(zeros<float>({300, 2})), ShapeError);
  }
  auto whole = quant::quantize_weights<nn::Linear>(layer, {.bits = 4, .group_size = std::int64_t{1} << 62});
  const no_grad guard;
  EXPECT_NEAR(whole(ones<float>({1, 300}))(0, 7), whole.weight.dense()[7].sum().item() + whole.bias(7), 1e-4);
  EXPECT_THROW(quant::quantize_weights<nn::Linear>(layer, {.bits = 5}), Error);
  EXPECT_THROW(quant::quantize_weights<nn::Linear>(layer, {.group_size = 0}), Error);
  EXPECT_THROW(quant::quantize_weights<nn::Linear>(layer, {.group_size = 3}), Error);
  EXPECT_NE(test::message<ShapeError>([] { Int8(scalar(1.0f), 64); }).find("got a scalar"), std::string::npos);
}

struct Net : nn::Module<Net> {
  nn::Conv2d<> conv{1, 2, 3};
  nn::Linear<> fc1{8, 6}, fc2{6, 5}, fc3{5, 3};
  TENET_MODULE(conv, fc1, fc2, fc3)
  Tensor<float> forward(const Tensor<float>& x) { return fc3(fc2(relu(fc1(flatten(relu(conv(x)), 1))))); }
};

TEST(WeightOnly, MixedSchemesAreStored) {
  Net stored, net;
  quant::quantize_weights_<nn::Linear, nn::Conv2d>(stored, {.bits = 4, .names = {"conv", "fc1"}});
  quant::quantize_weights_<nn::Linear>(stored, {.bits = 16, .names = {"fc3"}});
  quant::quantize_dynamic_<nn::Linear>(stored);  // the others
  EXPECT_EQ(stored.conv.weight.format_name(), "int4");
  EXPECT_EQ(stored.fc1.weight.format_name(), "int4");
  EXPECT_EQ(stored.fc2.weight.format_name(), "int8");
  EXPECT_EQ(stored.fc3.weight.format_name(), "bfloat16");
  const auto x = randn<float>({3, 1, 4, 4});
  net.load_state_dict(stored.state_dict(), {.formats = quant::formats()});
  EXPECT_EQ(net(x).to_vector(), stored(x).to_vector());
  auto copy = net;
  EXPECT_EQ(copy(x).to_vector(), stored(x).to_vector());
}

TEST(WeightOnly, StatesThatDoNotFitAreRefused) {
  const auto values = zeros<std::uint8_t>({3, 5});
  const auto scales = ones<float>({3, 3});
  const auto size = full<std::int64_t>({1}, 4);
  const auto read = [](const nn::StateDict& part) { return Int4::read({3, 9}, part); };
  EXPECT_TRUE(read({{"values", values}, {"scales", scales}, {"group_size", size}}));
  for (const nn::StateDict& part :
       std::vector<nn::StateDict>{{},
                                  {{"values", values}, {"scales", scales}},
                                  {{"values", values}, {"group_size", size}},
                                  {{"values", zeros<std::uint8_t>({3, 4})}, {"scales", scales}, {"group_size", size}},
                                  {{"values", zeros<std::int8_t>({3, 5})}, {"scales", scales}, {"group_size", size}},
                                  {{"values", values}, {"scales", ones<float>({3, 2})}, {"group_size", size}},
                                  {{"values", values}, {"scales", scales}, {"group_size", size * 0}},
                                  {{"values", values}, {"scales", scales}, {"group_size", size + 1}},
                                  {{"values", values}, {"scales", scales}, {"group_size", size * -1}},
                                  {{"values", values}, {"scales", scales}, {"group_size", size + 1}},
                                  {{"values", values}, {"scales", scales}, {"group_size", size * 2}},
                                  {{"values", values}, {"scales", scales}, {"group_size", full<std::int64_t>({2}, 4)}},
                                  {{"values", values}, {"scales", scales * -1}, {"group_size", size}},
                                  {{"values", values}, {"scales", scales}, {"group_size", size}, {"more", size}}}) {
    EXPECT_THROW(read(part), Error);
  }
  EXPECT_THROW(Int4::read({}, {}), Error);
  EXPECT_THROW(quant::Bfloat16Weight<>::read({2}, {{"values", zeros<float>({2})}}), Error);
  // Tensors that fit are copied unread.
  Int4 w(randn<float>({3, 9}), 4);
  w.group_size(0) = 2;
  EXPECT_THROW(w.dense({}), Error);
  w.group_size(0) = 0;
  EXPECT_THROW(w.dense({}), Error);
}

}  // namespace
