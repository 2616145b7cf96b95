#include <tenet/ops/prod.hpp>
#include <tenet/ops/reduce.hpp>

#include <numeric>

#include "ops/op_cases.hpp"
#include "ops/reduced.hpp"

namespace tenet {
namespace {

using test::check;
using test::Elements;
using test::over;

const std::vector<std::vector<Shape>> any_rank{{{}}, {{1}}, {{1, 1, 1}}, {{3, 4, 5}}, {{2, 1, 3, 2}}};
const std::vector<std::vector<Shape>> matrices{{{1, 1}}, {{7, 3}}, {{2, 3, 4}}};
const std::vector<std::vector<Shape>> empty_matrices{{{2, 0}}, {{0, 3}}, {{0, 2, 3}}};

double total(const Elements& x) { return std::accumulate(x.begin(), x.end(), 0.0); }
double average(const Elements& x) { return total(x) / double(x.size()); }
double product(const Elements& x) { return std::accumulate(x.begin(), x.end(), 1.0, std::multiplies<>()); }

/// A reduction over all dimensions and over some, from both ends, kept and not. `nothing`: of no elements as well.
template <class F>
void check_reduction(const std::string& name, F f, double (*reference)(const Elements&), bool nothing = true) {
  for (const bool keepdim : {false, true}) {
    const auto one = [&](const Dims& dims, const Shape& shape, const std::vector<std::vector<Shape>>& shapes) {
      check({.name = name + " over " + dims.str() + (keepdim ? ", kept" : ""),
             .f = [=](const auto& x) { return f(x[0], dims, keepdim); },
             .inputs = {{shape}},
             .reference = over(dims, keepdim, reference),
             .shapes = shapes});
    };
    one({}, {2, 3}, any_rank);
    for (const Dims& dims : {Dims{0}, Dims{1}, Dims{-1, 0}}) {
      one(dims, {3, 4}, matrices);
      if (nothing) one(dims, {0, 0}, empty_matrices);
    }
  }
}

TEST(Sum, Cases) {
  check_reduction(
      "sum", [](const auto& x, const Dims& d, bool k) { return sum(x, d, k); }, total);
}
TEST(Mean, Cases) {
  check_reduction(
      "mean", [](const auto& x, const Dims& d, bool k) { return mean(x, d, k); }, average, false);
}
TEST(Prod, Cases) {
  check_reduction(
      "prod", [](const auto& x, const Dims& d, bool k) { return prod(x, d, k); }, product);
}

TEST(Sum, ReadsDimensionsFromEitherEnd) {
  const Tensor<float> x = ones({2, 3, 4});
  EXPECT_EQ(sum(x, {-1}).shape(), (Shape{2, 3}));
  EXPECT_EQ(sum(x, {2, 0}).shape(), (Shape{3}));
  EXPECT_EQ(sum(x, {0, -1}, true).shape(), (Shape{1, 3, 1}));
  EXPECT_EQ(sum(x).shape(), (Shape{}));
  EXPECT_EQ(sum(x, {}, true).shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(sum(scalar(2.f), {0}).item(), 2);
  EXPECT_EQ(x.sum({1}).to_vector(), std::vector<float>(8, 3));
  EXPECT_EQ(x.sum().item(), 24);
  EXPECT_EQ(x.mean({1}, true).shape(), (Shape{2, 1, 4}));
  EXPECT_EQ(x.mean().item(), 1);
}

TEST(Sum, NamesWrongDimensions) {
  const Tensor<float> x = ones({2, 3});
  const auto message = [](auto f) {
    try {
      f();
    } catch (const IndexError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(message([&] { sum(x, {2}); }), "sum: expected a dimension in [-2, 1], got 2");
  EXPECT_EQ(message([&] { mean(x, {-3}); }), "mean: expected a dimension in [-2, 1], got -3");
  EXPECT_EQ(message([&] { prod(x, {1, -1}); }), "prod: expected each dimension once, got [1, -1]");
  EXPECT_THROW(any(x, {5}), IndexError);
  EXPECT_THROW(sum(scalar(1.f), {1}), IndexError);
}

TEST(Sum, OfIntegersAddsUpInInt64) {
  const Tensor<std::int8_t> bytes = full<std::int8_t>({300}, 100);
  const Tensor<std::int64_t> s = sum(bytes);
  EXPECT_EQ(s.item(), 30000);
  EXPECT_EQ(sum(full<std::int32_t>({4}, 2'000'000'000)).item(), 8'000'000'000);
  EXPECT_EQ(sum(full<std::uint8_t>({2, 300}, 255), {1}).to_vector(), (std::vector<std::int64_t>{76500, 76500}));
  EXPECT_EQ(sum(from_vector<bool>({true, false, true}, {3})).item(), 2);
  EXPECT_EQ(prod(from_vector<std::int32_t>({-3, 100000, 100000}, {3})).item(), -30'000'000'000);
  EXPECT_EQ(prod(from_vector<bool>({true, true}, {2})).item(), 1);
}

TEST(Sum, OfHalvesIsAccumulatedInFloat) {
  EXPECT_EQ(float(mean(full<half>({1000}, half(100))).item()), 100);
  EXPECT_TRUE(std::isinf(float(sum(full<half>({1000}, half(100))).item())));  // 100000 is no half
  EXPECT_EQ(float(sum(full<bfloat16>({1000}, bfloat16(1))).item()), 1000);
  EXPECT_EQ(float(sum(full<half>({2000, 3}, half(1)), {0})(1)), 2000);
  EXPECT_EQ(float(prod(from_vector<half>({half(300), half(300), half(0.01f)}, {3})).item()), float(half(900.08f)));
}

TEST(Mean, OfHalvesSpreadsAGradientThatTheCountDoesNotFit) {
  const Tensor<half> x = full<half>({70000}, half(1)).requires_grad_();
  (mean(x) * 1000).backward();
  EXPECT_NEAR(float(x.grad()(0)), 1000.0 / 70000, 1e-5);
}

TEST(Sum, GradientsOfBroadcastOperandsAreReduced) {
  const auto a = from_vector<float>({1, 2}, {2, 1}).requires_grad_();
  const auto b = from_vector<float>({10, 20, 30}, {1, 3}).requires_grad_();
  sum(a + b).backward();
  EXPECT_EQ(a.grad().shape(), (Shape{2, 1}));
  EXPECT_EQ(a.grad().to_vector(), (std::vector<float>{3, 3}));
  EXPECT_EQ(b.grad().shape(), (Shape{1, 3}));
  EXPECT_EQ(b.grad().to_vector(), (std::vector<float>{2, 2, 2}));
  a.zero_grad();
  b.zero_grad();
  sum(a * b).backward();
  EXPECT_EQ(a.grad().to_vector(), (std::vector<float>{60, 60}));
  EXPECT_EQ(b.grad().to_vector(), (std::vector<float>{3, 3, 3}));
  const auto s = scalar(2.f).requires_grad_();
  sum(s * ones({5, 4})).backward();
  EXPECT_EQ(s.grad().shape(), (Shape{}));
  EXPECT_EQ(s.grad().item(), 20);
}

TEST(Sum, OfNothing) {
  EXPECT_EQ(sum(zeros({0})).item(), 0);
  EXPECT_TRUE(std::isnan(mean(zeros({0})).item()));
  EXPECT_EQ(prod(zeros({0})).item(), 1);
  EXPECT_EQ(sum(zeros({2, 0}), {1}).to_vector(), (std::vector<float>{0, 0}));
  const auto x = zeros({0, 3}).requires_grad_();
  sum(x).backward();
  EXPECT_EQ(x.grad().shape(), (Shape{0, 3}));
}

TEST(Sum, GradientsMayBeChangedInPlace) {
  const auto x = ones({4}).requires_grad_();
  sum(x).backward();
  x.grad().data()[0] = 5;
  EXPECT_EQ(x.grad().to_vector(), (std::vector<float>{5, 1, 1, 1}));
}

TEST(Prod, HasTheRightGradientAtZeros) {
  const auto gradient = [](const std::vector<double>& values) {
    const auto x = from_vector(values, {std::int64_t(values.size())}).requires_grad_();
    prod(x).backward();
    return x.grad().to_vector();
  };
  EXPECT_EQ(gradient({2, 0, 3}), (std::vector<double>{0, 6, 0}));
  EXPECT_EQ(gradient({0, 5, 0}), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(gradient({2, 3, 5, 7, 11}), (std::vector<double>{1155, 770, 462, 330, 210}));
  const auto x = from_vector<double>({0, 2, 0, 3}, {4}).requires_grad_();
  EXPECT_TRUE(autograd::gradgradcheck([](const auto& in) { return prod(in[0]); }, {x}));
}

TEST(Count, AnyAllAndCountNonzero) {
  const auto x = from_vector<float>({0, 1, 0, 0, 2, std::nanf("")}, {2, 3});
  EXPECT_TRUE(any(x).item());
  EXPECT_FALSE(all(x).item());
  EXPECT_EQ(any(x, {0}).to_vector(), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(all(x, {0}, true).shape(), (Shape{1, 3}));
  EXPECT_EQ(all(x, {0}).to_vector(), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(count_nonzero(x).item(), 3);
  EXPECT_EQ(count_nonzero(x, {1}).to_vector(), (std::vector<std::int64_t>{1, 2}));
  EXPECT_FALSE(any(zeros({0})).item());
  EXPECT_TRUE(all(zeros({0})).item());
  EXPECT_TRUE(any(from_vector<bool>({false, true}, {2})).item());
  EXPECT_EQ(count_nonzero(full<half>({70000}, half(1))).item(), 70000);
  EXPECT_EQ(count_nonzero(full<std::int8_t>({300}, -1)).item(), 300);
}

TEST(Sum, IsTheSameForAnyNumberOfThreads) {
  for (const std::int64_t n : {32767, 32768, 32769, 100001}) {
    const Tensor<float> x = empty({n});
    for (std::int64_t i = 0; i < n; ++i) x.data()[i] = std::sin(float(i)) * float(1 + i % 1000);
    EXPECT_TRUE(test::same_for_any_threads([&] { return sum(x); })) << n;
    EXPECT_TRUE(test::same_for_any_threads([&] { return mean(x); })) << n;
    EXPECT_TRUE(test::same_for_any_threads([&] { return prod(x); })) << n;
    const Tensor<half> h = to<half>(x);
    EXPECT_TRUE(test::same_for_any_threads([&] { return sum(h); })) << n;
  }
  const Tensor<float> m =
      to<float>(test::arrange(from_vector(std::vector<float>(300 * 257, 0.1f), {300, 257}), test::Layout::reversed));
  EXPECT_TRUE(test::same_for_any_threads([&] { return sum(m, {0}); }));
  EXPECT_TRUE(test::same_for_any_threads([&] { return sum(m, {1}); }));
}

}  // namespace
}  // namespace tenet
