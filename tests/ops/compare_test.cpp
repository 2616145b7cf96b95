#include <tenet/ops/compare.hpp>

#include "ops/op_cases.hpp"

namespace tenet {
namespace {

using test::check;
using test::elementwise;

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

std::vector<bool> values(const Tensor<bool>& x) { return x.to_vector(); }
std::vector<bool> bits(const char* s) {
  std::vector<bool> v;
  for (; *s; ++s) v.push_back(*s == '1');
  return v;
}

// The inputs are small whole numbers, so that some are equal.
template <class F, class R>
void check_comparison(const char* name, F f, R reference) {
  const auto whole = [](double x) { return std::floor(x); };
  check({.name = name,
         .f =
             [=](const auto& x) {
               using T = typename std::remove_cvref_t<decltype(x[0])>::value_type;
               const auto round_down = [&](const Tensor<T>& t) {
                 auto v = t.to_vector();
                 for (T& e : v) e = T(whole(double(e)));
                 return from_vector(v, t.shape());
               };
               return to<T>(f(round_down(x[0]), round_down(x[1])));
             },
         .inputs = {{{4, 5}}, {{4, 5}}},
         .reference = elementwise([=](double a, double b) { return double(reference(whole(a), whole(b))); }),
         .shapes = test::binary_shapes(),
         .once = false});
}

TEST(Compare, Elementwise) {
  check_comparison(
      "eq", [](const auto& a, const auto& b) { return a == b; }, std::equal_to<>());
  check_comparison(
      "ne", [](const auto& a, const auto& b) { return a != b; }, std::not_equal_to<>());
  check_comparison(
      "lt", [](const auto& a, const auto& b) { return a < b; }, std::less<>());
  check_comparison(
      "le", [](const auto& a, const auto& b) { return a <= b; }, std::less_equal<>());
  check_comparison(
      "gt", [](const auto& a, const auto& b) { return a > b; }, std::greater<>());
  check_comparison(
      "ge", [](const auto& a, const auto& b) { return a >= b; }, std::greater_equal<>());
  check_comparison(
      "and", [](const auto& a, const auto& b) { return logical_and(a, b); }, std::logical_and<>());
  check_comparison(
      "or", [](const auto& a, const auto& b) { return logical_or(a, b); }, std::logical_or<>());
  check_comparison(
      "xor", [](const auto& a, const auto& b) { return logical_xor(a, b); },
      [](double a, double b) { return (a != 0) != (b != 0); });
}

// Strided operands of comparisons themselves, which the cases above make contiguous.
TEST(Compare, Strided) {
  const auto a = from_vector<float>({1, 5, 2, 2, 9, 0}, {2, 3}), b = from_vector<float>({1, 4, 3, 2, 8, 1}, {2, 3});
  for (const auto l : {test::Layout::reversed, test::Layout::stepped, test::Layout::narrowed}) {
    EXPECT_EQ(values(arrange(a, l) <= b), bits("101101"));
    EXPECT_EQ(values(a <= arrange(b, l)), bits("101101"));
    EXPECT_EQ(values(isfinite(arrange(a, l))), bits("111111"));
  }
}

TEST(Compare, NumbersAndNan) {
  const auto x = from_vector<float>({-1, 0, 2, float(nan)});
  EXPECT_EQ(values(x > 0), bits("0010"));
  EXPECT_EQ(values(x >= 0.f), bits("0110"));
  EXPECT_EQ(values(x < 0), bits("1000"));
  EXPECT_EQ(values(x <= 0), bits("1100"));
  EXPECT_EQ(values(x == 2), bits("0010"));
  EXPECT_EQ(values(x != 2), bits("1101"));
  EXPECT_EQ(values(x == x), bits("1110"));
  EXPECT_EQ(values(x != x), bits("0001"));
}

TEST(Compare, Integers) {
  const auto x = from_vector<std::uint8_t>({0, 7, 255});
  EXPECT_EQ(values(x == 255), bits("001"));
  EXPECT_THROW((void)(x == 300), Error);
  EXPECT_THROW((void)(x < -1), Error);
  const auto big = from_vector<std::int64_t>({(std::int64_t(1) << 53) + 1, std::int64_t(1) << 53});
  EXPECT_EQ(values(big == (std::int64_t(1) << 53)), bits("01"));
  EXPECT_THROW((void)(big == ~std::uint64_t(0)), Error);
}

TEST(Compare, Predicates) {
  const auto x = from_vector<double>({nan, inf, -inf, 0, 1e308});
  for (const auto& v : {to<float>(x / 1e304), to<float>(to<half>(to<float>(x / 1e304)))}) {
    EXPECT_EQ(values(isnan(v)), bits("10000"));
    EXPECT_EQ(values(isinf(v)), bits("01100"));
    EXPECT_EQ(values(isfinite(v)), bits("00011"));
  }
  EXPECT_EQ(values(isnan(x)), bits("10000"));
  EXPECT_EQ(values(isinf(x)), bits("01100"));
  EXPECT_EQ(values(isfinite(x)), bits("00011"));
  EXPECT_EQ(values(logical_not(x)), bits("00010"));
  const auto n = from_vector<std::int64_t>({-1, 0});
  EXPECT_EQ(values(isnan(n)), bits("00"));
  EXPECT_EQ(values(isinf(n)), bits("00"));
  EXPECT_EQ(values(isfinite(n)), bits("11"));
  EXPECT_EQ(values(logical_not(n)), bits("01"));
}

TEST(Compare, LogicOfBool) {
  const auto a = from_vector<bool>({false, false, true, true}), b = from_vector<bool>({false, true, false, true});
  EXPECT_EQ(values(a & b), bits("0001"));
  EXPECT_EQ(values(a | b), bits("0111"));
  EXPECT_EQ(values(a ^ b), bits("0110"));
  EXPECT_EQ(values(!a), bits("1100"));
  EXPECT_EQ(values(a == b), bits("1001"));
}

TEST(Compare, Equal) {
  const auto a = from_vector<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_TRUE(equal(a, clone(a)));
  EXPECT_TRUE(equal(a, arrange(a, test::Layout::reversed)));
  EXPECT_FALSE(equal(a, a + 1));
  EXPECT_FALSE(equal(a, from_vector<float>({1, 2, 3, 4, 5, 6}, {3, 2})));
  EXPECT_FALSE(equal(ones<float>({1}), ones<float>({2})));
  EXPECT_TRUE(equal(empty<float>({0, 3}), empty<float>({0, 3})));
  EXPECT_FALSE(equal(full<float>({1}, float(nan)), full<float>({1}, float(nan))));
}

TEST(Compare, Close) {
  const auto a = from_vector<double>({1, 1, 100, inf, inf, -inf, nan, nan, 1});
  const auto b = from_vector<double>({1 + 1e-9, 1.1, 100.0005, inf, -inf, 1, nan, 1, inf});
  EXPECT_EQ(values(isclose(a, b)), bits("101100000"));
  EXPECT_EQ(values(isclose(a, b, 0, 0.2)), bits("111100000"));
  EXPECT_EQ(values(isclose(a, b, 1e-5, 1e-8, true)), bits("101100100"));
  EXPECT_FALSE(allclose(a, b));
  EXPECT_TRUE(allclose(ones<float>({2, 2}), full<float>({2}, 1.000001f)));
  EXPECT_TRUE(allclose(from_vector<std::int32_t>({7}), from_vector<std::int32_t>({8}), 0, 1));
  EXPECT_THROW(isclose(a, b, -1), Error);
  EXPECT_THROW(isclose(a, b, 0, nan), Error);
}

TEST(Compare, NothingIsRecorded) {
  auto x = ones<float>({2}).requires_grad_();
  EXPECT_FALSE((x > 0).requires_grad());
  EXPECT_FALSE(isnan(x).requires_grad());
}

TEST(Compare, ShapesMustBroadcast) {
  EXPECT_THROW((void)(ones<float>({2}) < ones<float>({3})), ShapeError);
  EXPECT_THROW(isclose(ones<float>({2}), ones<float>({3})), ShapeError);
}

}  // namespace
}  // namespace tenet
