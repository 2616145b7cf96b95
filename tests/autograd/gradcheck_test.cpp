#include <tenet/autograd/gradcheck.hpp>

#include <gtest/gtest.h>
#include <tenet/ops/pointwise.hpp>
#include <tenet/ops/unary.hpp>

#include "autograd/support.hpp"
#include "ops/layouts.hpp"

namespace tenet {
namespace {

using autograd::gradcheck;
using autograd::gradgradcheck;
using test::expect_error;
using test::leaf;

using Doubles = std::vector<double>;
using Tensors = std::vector<Tensor<double>>;

// x^3 with errors to be found.
struct Cube : UnaryOp<Cube> {
  static constexpr const char* name = "cube";
  static constexpr Keeps keeps = Keeps::input;
  bool wrong_first = false, wrong_second = false;
  auto f(auto x) const { return x * x * x; }
  auto df(auto x, auto) const { return (wrong_first ? 2 : 3) * x * x; }
  auto ddf(auto x) const { return (wrong_second ? 5 : 6) * x; }
};

// Identity with a gradient that is 1 % too large.
struct Inexact {
  static constexpr const char* name = "inexact";
  static Tensor<double> forward(Context&, const Tensor<double>& x) { return clone(detach(x)); }
  static void backward(Grad grad, const Tensor<double>& g) { grad[0] = g * 1.01; }
};

TEST(Gradcheck, AcceptsRightGradients) {
  const auto f = [](const Tensors& x) { return apply<Cube>(x[0], Cube{}) * x[1]; };
  const Tensors x{leaf(Doubles{1, -2, 0.5}), leaf(Doubles{3})};
  EXPECT_TRUE(gradcheck(f, x));
  EXPECT_TRUE(gradgradcheck(f, x));
}

TEST(Gradcheck, FindsAWrongGradient) {
  const auto f = [](const Tensors& x) { return x[0] + apply<Cube>(x[1], Cube{{}, true, false}); };
  expect_error([&] { gradcheck(f, {leaf(Doubles{1, 2}), leaf(Doubles{1, 2})}); }, "input 1 of shape [2], element 0");
}

TEST(Gradcheck, FindsASmallError) {
  const auto f = [](const Tensors& x) { return apply<Inexact>(x[0]); };
  expect_error([&] { gradcheck(f, {leaf(Doubles{1, 2})}); }, "finite difference");
}

TEST(Gradcheck, LeavesTheInputsAlone) {
  const Tensors x{leaf(Doubles{1, 2})};
  int calls = 0;
  const auto f = [&](const Tensors& in) {
    if (++calls == 3) throw Error("third call");
    return in[0] * in[0];
  };
  expect_error([&] { gradcheck(f, x); }, "third call");
  EXPECT_EQ(x[0].to_vector(), (Doubles{1, 2}));
}

TEST(Gradcheck, FindsAWrongSecondGradient) {
  const auto f = [](const Tensors& x) { return apply<Cube>(x[0], Cube{{}, false, true}); };
  const Tensors x{leaf(Doubles{1, 2})};
  EXPECT_TRUE(gradcheck(f, x));
  expect_error([&] { gradgradcheck(f, x); }, "gradcheck");
}

// Not a number is no match for anything.
TEST(Gradcheck, NanIsWrong) {
  const auto f = [](const Tensors& x) { return sqrt(x[0]); };
  EXPECT_THROW(gradcheck(f, {leaf(Doubles{-1})}), Error);
}

TEST(Gradcheck, ComparesOnlyWhatRequiresAGradient) {
  const auto f = [](const Tensors& x) { return x[0] * apply<Cube>(x[1], Cube{{}, true, false}); };
  EXPECT_TRUE(gradcheck(f, {leaf(Doubles{1, 2}), from_vector<double>({1, 2})}));
}

TEST(Gradcheck, AnUnusedInputHasGradientZero) {
  EXPECT_TRUE(gradcheck([](const Tensors& x) { return x[0] * 2; }, {leaf(Doubles{1}), leaf(Doubles{2})}));
}

TEST(Gradcheck, StridedInputs) {
  const auto f = [](const Tensors& x) { return exp(x[0]); };
  for (const auto l : {test::Layout::reversed, test::Layout::stepped}) {
    auto x = test::arrange(from_vector<double>({1, 2, 3, 4, 5, 6}, {2, 3}), l);
    x.requires_grad_();
    EXPECT_TRUE(gradcheck(f, {x}));
    EXPECT_TRUE(gradgradcheck(f, {x}));
  }
}

TEST(Gradcheck, LeavesTheInputsAsTheyWere) {
  const auto x = leaf(Doubles{1, 2});
  gradcheck([](const Tensors& in) { return exp(in[0]); }, {x});
  EXPECT_EQ(test::values(x), (Doubles{1, 2}));
  EXPECT_FALSE(x.grad());
}

TEST(Gradcheck, NeedsSomethingToCheck) {
  const auto f = [](const Tensors& x) { return x[0] * 2; };
  expect_error([&] { gradcheck(f, {ones<double>({2})}); }, "no input requires a gradient");
  const auto cut = [](const Tensors& x) { return detach(x[0]); };
  expect_error([&] { gradcheck(cut, {leaf(Doubles{1})}); }, "no graph");
}

}  // namespace
}  // namespace tenet
