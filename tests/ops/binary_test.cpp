#include <tenet/ops/binary.hpp>

#include <tenet/ops/division.hpp>

#include "ops/op_cases.hpp"

namespace tenet {
namespace {

using test::check;
using test::elementwise;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

template <class T>
std::vector<T> values(const Tensor<T>& x) {
  return x.to_vector();
}

const auto power = [](const auto& x) { return pow(x[0], x[1]); };
const auto larger = [](const auto& x) { return maximum(x[0], x[1]); };
const auto smaller = [](const auto& x) { return minimum(x[0], x[1]); };
const auto rest = [](const auto& x) { return fmod(x[0], x[1]); };
const auto modulo = [](const auto& x) { return remainder(x[0], x[1]); };
const auto angle = [](const auto& x) { return atan2(x[0], x[1]); };

TEST(Binary, Pow) {
  check({.name = "pow",
         .f = power,
         .inputs = {{{2, 3}, 0.3, 2}, {{2, 3}}},
         .reference = elementwise([](double a, double b) { return std::pow(a, b); }),
         .shapes = test::binary_shapes()});
  check({.name = "pow", .f = power, .file = "pointwise.txt", .once = false});
}

TEST(Binary, PowOfNumbers) {
  for (const double e : {0.0, 1.0, 2.0, 3.0, 0.5, -1.0, -2.5}) {
    const auto f = [e](const auto& x) { return pow(x[0], e); };
    char name[32];
    std::snprintf(name, sizeof name, "pow_scalar_%g", e);
    check({.name = name, .f = f, .file = "pointwise.txt", .once = e < 0 || e == 3, .twice = e != 1});
    check({.name = name, .f = f, .inputs = {{{2, 3}, 0.3, 2}}, .shapes = test::unary_shapes()});
  }
  const auto two = [](const auto& x) { return pow(2, x[0]); };
  check({.name = "pow_of_2", .f = two, .file = "pointwise.txt"});
  check({.name = "pow_of_0", .f = [](const auto& x) { return pow(0, x[0]); }, .file = "pointwise.txt", .once = false});
}

TEST(Binary, PowOfIntegers) {
  const auto x = from_vector<std::int32_t>({-3, 0, 2, 65536});
  EXPECT_EQ(values(pow(x, 3)), (std::vector<std::int32_t>{-27, 0, 8, 0}));
  EXPECT_EQ(values(pow(x, 0)), (std::vector<std::int32_t>{1, 1, 1, 1}));
  EXPECT_THROW(pow(x, -1), Error);
  EXPECT_THROW(pow_(x, -1), Error);
  pow_(x, 2);
  EXPECT_EQ(values(x), (std::vector<std::int32_t>{9, 0, 4, 0}));
}

TEST(Binary, Extrema) {
  check({.name = "maximum",
         .f = larger,
         .inputs = {{{2, 3}}, {{2, 3}}},
         .reference = elementwise([](double a, double b) { return std::max(a, b); }),
         .shapes = test::binary_shapes()});
  check({.name = "minimum",
         .f = smaller,
         .inputs = {{{2, 3}}, {{2, 3}}},
         .reference = elementwise([](double a, double b) { return std::min(a, b); }),
         .shapes = test::binary_shapes()});
  check({.name = "maximum", .f = larger, .file = "pointwise.txt", .once = false});
  check({.name = "minimum", .f = smaller, .file = "pointwise.txt", .once = false});
  EXPECT_EQ(values(maximum(from_vector<std::uint8_t>({1, 200}), from_vector<std::uint8_t>({2, 100}))),
            (std::vector<std::uint8_t>{2, 200}));
}

// NaN from either side, whatever the place in a vector.
TEST(Binary, ExtremaKeepNan) {
  for (const std::int64_t n : {3, 37}) {
    const auto one = ones<float>({n}), bad = full<float>({n}, float(nan));
    for (const auto& y : {maximum(one, bad), maximum(bad, one), minimum(one, bad), minimum(bad, one)}) {
      for (const float v : y.to_vector()) EXPECT_TRUE(std::isnan(v));
    }
  }
}

TEST(Binary, EqualsShareTheGradient) {
  auto a = full<double>({2}, 3).requires_grad_(), b = full<double>({2}, 3).requires_grad_();
  maximum(a, b).backward(ones<double>({2}));
  EXPECT_EQ(values(a.grad()), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(values(b.grad()), (std::vector<double>{0.5, 0.5}));
}

TEST(Binary, Remainders) {
  check({.name = "fmod",
         .f = rest,
         .inputs = {{{2, 3}, 4.1, 4.9}, {{2, 3}, 1.1, 1.3}},
         .reference = elementwise([](double a, double b) { return std::fmod(a, b); }),
         .shapes = test::binary_shapes()});
  check({.name = "remainder",
         .f = modulo,
         .inputs = {{{2, 3}, -4.9, -4.1}, {{2, 3}, 1.7, 1.9}},
         .reference = elementwise([](double a, double b) { return a - std::floor(a / b) * b; }),
         .shapes = test::binary_shapes()});
  check({.name = "fmod", .f = rest, .file = "pointwise.txt", .once = false});
  check({.name = "remainder", .f = modulo, .file = "pointwise.txt", .once = false});
  check({.name = "floor_divide",
         .f = [](const auto& x) { return floor_divide(x[0], x[1]); },
         .file = "pointwise.txt",
         .once = false});
}

TEST(Binary, DivisionOfIntegers) {
  const auto lowest = std::numeric_limits<std::int32_t>::min();
  const auto a = from_vector<std::int32_t>({7, -7, 7, -7, lowest, lowest}),
             b = from_vector<std::int32_t>({3, 3, -3, -3, -1, 2});
  EXPECT_EQ(values(floor_divide(a, b)), (std::vector<std::int32_t>{2, -3, -3, 2, lowest, lowest / 2}));
  EXPECT_EQ(values(remainder(a, b)), (std::vector<std::int32_t>{1, 2, -2, -1, 0, 0}));
  EXPECT_EQ(values(fmod(a, b)), (std::vector<std::int32_t>{1, -1, 1, -1, 0, 0}));
  EXPECT_EQ(values(remainder(a, 4)), (std::vector<std::int32_t>{3, 1, 3, 1, 0, 0}));
  const auto u = from_vector<std::uint8_t>({7, 255});
  EXPECT_EQ(values(floor_divide(u, 2)), (std::vector<std::uint8_t>{3, 127}));
  EXPECT_EQ(values(remainder(u, 255)), (std::vector<std::uint8_t>{7, 0}));
  EXPECT_THROW(floor_divide(a, 0), Error);
  EXPECT_THROW(remainder(a, from_vector<std::int32_t>({1, 1, 0, 1, 1, 1})), Error);
  EXPECT_THROW(fmod(u, 0), Error);
}

// 1 / 0.1 rounds to 10, but 0.1 (a bit more than a tenth) fits into 1 nine times.
TEST(Binary, FloorDivideOfFloats) {
  EXPECT_EQ(floor_divide(full<double>({1}, 1), 0.1).item(), 9);
  EXPECT_EQ(floor_divide(full<double>({1}, 5), 0).item(), std::numeric_limits<double>::infinity());
}

TEST(Binary, Atan2) {
  check({.name = "atan2",
         .f = angle,
         .inputs = {{{2, 3}, 0.2, 2}, {{2, 3}, -2, -0.2}},
         .reference = elementwise([](double y, double x) { return std::atan2(y, x); }),
         .shapes = test::binary_shapes()});
  check({.name = "atan2", .f = angle, .file = "pointwise.txt", .once = false});
}

// x.pow(2).sum().sqrt() has no gradient at 0, unlike a norm.
TEST(Binary, RootOfSquaresAtZero) {
  auto x = zeros<double>({2}).requires_grad_();
  sqrt(sum_to(pow(x, 2), {})).backward();
  for (const double g : values(x.grad())) EXPECT_TRUE(std::isnan(g));
}

TEST(Binary, PowInPlace) {
  auto w = from_vector<double>({0.5, 2}).requires_grad_();
  const auto y = w * 2;
  EXPECT_TRUE(pow_(y, 3).is(y));
  test::expect_near(y, from_vector<double>({1, 64}), 1e-15, "value");
  y.backward(ones<double>({2}));
  test::expect_near(w.grad(), from_vector<double>({6, 96}), 1e-15, "gradient");
}

TEST(Binary, ShapesMustBroadcast) {
  const auto a = ones<float>({2}), b = ones<float>({3});
  EXPECT_THROW(pow(a, b), ShapeError);
  EXPECT_THROW(maximum(a, b), ShapeError);
  EXPECT_THROW(fmod(a, b), ShapeError);
  EXPECT_THROW(atan2(a, b), ShapeError);
}

}  // namespace
}  // namespace tenet
