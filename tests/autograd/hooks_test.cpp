#include <tenet/autograd/hooks.hpp>

#include <gtest/gtest.h>
#include <tenet/ops/arithmetic.hpp>
#include <tenet/ops/inplace.hpp>
#include <tenet/ops/unary.hpp>

#include "autograd/support.hpp"

namespace tenet {
namespace {

using test::expect_error;
using test::leaf;
using test::values;

using Doubles = std::vector<double>;

TEST(Hooks, SeeTheGradient) {
  const auto x = leaf(3);
  const auto h = x * 2;
  Doubles seen;
  x.register_hook([&](const Tensor<double>& g) { seen.push_back(g.item()); });
  h.register_hook([&](const Tensor<double>& g) { seen.push_back(g.item()); });
  (h * h).backward();
  EXPECT_EQ(seen, (Doubles{12, 24}));
  EXPECT_EQ(x.grad().item(), 24);
}

TEST(Hooks, ReplaceTheGradient) {
  const auto x = leaf(3);
  const auto h = x * 2;
  h.register_hook([](const Tensor<double>& g) { return g * 10; });
  x.register_hook([](const Tensor<double>& g) { return g + 1; });
  (h * h).backward();
  EXPECT_EQ(x.grad().item(), 241);
}

TEST(Hooks, InTheOrderOfRegistration) {
  const auto x = leaf(1);
  x.register_hook([](const Tensor<double>& g) { return g + 1; });
  x.register_hook([](const Tensor<double>& g) { return g * 10; });
  x.register_hook([](const Tensor<double>&) { return Tensor<double>(); });  // an undefined result changes nothing
  (x * 4).backward();
  EXPECT_EQ(x.grad().item(), 50);
}

// A leaf used several times calls its hook once, with the sum; so does a tensor inside the graph.
TEST(Hooks, SeeTheSumOnce) {
  const auto x = leaf(3);
  const auto h = x * 1;
  Doubles at_leaf, inside;
  x.register_hook([&](const Tensor<double>& g) { at_leaf.push_back(g.item()); });
  h.register_hook([&](const Tensor<double>& g) { inside.push_back(g.item()); });
  (h * 2 + h * h + x * 100 + x).backward();
  EXPECT_EQ(inside, (Doubles{8}));
  EXPECT_EQ(at_leaf, (Doubles{109}));
  (x * 5).backward();
  EXPECT_EQ(at_leaf, (Doubles{109, 5})) << "each backward has its own sum";
  EXPECT_EQ(x.grad().item(), 114);
}

TEST(Hooks, ApplyToAskedGradients) {
  const auto x = leaf(3);
  const auto h = x * 2;
  x.register_hook([](const Tensor<double>& g) { return g * 10; });
  h.register_hook([](const Tensor<double>& g) { return g * 100; });
  const auto g = autograd::grad<double>({h * 1}, {h, x});
  EXPECT_EQ(Tensor<double>(g[0]).item(), 100);
  EXPECT_EQ(Tensor<double>(g[1]).item(), 2000);
}

TEST(Hooks, OfLeavesThatAreNotAskedForAreNotCalled) {
  const auto x = leaf(3), other = leaf(5);
  other.register_hook([](const Tensor<double>&) { FAIL(); });
  EXPECT_EQ(autograd::grad(x * other, x).item(), 5);
}

TEST(Hooks, AreRecordedWithCreateGraph) {
  const auto x = leaf(3);
  const auto h = x * x;
  bool first = true;  // the second walk meets the hook again
  h.register_hook([&](const Tensor<double>& g) { return std::exchange(first, false) ? g * g : Tensor<double>(); });
  const auto g = autograd::grad(h * h, x, {.create_graph = true});  // (2 h)^2 * 2 x = 8 x^5
  EXPECT_EQ(g.item(), 8 * 243);
  EXPECT_EQ(autograd::grad(g, x).item(), 40 * 81);
}

TEST(Hooks, MustKeepShapeAndType) {
  const auto x = leaf(Doubles{1, 2});
  const auto bad_shape = x * 1, bad_type = x * 1;
  bad_shape.register_hook([](const Tensor<double>&) { return ones<double>({3}); });
  bad_type.register_hook([](const Tensor<double>&) { return ones<float>({2}); });
  EXPECT_THROW(bad_shape.backward(ones<double>({2})), ShapeError);
  EXPECT_THROW(bad_type.backward(ones<double>({2})), DTypeError);
}

TEST(Hooks, NeedAGraph) {
  const auto x = ones<double>({2});
  expect_error([&] { x.register_hook([](const Tensor<double>&) {}); }, "no graph");
  expect_error([&] { x.retain_grad(); }, "no graph");
}

TEST(Hooks, MayThrow) {
  const auto x = leaf(3);
  bool throws = true;
  x.register_hook([&](const Tensor<double>&) {
    if (throws) throw Error("from the hook");
  });
  const auto y = x * x;
  expect_error([&] { y.backward({.retain_graph = true}); }, "from the hook");
  throws = false;
  y.backward();
  EXPECT_EQ(x.grad().item(), 6);
}

TEST(Hooks, MayWalkAnotherGraph) {
  const auto x = leaf(3), other = leaf(5);
  const auto h = x * 2;
  h.register_hook([&](const Tensor<double>&) {
    EXPECT_FALSE(is_grad_enabled());
    const enable_grad guard;
    (other * other).backward();
  });
  (h * h).backward();
  EXPECT_EQ(x.grad().item(), 24);
  EXPECT_EQ(other.grad().item(), 10);
}

TEST(RetainGrad, KeepsTheGradientInside) {
  const auto x = leaf(3);
  const auto h = x * 2, other = x * 5;
  h.retain_grad();
  x.retain_grad();  // a leaf does anyway
  (h * h + other).backward({.retain_graph = true});
  EXPECT_EQ(h.grad().item(), 12);
  EXPECT_FALSE(other.grad());
  EXPECT_EQ(x.grad().item(), 29);
  (h * 1).backward();
  EXPECT_EQ(h.grad().item(), 13);
}

TEST(RetainGrad, OfAnotherTypeThanTheInputs) {
  const auto x = ones<float>({2}).requires_grad_();
  const auto h = x.to<double>();
  h.retain_grad();
  for (int pass = 0; pass < 2; ++pass) (h * 1).backward(ones<double>({2}), {.retain_graph = true});
  EXPECT_EQ(values(h.grad()), (Doubles{2, 2}));
}

TEST(RetainGrad, OfATensorThatIsGone) {
  const auto x = leaf(3);
  auto h = x * 2;
  h.retain_grad();
  const auto y = h * h;
  h = {};
  y.backward();
  EXPECT_EQ(x.grad().item(), 24);
}

// After a change in place it keeps the gradient of what the tensor is now.
TEST(RetainGrad, FollowsChangesInPlace) {
  const auto x = leaf(3);
  auto h = x * 2;
  h.retain_grad();
  h.mul_(10);
  const auto y = h * 7;
  y.backward({.retain_graph = true});
  EXPECT_EQ(h.grad().item(), 7);
  h = {};
  y.backward();
  EXPECT_EQ(x.grad().item(), 2 * 140);
}

}  // namespace
}  // namespace tenet
