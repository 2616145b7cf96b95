#include <tenet/amp/autocast.hpp>
#include <tenet/core/random.hpp>
#include <tenet/ops/inplace.hpp>
#include <tenet/ops/reduce.hpp>

#include "amp/close.hpp"

namespace tenet {
namespace {

using test::exact;
using test::expect_close;

template <class Low>
class AutocastGradients : public testing::Test {
 protected:
  /// The gradients of f(a, b, c) under autocast, computed after it ended, against those of the rounded operands for the
  /// rounded gradient, in double; that of c, the bias, for the gradient itself. And against those of float.
  template <class F>
  void check(F f, Tensor<float> a, Tensor<float> b, Tensor<float> c = {}) {
    a.requires_grad_();
    b.requires_grad_();
    if (c) c.requires_grad_();
    Tensor<float> y;
    {
      const amp::autocast low(dtype_of<Low>);
      y = f(a, b, c);
    }
    const Tensor<float> g = randn(y.shape());
    y.backward(g);
    const Tensor<float> da = a.grad(), db = b.grad(), dc = c ? c.grad() : c;

    const Tensor<double> x = exact<Low>(a).requires_grad_(), w = exact<Low>(b).requires_grad_();
    const Tensor<double> bias = c ? to<double>(detach(c)).requires_grad_() : Tensor<double>();
    f(x, w, bias).backward(exact<Low>(g));
    expect_close(da, x.grad());
    expect_close(db, w.grad());
    if (c) {
      bias.zero_grad();
      f(x, w, bias).backward(to<double>(g));
      expect_close(dc, bias.grad());
    }

    a.zero_grad();
    b.zero_grad();
    f(a, b, c).backward(g);
    const double step = std::is_same_v<Low, half> ? 0x1p-11 : 0x1p-8;  // two roundings, each by half a step
    expect_close(da, to<double>(a.grad()), 2 * step);
    expect_close(db, to<double>(b.grad()), 2 * step);
  }
};
using Types = testing::Types<bfloat16, half>;
TYPED_TEST_SUITE(AutocastGradients, Types);

TYPED_TEST(AutocastGradients, OfMatmul) {
  manual_seed(1);
  const auto f = [](const auto& a, const auto& b, const auto&) { return matmul(a, b); };
  this->check(f, randn({9, 30}), randn({30, 21}));
  this->check(f, randn({3, 9, 30}), randn({3, 30, 21}));
  this->check(f, randn({2, 3, 9, 30}), randn({3, 30, 21}));
  this->check(f, randn({3, 9, 30}), randn({30, 21}));
  this->check(f, randn({30}), randn({30}));
}

TYPED_TEST(AutocastGradients, OfLinear) {
  manual_seed(2);
  const auto f = [](const auto& x, const auto& w, const auto& b) { return linear(x, w, b); };
  this->check(f, randn({17, 40}), randn({12, 40}), randn({12}));
  this->check(f, randn({2, 5, 40}), randn({12, 40}));
  this->check(f, randn({1, 1}), randn({1, 1}), randn({1}));
}

TYPED_TEST(AutocastGradients, OfConv2d) {
  manual_seed(3);
  Conv2dOptions options;
  const auto f = [&](const auto& x, const auto& w, const auto& b) { return conv2d(x, w, b, options); };
  this->check(f, randn({3, 4, 9, 9}), randn({5, 4, 3, 3}), randn({5}));
  options = {.stride = 2, .padding = {1, 2}, .groups = 2};
  this->check(f, randn({2, 4, 9, 8}), randn({6, 2, 3, 3}));
  options = {};
  this->check(f, randn({2, 64, 6, 6}), randn({64, 64, 1, 1}), randn({64}));
  this->check(f, randn({2, 16, 9, 9}), randn({64, 16, 5, 5}));
}

TYPED_TEST(AutocastGradients, OfStridedOperandsAndExpandedGradients) {
  manual_seed(4);
  const Tensor<float> a = randn({30, 9}).requires_grad_(), w = randn({12, 60}).requires_grad_();
  {
    const amp::autocast low(dtype_of<TypeParam>);
    sum(linear(a.t(), w.slice(1, 0, 60, 2))).backward();
  }
  const Tensor<double> x = exact<TypeParam>(a).requires_grad_(), v = exact<TypeParam>(w).requires_grad_();
  sum(linear(x.t(), v.slice(1, 0, 60, 2))).backward();
  expect_close(a.grad(), x.grad());
  expect_close(w.grad(), v.grad());
}

TYPED_TEST(AutocastGradients, OnlyThoseThatAreWanted) {
  const amp::autocast low(dtype_of<TypeParam>);
  const Tensor<float> x = ones({4, 3}), w = ones({2, 3}), b = zeros({2}).requires_grad_();
  sum(linear(x, w, b)).backward();
  EXPECT_EQ(b.grad().to_vector(), (std::vector<float>{4, 4}));
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(w.grad().defined());
  const Tensor<float> v = ones({2, 3}).requires_grad_();
  sum(linear(x, v)).backward();
  EXPECT_EQ(v.grad().to_vector(), std::vector<float>(6, 4.f));
}

TYPED_TEST(AutocastGradients, KeepHalfTheMemory) {
  const Tensor<float> w = randn({8, 256}).requires_grad_();
  const auto kept = [&](bool on) {
    const auto before = memory::stats().in_use;
    const amp::autocast low(dtype_of<TypeParam>, on);
    const Tensor<float> y = linear(randn({128, 256}), w);
    return double(memory::stats().in_use - before);
  };
  EXPECT_LE(kept(true), 0.6 * kept(false));
}

TYPED_TEST(AutocastGradients, NotOfGradients) {
  const Tensor<float> x = randn({4, 3}).requires_grad_(), w = randn({2, 3}).requires_grad_();
  const amp::autocast low(dtype_of<TypeParam>);
  const Tensor<float> y = sum(linear(x, w));
  EXPECT_THROW(y.backward({.create_graph = true}), NotImplemented);
}

TYPED_TEST(AutocastGradients, OfARowOfRoundedNumbersAreExact) {
  // 1 + 2^-12 rounds to 1 in both types, in the operands as in the gradient.
  const Tensor<float> x = full({1, 1}, 1 + 0x1p-12f).requires_grad_(), w = full({1, 1}, 3 + 0x1p-11f).requires_grad_();
  Tensor<float> y;
  {
    const amp::autocast low(dtype_of<TypeParam>);
    y = linear(x, w);
  }
  EXPECT_EQ(y.item(), 3.f);
  y.backward(full({1, 1}, 1 + 0x1p-12f));
  EXPECT_EQ(x.grad().item(), 3.f);
  EXPECT_EQ(w.grad().item(), 1.f);
}

}  // namespace
}  // namespace tenet
