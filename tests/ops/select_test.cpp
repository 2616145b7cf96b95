#include <tenet/ops/index.hpp>
#include <tenet/ops/select.hpp>

#include "ops/op_cases.hpp"

namespace tenet {
namespace {

using test::check;

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

template <class T>
std::vector<T> values(const Tensor<T>& x) {
  return x.to_vector();
}

TEST(Select, Where) {
  const auto f = [](const auto& x) { return where(to<bool>(x[0]), x[1], x[2]); };
  check({.name = "where", .f = f, .file = "pointwise.txt"});
  check({.name = "where",
         .f = [](const auto& x) { return where(x[0] > 0, x[1], x[2]); },
         .inputs = {{.shape = {2, 3}, .differentiable = false}, {{2, 3}}, {{2, 3}}},
         .reference = test::elementwise([](double c, double a, double b) { return c > 0 ? a : b; }),
         .shapes = {{{}, {}, {}}, {{2, 1, 2}, {3, 1}, {2}}, {{1}, {2, 2}, {2, 2}}, {{3}, {}, {3}}, {{0}, {1}, {0}}}});
}

TEST(Select, WhereWithNumbers) {
  const auto c = from_vector<bool>({true, false});
  const auto x = from_vector<float>({1, 2});
  EXPECT_EQ(values(where(c, x, 7)), (std::vector<float>{1, 7}));
  EXPECT_EQ(values(where(c, 0.5, x)), (std::vector<float>{0.5, 2}));
  EXPECT_EQ(values(where(c, from_vector<std::int64_t>({1, 2}), 9)), (std::vector<std::int64_t>{1, 9}));
}

// The chain rule holds in the branch that is not chosen: 0 * inf.
TEST(Select, HiddenBranchHasAGradient) {
  const auto one = ones<double>({3}), divisor = from_vector<double>({1, 0, 1});
  const auto first = from_vector<bool>({true, false, false});
  auto w = ones<double>({3}).requires_grad_();
  where(first, w / divisor, 0).backward(one);
  test::expect_near(w.grad(), from_vector<double>({1, nan, 0}), 0, "gradient");
  w.zero_grad();
  where(first, w / where(divisor == 0, 1, divisor), 0).backward(one);
  EXPECT_EQ(values(w.grad()), (std::vector<double>{1, 0, 0}));
}

TEST(Select, MaskedFill) {
  const auto f = [](const auto& x) { return masked_fill(x[0], to<bool>(x[1]), 7); };
  check({.name = "masked_fill", .f = f, .file = "pointwise.txt"});
  const auto x = ones<float>({2, 2});
  const auto mask = from_vector<bool>({true, false});
  EXPECT_TRUE(masked_fill_(x, mask, 5).is(x));
  EXPECT_EQ(values(x), (std::vector<float>{5, 1, 5, 1}));
  EXPECT_THROW(masked_fill(ones<float>({2}), ones<bool>({2, 2}), 0), ShapeError);
  EXPECT_THROW(masked_fill_(ones<float>({2}), ones<bool>({3}), 0), ShapeError);
}

TEST(Select, MaskedFillInPlaceGradient) {
  auto w = ones<double>({3}).requires_grad_();
  const auto y = w * 2;
  masked_fill_(y, from_vector<bool>({false, true, false}), 9);
  EXPECT_EQ(values(y), (std::vector<double>{2, 9, 2}));
  y.backward(ones<double>({3}));
  EXPECT_EQ(values(w.grad()), (std::vector<double>{2, 0, 2}));
}

TEST(Select, MaskedSelect) {
  const auto f = [](const auto& x) { return masked_select(x[0], to<bool>(x[1])); };
  check({.name = "masked_select", .f = f, .file = "pointwise.txt", .expands = false});
  check({.name = "masked_select_broadcast", .f = f, .file = "pointwise.txt", .expands = false});
  const auto x = ones<float>({2, 2});
  EXPECT_EQ(masked_select(x, zeros<bool>({2, 2})).shape(), Shape({0}));
  EXPECT_EQ(masked_select(x, ones<bool>({})).shape(), Shape({4}));
  EXPECT_EQ(masked_select(empty<float>({0, 2}), ones<bool>({2})).shape(), Shape({0}));
  EXPECT_THROW(masked_select(x, ones<bool>({3})), ShapeError);
}

TEST(Select, Clamp) {
  const auto between = [](const auto& x) { return clamp(x[0], -1, 2); };
  check({.name = "clamp", .f = between, .file = "pointwise.txt", .once = false});
  check({.name = "clamp", .f = between, .inputs = {{{3, 4}, -4, 4, {-1, 2}}}, .shapes = test::unary_shapes()});
  check({.name = "clamp_min",
         .f = [](const auto& x) { return clamp_min(x[0], 0); },
         .file = "pointwise.txt",
         .once = false});
  check({.name = "clamp_max",
         .f = [](const auto& x) { return clamp(x[0], std::nullopt, 1); },
         .file = "pointwise.txt",
         .once = false});
  check({.name = "clamp_crossed",
         .f = [](const auto& x) { return clamp(x[0], 2, -1); },
         .file = "pointwise.txt",
         .once = false});
  const auto tensors = [](const auto& x) { return clamp(x[0], x[1], x[2]); };
  check({.name = "clamp_tensors", .f = tensors, .file = "pointwise.txt", .once = false});
  check({.name = "clamp_tensors",
         .f = tensors,
         .inputs = {{{3, 4}, -3, 3}, {{3, 4}, -2, -1}, {{3, 4}, 1, 2}},
         .shapes = {{{}, {}, {}}, {{2, 3}, {3}, {2, 1}}, {{0}, {1}, {1}}}});
}

TEST(Select, ClampOfIntegers) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  const auto x = from_vector<std::int64_t>({-5, 3, most});
  EXPECT_EQ(values(clamp(x, 0)), (std::vector<std::int64_t>{0, 3, most}));
  EXPECT_EQ(values(clamp(x, 0, most - 1)), (std::vector<std::int64_t>{0, 3, most - 1}));
}

TEST(Select, ClampKeepsNan) {
  for (const auto bound : {0, 1}) {
    auto x = from_vector<double>({nan, -1, 0.5, 2}).requires_grad_();
    const auto y = bound ? clamp(x, 0, 1) : clamp_min(x, 0);
    test::expect_near(y, from_vector<double>({nan, 0, 0.5, bound ? 1.0 : 2.0}), 0, "clamp");
    y.backward(ones<double>({4}));
    test::expect_near(x.grad(), from_vector<double>({1, 0, 1, bound ? 0.0 : 1.0}), 0, "gradient");
  }
  const auto x = from_vector<double>({nan, 1}), low = from_vector<double>({0, nan});
  test::expect_near(clamp(x, low, {}), from_vector<double>({nan, nan}), 0, "clamp to tensors");
}

TEST(Select, ClampErrors) {
  const auto x = ones<float>({2});
  EXPECT_THROW(clamp(x, std::nullopt), Error);
  EXPECT_THROW(clamp(x, Tensor<float>(), Tensor<float>()), Error);
  EXPECT_THROW(clamp(x, ones<float>({3}), Tensor<float>()), ShapeError);
}

TEST(Select, ClampInPlace) {
  auto w = from_vector<double>({-2, 0.25, 2}).requires_grad_();
  const auto y = w * 2;
  EXPECT_TRUE(clamp_(y, -1, 1).is(y));
  EXPECT_EQ(values(y), (std::vector<double>{-1, 0.5, 1}));
  y.backward(ones<double>({3}));
  EXPECT_EQ(values(w.grad()), (std::vector<double>{0, 2, 0}));
}

TEST(Select, NanToNum) {
  check({.name = "nan_to_num",
         .f = [](const auto& x) { return nan_to_num(x[0], 0.5, 9, -9); },
         .file = "pointwise.txt",
         .once = false});
  const auto x = from_vector<float>({float(nan), float(inf), float(-inf)});
  EXPECT_EQ(values(nan_to_num(x)),
            (std::vector<float>{0, std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()}));
  EXPECT_EQ(float(nan_to_num(to<half>(x)).to_vector()[1]), 65504.f);
}

}  // namespace
}  // namespace tenet
