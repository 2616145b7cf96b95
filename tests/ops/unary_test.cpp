#include <tenet/ops/unary.hpp>

#include <tenet/ops/rounding.hpp>
#include <tenet/ops/trigonometry.hpp>

#include "ops/op_cases.hpp"

namespace tenet {
namespace {

using test::check;
using test::elementwise;
using test::unary_shapes;

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

// A function of one element over [low, high], away from `kinks`.
template <class F, class R>
void check_unary(const char* name, F f, R reference, double low, double high, std::vector<double> kinks = {},
                 bool twice = true) {
  check({.name = name,
         .f = [f](const auto& x) { return f(x[0]); },
         .inputs = {{{3, 4}, low, high, kinks}},
         .reference = elementwise(reference),
         .shapes = unary_shapes(),
         .twice = twice});
}

#define CHECK_UNARY(function, ...)                                                                            \
  check_unary(                                                                                                \
      #function, [](const auto& x) { return tenet::function(x); }, [](double x) { return std::function(x); }, \
      __VA_ARGS__)

template <class T>
std::vector<T> values(const Tensor<T>& x) {
  return x.to_vector();
}

TEST(Unary, ExponentialsAndLogarithms) {
  CHECK_UNARY(exp, -3, 3);
  CHECK_UNARY(expm1, -3, 3);
  CHECK_UNARY(log, 0.1, 5);
  CHECK_UNARY(log1p, -0.9, 5);
  CHECK_UNARY(log2, 0.1, 5);
  CHECK_UNARY(log10, 0.1, 5);
}

TEST(Unary, Powers) {
  CHECK_UNARY(sqrt, 0.1, 5);
  check_unary(
      "rsqrt", [](const auto& x) { return rsqrt(x); }, [](double x) { return 1 / std::sqrt(x); }, 0.1, 5);
  check_unary(
      "reciprocal", [](const auto& x) { return reciprocal(x); }, [](double x) { return 1 / x; }, 0.1, 5);
  check_unary(
      "square", [](const auto& x) { return square(x); }, [](double x) { return x * x; }, -3, 3);
}

TEST(Unary, SignsAndErf) {
  CHECK_UNARY(erf, -3, 3);
  CHECK_UNARY(abs, -3, 3, {0});
  check_unary(
      "sign", [](const auto& x) { return sign(x); }, [](double x) { return double(x > 0) - double(x < 0); }, -3, 3,
      {0});
}

TEST(Unary, Trigonometry) {
  CHECK_UNARY(sin, -4, 4);
  CHECK_UNARY(cos, -4, 4);
  CHECK_UNARY(tan, -1.2, 1.2);
  CHECK_UNARY(asin, -0.9, 0.9);
  CHECK_UNARY(acos, -0.9, 0.9);
  CHECK_UNARY(atan, -4, 4);
  CHECK_UNARY(sinh, -3, 3);
  CHECK_UNARY(cosh, -3, 3);
}

TEST(Unary, Rounding) {
  const std::vector<double> whole{-3, -2, -1, 0, 1, 2, 3}, halves{-2.5, -1.5, -0.5, 0.5, 1.5, 2.5};
  CHECK_UNARY(floor, -3, 3, whole);
  CHECK_UNARY(ceil, -3, 3, whole);
  CHECK_UNARY(trunc, -3, 3, whole);
  CHECK_UNARY(round, -3, 3, halves);
  const auto x = from_vector<double>({-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.500001});
  EXPECT_EQ(values(round(x)), (std::vector<double>{-2, -2, -0.0, 0, 2, 2, 3}));
  EXPECT_EQ(values(round(to<float>(x))), (std::vector<float>{-2, -2, -0.0f, 0, 2, 2, 3}));
}

TEST(Unary, SpecialValues) {
  const auto x = from_vector<double>({nan, -inf, inf, 0, -1});
  const auto expect = [](const Tensor<double>& y, const std::vector<double>& expected) {
    test::expect_near(y, from_vector(expected), 0, "double");
  };
  expect(exp(x), {nan, 0, inf, 1, std::exp(-1)});
  expect(log(x), {nan, nan, inf, -inf, nan});
  expect(sqrt(x), {nan, nan, inf, 0, nan});
  expect(abs(x), {nan, inf, inf, 0, 1});
  expect(sign(x), {0, -1, 1, 0, -1});
  expect(reciprocal(x), {nan, -0.0, 0, inf, -1});
  expect(floor(x), {nan, -inf, inf, 0, -1});
  EXPECT_FALSE(std::signbit(abs(from_vector<float>({-0.f})).item()));
}

// The gradient of |x| at 0 is 0.
TEST(Unary, GradientOfAbsAtZero) {
  auto x = from_vector<double>({0, -2, 3}).requires_grad_();
  abs(x).backward(ones<double>({3}));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{0, -1, 1}));
}

TEST(Unary, Integers) {
  const auto x = from_vector<std::int32_t>({-3, 0, 5, std::numeric_limits<std::int32_t>::min(), 65536});
  EXPECT_EQ(values(abs(x)), (std::vector<std::int32_t>{3, 0, 5, std::numeric_limits<std::int32_t>::min(), 65536}));
  EXPECT_EQ(values(sign(x)), (std::vector<std::int32_t>{-1, 0, 1, -1, 1}));
  EXPECT_EQ(values(square(x)), (std::vector<std::int32_t>{9, 0, 25, 0, 0}));
  EXPECT_EQ(values(floor(x)), values(x));
  EXPECT_EQ(values(square(from_vector<std::uint8_t>({3, 20}))), (std::vector<std::uint8_t>{9, 144}));
}

TEST(Unary, HalfPrecision) {
  const auto x = from_vector<float>({-2, -0.5, 0, 0.25, 1.5, 3});
  const auto check_half = [&]<class H>(H) {
    const auto y = exp(to<H>(x)).to_vector();
    for (std::size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(float(y[i]), float(H(std::exp(x.data()[i])))) << i;
    }
  };
  check_half(half{});
  check_half(bfloat16{});
}

TEST(Unary, InPlace) {
  auto x = from_vector<double>({1, 4});
  EXPECT_TRUE(sqrt_(x).is(x));
  EXPECT_EQ(values(x), (std::vector<double>{1, 2}));
  neg_(x);
  EXPECT_EQ(values(x), (std::vector<double>{-1, -2}));
  exp_(x);
  EXPECT_EQ(values(x), (std::vector<double>{std::exp(-1.0), std::exp(-2.0)}));
  auto w = from_vector<double>({0.5, 2}).requires_grad_();
  const auto y = w * 2;
  exp_(y);
  y.backward(ones<double>({2}));
  test::expect_near(w.grad(), from_vector<double>({2 * std::exp(1.0), 2 * std::exp(4.0)}), 1e-15, "gradient");
}

}  // namespace
}  // namespace tenet
