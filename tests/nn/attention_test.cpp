#include <tenet/amp/autocast.hpp>
#include <tenet/nn/attention.hpp>
#include <tenet/ops/extremes.hpp>

#include <gtest/gtest.h>

#include "message.hpp"
#include "ops/reference.hpp"

namespace tenet {
namespace {

using test::message;

template <class T>
void expect_near(const Tensor<T>& a, const Tensor<double>& b) {
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_TRUE(allclose(a.template to<double>(), b, 1e-10, 1e-10));
}

TEST(MultiheadAttention, IsPyTorchs) {
  const Tensor<bool> padding = tensor<bool>({{true, false, false, false, false}, {true, false, false, false, false}});
  const Tensor<bool> mask = tensor<bool>({{true, false, false, true, true},
                                          {true, false, false, false, false},
                                          {true, false, true, false, true},
                                          {false, false, false, false, false},
                                          {true, false, true, false, false}});
  struct Case {
    const char* name;
    nn::MultiheadAttentionOptions options = {};
    nn::AttentionMasks masks = {};
  };
  for (const Case& c :
       {Case{"self"}, Case{"cross"}, Case{"batch_first", {.batch_first = true}}, Case{"no_batch"},
        Case{"no_bias", {.bias = false, .batch_first = true}}, Case{"padding", {}, {.key_padding_mask = padding}},
        Case{"mask", {}, {.attn_mask = mask}}, Case{"causal", {.batch_first = true}, {.is_causal = true}}}) {
    SCOPED_TRACE(c.name);
    const test::Reference r = test::read_reference("attention.txt", std::string("multihead_") + c.name);
    nn::MultiheadAttention<double> layer(6, 3, c.options);
    // The inputs come first, then the parameters, in the order of PyTorch's.
    nn::StateDict state = layer.state_dict(), values;
    const std::size_t inputs = r.inputs.size() - state.size();
    for (std::size_t i = 0; i < state.size(); ++i) values.emplace_back(state[i].first, r.inputs[inputs + i]);
    layer.load_state_dict(values);
    std::vector<Tensor<double>> x(r.inputs.begin(), r.inputs.begin() + std::ptrdiff_t(inputs));
    for (const auto& t : x) t.impl()->requires_grad = true;
    const Tensor<double> y = layer(x[0], x[inputs == 3 ? 1 : 0], x[inputs == 3 ? 2 : 0], c.masks);
    expect_near(y, r.output);
    y.backward(r.weights);
    for (std::size_t i = 0; i < r.inputs.size(); ++i) {
      expect_near(i < inputs ? x[i].grad() : Tensor<double>(state[i - inputs].second.grad_any()), r.gradients[i]);
    }
  }
}

TEST(MultiheadAttention, StartsAsPyTorchs) {
  manual_seed(1);
  nn::MultiheadAttention<> layer(64, 4);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : layer.named_parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"}));
  // Glorot-uniform over [192, 64], and uniform in [-1 / 8, 1 / 8].
  const float glorot = std::sqrt(6.0f / (64 + 192));
  EXPECT_NEAR(layer.in_proj_weight.max().item(), glorot, 0.01f);
  EXPECT_NEAR(layer.out_proj.weight.max().item(), 0.125f, 0.001f);
  EXPECT_EQ(layer.in_proj_bias.to_vector(), zeros({192}).to_vector());
  EXPECT_EQ(layer.out_proj.bias.to_vector(), zeros({64}).to_vector());
  // Dropout is for training.
  nn::MultiheadAttention<> dropping(8, 2, {.dropout = 1});
  const Tensor<float> x = rand({3, 2, 8});
  EXPECT_EQ(dropping(x, x, x).to_vector(), zeros({3, 2, 8}).to_vector());
  dropping.eval();
  EXPECT_NE(dropping(x, x, x).to_vector(), zeros({3, 2, 8}).to_vector());
}

TEST(MultiheadAttention, RunsLowUnderAutocast) {
  manual_seed(1);
  nn::MultiheadAttention<> layer(16, 2);
  const Tensor<float> x = rand({3, 2, 16}), y = layer(x, x, x);
  const amp::autocast low(DType::bfloat16);
  const Tensor<float> z = layer(x, x, x);
  EXPECT_TRUE(allclose(y, z, 0.05, 0.01));
  EXPECT_FALSE(allclose(y, z, 1e-5, 1e-6));
}

TEST(MultiheadAttention, RefusesWhatDoesNotFit) {
  EXPECT_EQ(message<ShapeError>([] { nn::MultiheadAttention<>(6, 4); }),
            "MultiheadAttention: expected an embed_dim that the heads divide, got 6 and 4 heads");
  EXPECT_THROW(nn::MultiheadAttention<>(6, 0), ShapeError);
  EXPECT_THROW(nn::MultiheadAttention<>(-6, -2), ShapeError);
  EXPECT_THROW(nn::MultiheadAttention<>(6, 2, {.dropout = 2}), Error);
  nn::MultiheadAttention<> layer(6, 2);
  const Tensor<float> x = ones({4, 3, 6});
  EXPECT_THROW(layer(x, x, ones({6})), ShapeError);
  EXPECT_THROW(layer(x, x, ones({5, 3, 6})), ShapeError);
  EXPECT_THROW(layer(ones({4, 3, 5}), x, x), ShapeError);
  EXPECT_EQ(message<ShapeError>([&] {
              layer(x, x, x, nn::AttentionMasks{.key_padding_mask = ones<bool>({4, 3})});
            }),
            "MultiheadAttention: expected a key_padding_mask [3, 4], got [4, 3]");
  EXPECT_THROW(layer(x, x, x, nn::AttentionMasks{.attn_mask = ones<bool>({3, 4})}), ShapeError);
}

}  // namespace
}  // namespace tenet
