#include <tenet/ops/inplace.hpp>

#include <gtest/gtest.h>
#include <tenet/ops/activation.hpp>
#include <tenet/ops/broadcast.hpp>
#include <tenet/ops/trigonometry.hpp>
#include <tenet/ops/view.hpp>

#include "autograd/support.hpp"

namespace tenet {
namespace {

using test::expect_error;
using test::expect_no_leak;
using test::leaf;
using test::values;

using Doubles = std::vector<double>;

TEST(InPlace, Values) {
  const auto x = from_vector<double>({1, 2, 4});
  EXPECT_TRUE(x.add_(1).is(x));
  EXPECT_EQ(values(x), (Doubles{2, 3, 5}));
  EXPECT_EQ(values(x.sub_(1).mul_(6).div_(2)), (Doubles{3, 6, 12}));
  EXPECT_EQ(values(x.add_(scalar(1.0))), (Doubles{4, 7, 13}));
  EXPECT_EQ(values(x.copy_(from_vector<double>({9}))), (Doubles{9, 9, 9}));
  EXPECT_EQ(values(x.fill_(2)), (Doubles{2, 2, 2}));
  EXPECT_EQ(values(x.zero_()), (Doubles{0, 0, 0}));
  auto y = ones<double>({2});
  y += 2;
  y -= ones<double>({2});
  y *= 3;
  y /= 2;
  EXPECT_EQ(values(y), (Doubles{3, 3}));
}

TEST(InPlace, OnViews) {
  const auto x = from_vector<double>({1, 2, 3, 4}, {2, 2});
  x.t().add_(from_vector<double>({10, 20}, {2, 1}));
  EXPECT_EQ(values(x), (Doubles{11, 22, 13, 24}));
  x.select(1, 0).zero_();
  EXPECT_EQ(values(x), (Doubles{0, 22, 0, 24}));
}

TEST(InPlace, ShapeIsThatOfTheTarget) {
  const auto x = ones<double>({2, 1});
  EXPECT_THROW(x.add_(ones<double>({1, 3})), ShapeError);
  EXPECT_THROW(x.copy_(ones<double>({3})), ShapeError);
}

TEST(InPlace, NotOnExpandedMemory) {
  const auto x = expand(scalar(0.785), {3});
  expect_error([&] { x.mul_(2); }, "expanded");
  expect_error([&] { relu_(x); }, "expanded");
  for (const double v : values(cos(x))) EXPECT_NEAR(v, 0.7074, 1e-4);
  EXPECT_EQ(values(expand(ones<double>({1}), {1}).mul_(2)), (Doubles{2}));
}

TEST(InPlace, NotOverAnOverlap) {
  const auto a = from_vector<double>({1, 2, 3, 4}, {2, 2});
  expect_error([&] { a.add_(a.t()); }, "overlaps");
  const auto v = arange<double>(5);
  expect_error([&] { v.slice(0, 1).copy_(v.slice(0, 0, 4)); }, "overlaps");
  EXPECT_EQ(values(a), (Doubles{1, 2, 3, 4}));
  EXPECT_EQ(values(v), (Doubles{0, 1, 2, 3, 4}));
  EXPECT_EQ(values(a.add_(a)), (Doubles{2, 4, 6, 8}));
  v.slice(0, 0, 2).copy_(v.slice(0, 3));
  EXPECT_EQ(values(v), (Doubles{3, 4, 2, 3, 4}));
}

TEST(InPlace, NotOnALeafThatCollects) {
  const auto w = leaf(Doubles{1, 2});
  expect_error([&] { w.add_(1); }, "leaf");
  expect_error([&] { relu_(w); }, "leaf");
  const no_grad guard;
  w.add_(1);
  EXPECT_EQ(values(w), (Doubles{2, 3}));
  EXPECT_TRUE(w.is_leaf());
}

TEST(InPlace, NotOnAViewInAGraph) {
  const auto w = leaf(Doubles{1, 2});
  const auto h = w * 1;
  expect_error([&] { h.view({2, 1}).mul_(2); }, "view");
}

// ---- gradients

TEST(InPlace, GradientsGoThrough) {
  const auto w = leaf(Doubles{1, 2}), v = leaf(Doubles{3, 5});
  const auto h = w * 2;
  h.mul_(v).add_(1).sub_(v).div_(2);
  h.backward(ones<double>({2}));
  EXPECT_EQ(values(w.grad()), (Doubles{3, 5}));  // h = (2 w v + 1 - v) / 2
  EXPECT_EQ(values(v.grad()), (Doubles{0.5, 1.5}));
}

TEST(InPlace, OfATensorThatWasAConstant) {
  const auto w = leaf(Doubles{1, 2});
  const auto sum = zeros<double>({2});
  for (int i = 1; i <= 3; ++i) sum.add_(w * i);
  sum.mul_(w);
  sum.backward(ones<double>({2}));
  EXPECT_EQ(values(w.grad()), (Doubles{12, 24}));
}

TEST(InPlace, SquareByItself) {
  const auto w = leaf(Doubles{2, 3});
  const auto h = w * 1;
  h.mul_(h);
  h.backward(ones<double>({2}));
  EXPECT_EQ(values(w.grad()), (Doubles{4, 6}));
}

TEST(InPlace, GradientOfTheGradient) {
  const auto w = leaf(2);
  const auto h = w * 1;
  h.mul_(w).mul_(w);
  const auto g = autograd::grad(h, w, {.create_graph = true});
  EXPECT_EQ(g.item(), 12);
  EXPECT_EQ(autograd::grad(g, w).item(), 12);
}

TEST(InPlace, OverwrittenValuesHaveNoGradient) {
  const auto w = leaf(Doubles{1, 2}), v = leaf(Doubles{3, 4});
  const auto h = w * 2;
  h.copy_(v * 5);
  h.backward(ones<double>({2}));
  EXPECT_EQ(values(v.grad()), (Doubles{5, 5}));
  EXPECT_FALSE(w.grad() && values(w.grad()) != (Doubles{0, 0}));
}

// The source broadcasts.
TEST(InPlace, GradientOfABroadcastSource) {
  const auto w = leaf(Doubles{1, 2}), s = leaf(3);
  const auto h = w * 2;
  h.add_(s);
  h.backward(ones<double>({2}));
  EXPECT_EQ(s.grad().item(), 2);
}

TEST(InPlace, LeaksNothing) {
  expect_no_leak([] {
    const auto w = leaf(Doubles{1, 2}), v = leaf(Doubles{3, 4});
    const auto h = w * 2;
    h.mul_(v).div_(v).mul_(h);
  });
}

// ---- versions

TEST(Versions, CountChanges) {
  const auto x = ones<double>({2});
  const auto before = x.version();
  x.add_(1);
  x.detach().zero_();
  EXPECT_EQ(x.version(), before + 2);
}

TEST(Versions, AChangedOutputIsAnError) {
  const auto x = leaf(Doubles{1, 2, 3});
  const auto o = sigmoid(x);
  o.detach().zero_();
  expect_error([&] { o.backward(ones<double>({3})); },
               "sigmoid: a tensor of shape [3] that backward needs was changed");
  EXPECT_FALSE(x.grad());
}

TEST(Versions, AChangedInputIsAnError) {
  const auto x = leaf(Doubles{1, 2}), y = leaf(Doubles{3, 4});
  const auto z = x * y;
  {
    const no_grad guard;
    y.add_(1);
  }
  expect_error([&] { z.backward(ones<double>({2})); }, "mul");
}

TEST(Versions, WhatIsNotKeptMayChange) {
  const auto x = leaf(Doubles{1, 2, 3});
  const auto v = x.view({-1});
  const auto o = v * 2;
  {
    const no_grad guard;
    v.add_(1);
  }
  o.backward(ones<double>({3}));
  EXPECT_EQ(values(x.grad()), (Doubles{2, 2, 2}));
}

// A pointwise gradient may be written over the one it came from, but only where nobody can see it.
TEST(InPlace, GradientsThatAreSeenStay) {
  const auto x = leaf(Doubles{-1, 2});
  const auto h = x * 3, y = relu(h), z = y * 1;
  const auto g = from_vector<double>({5, 7});
  y.backward(g, {.retain_graph = true});
  EXPECT_EQ(values(g), (Doubles{5, 7}));
  EXPECT_EQ(values(x.grad()), (Doubles{0, 21}));

  Tensor<double> seen;
  y.register_hook([&](const AnyTensor& t) {
    seen = Tensor<double>(t);
    return AnyTensor();
  });
  y.retain_grad();
  z.backward(g, {.retain_graph = true});
  EXPECT_EQ(values(seen), (Doubles{5, 7}));
  EXPECT_EQ(values(y.grad()), (Doubles{5, 7}));

  const auto both = autograd::grad<double>({z}, {y, x}, {.grad_outputs = {g}});
  EXPECT_EQ(values(Tensor<double>(both[0])), (Doubles{5, 7}));
  EXPECT_EQ(values(Tensor<double>(both[1])), (Doubles{0, 21}));
}

TEST(Versions, OldViewsAreStale) {
  const auto w = leaf(Doubles{1, 2});
  const auto h = w * 1;
  const auto view = h.view({2, 1});
  h.mul_(3);
  expect_error([&] { view * 2; }, "view");
  EXPECT_EQ(values(view.to<std::int64_t>()), (std::vector<std::int64_t>{3, 6})) << "only to be read";
  const auto fresh = h.view({2, 1}) * 2;
  fresh.backward(ones<double>({2, 1}));
  EXPECT_EQ(values(w.grad()), (Doubles{6, 6}));
}

TEST(Versions, AViewIsFreshUntilTheChange) {
  const auto w = leaf(Doubles{1, 2});
  const auto x = w * 1;
  x.add_(x.view({2}));
  EXPECT_EQ(values(x), (Doubles{2, 4}));
  const auto view = x.view({2, 1});
  x.mul_(3);
  const auto sum = zeros<double>({2, 1});
  expect_error([&] { sum.add_(view); }, "view");
  EXPECT_EQ(values(sum), (Doubles{0, 0})) << "an error must come before the change";
  x.backward(ones<double>({2}));
  EXPECT_EQ(values(w.grad()), (Doubles{6, 6}));
}

// A view of a constant does not know that the constant became part of a graph.
TEST(Versions, OldViewsOfConstantsAreStale) {
  const auto w = leaf(Doubles{1, 2});
  const auto base = zeros<double>({2});
  const auto view = base.view({2, 1});
  base.add_(w);
  expect_error([&] { view* w; }, "view");
}

}  // namespace
}  // namespace tenet
