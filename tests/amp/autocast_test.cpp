#include <tenet/amp/autocast.hpp>
#include <tenet/core/random.hpp>
#include <tenet/nn/linear.hpp>
#include <tenet/ops/binary.hpp>
#include <tenet/ops/cross_entropy.hpp>
#include <tenet/ops/einsum.hpp>
#include <tenet/ops/inplace.hpp>
#include <tenet/ops/reduce.hpp>
#include <tenet/ops/softmax.hpp>
#include <tenet/ops/unary.hpp>
#include <tenet/optim/sgd.hpp>

#include <thread>

#include "amp/close.hpp"
#include "message.hpp"

namespace tenet {
namespace {

using test::exact;
using test::expect_close;
using test::message;

bool same(const Tensor<float>& a, const Tensor<float>& b) { return a.to_vector() == b.to_vector(); }

template <class Low>
class Autocast : public testing::Test {
 protected:
  static constexpr DType dtype = dtype_of<Low>;
};
using Types = testing::Types<bfloat16, half>;
TYPED_TEST_SUITE(Autocast, Types);

// ---- the policy

TYPED_TEST(Autocast, MatmulRoundsItsOperandsAndSumsInFloat) {
  using Low = TypeParam;
  manual_seed(1);
  const auto check = [&](const Tensor<float>& a, const Tensor<float>& b) {
    Tensor<float> y;
    {
      const amp::autocast low(TestFixture::dtype);
      y = matmul(a, b);
    }
    expect_close(y, matmul(exact<Low>(a), exact<Low>(b)));
    EXPECT_EQ(same(y, matmul(a, b)), y.numel() == 0) << y.shape().str();
  };
  check(randn({7, 33}), randn({33, 20}));
  check(randn({33, 7}).t(), randn({20, 33}).t());
  check(randn({33}), randn({33, 20}));
  check(randn({7, 33}), randn({33}));
  check(randn({3, 7, 33}), randn({33, 20}));
  check(randn({2, 3, 7, 33}), randn({3, 33, 20}));
  check(randn({0, 33}), randn({33, 20}));
  check(randn({1, 1}), randn({1, 1}));
}

TYPED_TEST(Autocast, WhatIsMadeOfMatmulRunsLowToo) {
  const Tensor<float> a = randn({4, 5, 6}), b = randn({4, 6, 3});
  const amp::autocast low(TestFixture::dtype);
  expect_close(einsum("bij,bjk->bik", a, b), matmul(exact<TypeParam>(a), exact<TypeParam>(b)));
  EXPECT_TRUE(same(a.matmul(b), matmul(a, b)));
}

TYPED_TEST(Autocast, LinearAddsItsBiasInFloat) {
  using Low = TypeParam;
  manual_seed(2);
  const Tensor<float> w = randn({10, 40}), b = randn({20}).slice(0, 0, 20, 2);
  for (const Shape& shape : {Shape{6, 40}, Shape{40}, Shape{2, 3, 40}, Shape{0, 40}}) {
    const Tensor<float> x = randn(shape);
    const amp::autocast low(TestFixture::dtype);
    expect_close(linear(x, w, b), linear(exact<Low>(x), exact<Low>(w), to<double>(b)));
    expect_close(linear(x, w), linear(exact<Low>(x), exact<Low>(w)));
  }
}

TYPED_TEST(Autocast, Conv2dAddsItsBiasInFloat) {
  using Low = TypeParam;
  manual_seed(3);
  const Conv2dOptions options{.stride = {2, 1}, .padding = 1, .groups = 2};
  const Tensor<float> w = randn({6, 2, 3, 3}), b = randn({6});
  for (const Shape& shape : {Shape{2, 4, 9, 8}, Shape{4, 5, 5}, Shape{0, 4, 9, 8}}) {
    const Tensor<float> x = randn(shape);
    const amp::autocast low(TestFixture::dtype);
    expect_close(conv2d(x, w, b, options), conv2d(exact<Low>(x), exact<Low>(w), to<double>(b), options));
  }
}

TYPED_TEST(Autocast, TheRestStaysInFloat) {
  manual_seed(4);
  const Tensor<float> x = randn({5, 7});
  const Tensor<std::int64_t> labels = randint(7, {5});
  const auto all = [&] {
    std::vector<Tensor<float>> y{softmax(x, 1), log_softmax(x, 1), cross_entropy(x, labels),
                                 exp(x),        log(abs(x)),       pow(abs(x), 1.5),
                                 sum(x),        mean(x),           x * x,
                                 x + x};
    std::vector<float> values;
    for (const auto& t : y) {
      for (const float v : t.to_vector()) values.push_back(v);
    }
    return values;
  };
  const auto outside = all();
  const amp::autocast low(TestFixture::dtype);
  EXPECT_EQ(all(), outside);
}

TYPED_TEST(Autocast, LeavesOtherTypesAlone) {
  const Tensor<double> a = randn<double>({4, 5}), b = randn<double>({5, 3});
  const Tensor<bfloat16> c = to<bfloat16>(a), d = to<bfloat16>(b);
  const auto ab = matmul(a, b).to_vector();
  const auto cd = to<float>(matmul(c, d)).to_vector();
  const amp::autocast low(TestFixture::dtype);
  EXPECT_EQ(matmul(a, b).to_vector(), ab);
  EXPECT_EQ(to<float>(matmul(c, d)).to_vector(), cd);
}

TYPED_TEST(Autocast, StillChecksShapes) {
  const amp::autocast low(TestFixture::dtype);
  EXPECT_THROW(matmul(ones({2, 3}), ones({2, 3})), ShapeError);
  EXPECT_THROW(linear(ones({2, 3}), ones({2, 4})), ShapeError);
  EXPECT_THROW(conv2d(ones({1, 3, 4, 4}), ones({2, 2, 3, 3})), ShapeError);
}

// ---- the scope

TEST(AutocastScope, NestsAndRestores) {
  EXPECT_FALSE(amp::is_autocast_enabled());
  manual_seed(5);
  const Tensor<float> a = randn({8, 8}), b = randn({8, 8}), plain = matmul(a, b);
  {
    const amp::autocast outer(DType::bfloat16);
    const Tensor<float> brain = matmul(a, b);
    EXPECT_TRUE(amp::is_autocast_enabled());
    EXPECT_FALSE(same(brain, plain));
    {
      const amp::autocast off(false);
      EXPECT_FALSE(amp::is_autocast_enabled());
      EXPECT_TRUE(same(matmul(a, b), plain));
      const amp::autocast inner(DType::float16);
      EXPECT_FALSE(same(matmul(a, b), plain));
      EXPECT_FALSE(same(matmul(a, b), brain));
      const amp::autocast standard(true);
      EXPECT_TRUE(same(matmul(a, b), brain));
    }
    EXPECT_TRUE(same(matmul(a, b), brain));
    const amp::autocast off(DType::float16, false);
    EXPECT_TRUE(same(matmul(a, b), plain));
  }
  EXPECT_FALSE(amp::is_autocast_enabled());
  EXPECT_TRUE(same(matmul(a, b), plain));
}

TEST(AutocastScope, EndsWithAnException) {
  try {
    const amp::autocast low(DType::bfloat16);
    matmul(ones({2, 3}), ones({2, 3}));
    FAIL();
  } catch (const ShapeError&) {
  }
  EXPECT_FALSE(amp::is_autocast_enabled());
  EXPECT_EQ(state::low_weights, nullptr);
}

TEST(AutocastScope, RefusesOtherTypes) {
  EXPECT_EQ(message<DTypeError>([] { amp::autocast{DType::float64}; }),
            "autocast: expected bfloat16 or float16, got float64");
  EXPECT_THROW(amp::autocast{DType::float32}, DTypeError);
  EXPECT_THROW((amp::autocast{DType::int8, false}), DTypeError);
  EXPECT_FALSE(amp::is_autocast_enabled());
  EXPECT_EQ(state::low_weights, nullptr);
  const amp::autocast low(DType::float16);
  EXPECT_THROW(amp::autocast{DType::int8}, DTypeError);
  EXPECT_TRUE(amp::is_autocast_enabled());
}

TEST(AutocastScope, IsOfOneThread) {
  manual_seed(6);
  const Tensor<float> a = randn({8, 8}), b = randn({8, 8}), plain = matmul(a, b);
  const amp::autocast low(DType::bfloat16);
  const Tensor<float> here = matmul(a, b);
  bool inherited = true, same_there = false;
  std::thread([&] {
    inherited = amp::is_autocast_enabled();
    same_there = same(matmul(a, b), plain);
    const amp::autocast of_this_thread(DType::float16);
  }).join();
  EXPECT_FALSE(inherited);
  EXPECT_TRUE(same_there);
  EXPECT_TRUE(same(matmul(a, b), here));
}

// ---- copies of weights

TEST(AutocastWeights, AreCopiedOnceUntilTheyChange) {
  manual_seed(7);
  nn::Linear<> layer(16, 8);
  optim::SGD optimizer(layer.parameters(), {.lr = 0.5});
  const Tensor<float> x = randn({4, 16});
  const auto fresh = [&] {
    const amp::autocast low(DType::bfloat16);
    return layer(x);
  };
  const amp::autocast low(DType::bfloat16);
  const Tensor<float> before = layer(x);
  ASSERT_EQ(state::low_weights->all.size(), 1u);  // the input requires no gradient
  const void* copy = state::low_weights->all[0].low.impl();
  EXPECT_TRUE(same(layer(x), before));
  EXPECT_EQ(state::low_weights->all[0].low.impl(), copy);

  sum(before * before).backward();
  optimizer.step();
  const Tensor<float> after = layer(x);
  EXPECT_FALSE(same(after, before));
  EXPECT_EQ(state::low_weights->all.size(), 1u);
  std::thread([&] { EXPECT_TRUE(same(after, fresh())); }).join();

  {
    const no_grad guard;
    layer.weight.mul_(2);
  }
  EXPECT_FALSE(same(layer(x), after));
}

TEST(AutocastWeights, LastAsLongAsTheOutermostScope) {
  nn::Linear<> a(4, 4), b(4, 4), c(4, 4);
  const Tensor<float> x = randn({2, 4});
  {
    const amp::autocast off(false);
    {
      const amp::autocast low(DType::bfloat16);
      c(b(a(x)));
      c(b(a(x)));
      EXPECT_EQ(state::low_weights->all.size(), 3u);
    }
    const amp::autocast low(DType::float16);
    const Tensor<float> y = b(a(x));
    EXPECT_EQ(state::low_weights->all.size(), 5u);  // copies of another type
    const amp::autocast again(DType::bfloat16);
    EXPECT_FALSE(same(b(a(x)), y));
    EXPECT_EQ(state::low_weights->all.size(), 5u);
  }
  EXPECT_EQ(state::low_weights, nullptr);
}

TEST(AutocastWeights, AreDroppedWithTheScope) {
  nn::Linear<> layer(64, 64);
  const Tensor<float> x = randn({2, 64});
  const no_grad guard;
  const auto in_use = memory::stats().in_use;
  {
    const amp::autocast low(DType::bfloat16);
    layer(x);
    EXPECT_GE(memory::stats().in_use, in_use + 64 * 64 * 2);
  }
  EXPECT_EQ(memory::stats().in_use, in_use);
}

}  // namespace
}  // namespace tenet
