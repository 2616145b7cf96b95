#include <tenet/ops/attention.hpp>

#include <limits>

#include "message.hpp"
#include "ops/op_cases.hpp"

namespace tenet {
namespace {

using test::check;

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(Attention, CasesOfPyTorch) {
  for (const std::string name : {"2d", "3d", "4d", "broadcast", "one"}) {
    check({.name = "attention_" + name,
           .f = [](const auto& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); },
           .file = "attention.txt"});
  }
  for (const std::string name : {"2d", "4d"}) {
    const auto with = [](const AttentionOptions& options) {
      return [options](const test::Tensors& x) {
        return scaled_dot_product_attention(x[0], x[1], x[2], Tensor<bool>(), options);
      };
    };
    check({.name = "attention_causal_" + name, .f = with({.is_causal = true}), .file = "attention.txt"});
    check({.name = "attention_scaled_" + name, .f = with({.scale = 0.3}), .file = "attention.txt"});
    check({.name = "attention_masked_" + name,
           .f = [](const test::Tensors& x) { return scaled_dot_product_attention(x[0], x[1], x[2], x[3] != 0.0); },
           .file = "attention.txt"});
    for (const std::string mask : {"added_", "blocked_"}) {
      check({.name = "attention_" + mask + name,
             .f = [](const test::Tensors& x) { return scaled_dot_product_attention(x[0], x[1], x[2], x[3]); },
             .file = "attention.txt"});
    }
  }
}

TEST(Attention, AQueryWithoutKeysGives0) {
  const Tensor<float> q = ones({2, 3}).requires_grad_(), k = ones({4, 3}).requires_grad_(), v = rand({4, 2});
  const Tensor<bool> open = tensor<bool>({{false, false, false, false}, {true, false, true, false}});
  const Tensor<float> mean = (v[0] + v[2]) / 2.0f;
  const Tensor<float> added = where(open, zeros({2, 4}), -infinity);
  for (const Tensor<float>& y :
       {scaled_dot_product_attention(q, k, v, open), scaled_dot_product_attention(q, k, v, added)}) {
    EXPECT_EQ(y[0].to_vector(), zeros({2}).to_vector());
    EXPECT_TRUE(allclose(y[1], mean));
    q.zero_grad();
    y[0].sum().backward();
    EXPECT_EQ(q.grad().to_vector(), zeros({2, 3}).to_vector());
  }
  EXPECT_EQ(scaled_dot_product_attention(q, ones({0, 3}), ones({0, 2})).to_vector(), zeros({2, 2}).to_vector());
}

TEST(Attention, MasksAddUpAndWeightsDropOut) {
  const Tensor<float> q = ones({2, 3}), k = ones({2, 3}), v = tensor<float>({{1, 2}, {3, 4}});
  const Tensor<bool> second = tensor<bool>({false, true});
  const Tensor<float> y = scaled_dot_product_attention(q, k, v, second, {.is_causal = true});
  EXPECT_EQ(y.to_vector(), (std::vector<float>{0, 0, 3, 4}));  // the first query would see the first key only
  EXPECT_EQ(scaled_dot_product_attention(q, k, v, second, {.dropout_p = 1}).to_vector(), zeros({2, 2}).to_vector());
  manual_seed(1);
  const Tensor<float> dropped =
      scaled_dot_product_attention(ones({64, 1}), k.narrow(1, 0, 1).clone(), v, Tensor<bool>(), {.dropout_p = 0.5});
  // Two weights of a half, each 0 or doubled.
  for (const Tensor<float> row : dropped) {
    const float a = row(0);
    EXPECT_TRUE(a == 0 || a == 1 || a == 3 || a == 4) << a;
  }
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const auto run = [](const Shape& q, const Shape& k, const Shape& v) {
    return [=] { scaled_dot_product_attention(ones(q), ones(k), ones(v)); };
  };
  EXPECT_EQ(test::message<ShapeError>(run({2, 3}, {4, 2}, {4, 3})),
            "scaled_dot_product_attention: expected queries [..., L, E], keys [..., S, E] and values [..., S, V], got "
            "[2, 3], [4, 2] and [4, 3]");
  EXPECT_THROW(run({2, 3}, {4, 3}, {5, 3})(), ShapeError);
  EXPECT_THROW(run({3}, {4, 3}, {4, 3})(), ShapeError);
  EXPECT_THROW(run({2, 2, 3}, {3, 4, 3}, {3, 4, 3})(), ShapeError);
  const Tensor<float> x = ones({4, 3});
  EXPECT_THROW(scaled_dot_product_attention(x, x, x, ones<bool>({3, 4})), ShapeError);
  EXPECT_THROW(scaled_dot_product_attention(x, x, x, ones<bool>({2, 4, 4})), ShapeError);
  EXPECT_THROW(scaled_dot_product_attention(x, x, x, Tensor<bool>(), {.dropout_p = 2}), Error);
}

}  // namespace
}  // namespace tenet
