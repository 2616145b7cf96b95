#include <tenet/ops/copy.hpp>

#include <tenet/ops/broadcast.hpp>

#include "ops/op_cases.hpp"

namespace tenet {
namespace {

using test::check;

template <class T>
std::vector<T> values(const Tensor<T>& x) {
  return x.to_vector();
}

const auto same = [](const test::Tensors& x) { return x[0]; };

TEST(Copy, Clone) {
  check({.name = "clone",
         .f = [](const auto& x) { return clone(x[0]); },
         .inputs = {{{2, 3, 4}}},
         .reference = same,
         .shapes = test::unary_shapes()});
  const auto x = ones<float>({2});
  const auto y = x.clone();
  y.data()[0] = 7;
  EXPECT_EQ(values(x), (std::vector<float>{1, 1}));
}

TEST(Copy, Contiguous) {
  check({.name = "contiguous",
         .f = [](const auto& x) { return contiguous(x[0]) * 1; },
         .inputs = {{{2, 3, 4}}},
         .reference = same,
         .shapes = test::unary_shapes()});
  const auto x = arange<float>(6);
  EXPECT_TRUE(contiguous(x).is(x));
  const auto strided = arrange(x, test::Layout::stepped);
  EXPECT_TRUE(contiguous(strided).is_contiguous());
  EXPECT_EQ(values(contiguous(strided)), values(x));
}

TEST(Copy, Detach) {
  auto x = ones<float>({2}).requires_grad_();
  const auto y = x.detach();
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(y.data_ptr(), x.data_ptr());
}

TEST(Convert, ToFloatingTypes) {
  check({.name = "to",
         .f = [](const test::Tensors& x) { return to<double>(to<float>(x[0]) * 2.f); },
         .inputs = {{{2, 3}}},
         .once = false});
  auto x = from_vector<double>({1, 2}).requires_grad_();
  to<float>(x).backward(from_vector<float>({3, 4}));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{3, 4}));
  EXPECT_TRUE(to<double>(x).is(x));
  EXPECT_FALSE(to<std::int64_t>(x).requires_grad());
}

// The edges of half and bfloat16, to the nearest and to even.
TEST(Convert, RoundsToTheNearest) {
  const auto h = [](float v) { return float(to<half>(scalar(v)).item()); };
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(h(65519.99f), 65504.f);
  EXPECT_EQ(h(65520.f), inf);
  EXPECT_EQ(h(0x1p-25f), 0.f);
  EXPECT_EQ(h(0x1.000002p-25f), 0x1p-24f);
  EXPECT_EQ(h(2049.f), 2048.f);
  EXPECT_EQ(h(2051.f), 2052.f);
  const auto b = [](std::uint32_t bits) {
    return std::bit_cast<std::uint16_t>(to<bfloat16>(scalar(std::bit_cast<float>(bits))).item());
  };
  EXPECT_EQ(b(0x3F808000), 0x3F80);
  EXPECT_EQ(b(0x3F818000), 0x3F82);
  EXPECT_EQ(b(0x3F808001), 0x3F81);
  EXPECT_EQ(b(0x3E89CCD5), 0x3E8A);
  EXPECT_EQ(b(0x7F7FFFFF), 0x7F80);
  EXPECT_EQ(b(0x80000000), 0x8000);
  EXPECT_EQ(b(0x00018000), 0x0002);
  for (const std::uint32_t nan : {0x7F800001u, 0xFF800001u, 0x7FFFFFFFu}) {
    EXPECT_TRUE(std::isnan(float(std::bit_cast<bfloat16>(b(nan))))) << nan;
  }
}

TEST(Convert, ToIntegersAndBool) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const auto x = from_vector<float>({1.9f, -1.9f, 300, -300, nan, inf, -inf});
  EXPECT_EQ(values(to<std::int8_t>(x)), (std::vector<std::int8_t>{1, -1, 127, -128, 0, 127, -128}));
  EXPECT_EQ(values(to<std::uint8_t>(x)), (std::vector<std::uint8_t>{1, 0, 255, 0, 0, 255, 0}));
  constexpr auto most = std::numeric_limits<std::int64_t>::max(), least = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(values(to<std::int64_t>(x)), (std::vector<std::int64_t>{1, -1, 300, -300, 0, most, least}));
  EXPECT_EQ(values(to<bool>(from_vector<float>({0, -0.f, 0.5f, nan}))), (std::vector<bool>{false, false, true, true}));
  EXPECT_EQ(values(to<double>(from_vector<bool>({true, false}))), (std::vector<double>{1, 0}));
}

TEST(Broadcast, Expand) {
  check({.name = "expand",
         .f =
             [](const auto& x) {
               return expand(x[0], {4, 2, 3}) * 1;
             },
         .inputs = {{{2, 1}}},
         .reference =
             [](const test::Tensors& x) {
               return x[0] * ones<double>({4, 2, 3});
             },
         .shapes = {{{}}, {{1}}, {{3}}, {{4, 2, 3}}}});
  const auto x = ones<float>({2, 1});
  EXPECT_EQ(expand(x, {-1, 3}).shape(), Shape({2, 3}));
  EXPECT_EQ(expand(x, {2, 0}).shape(), Shape({2, 0}));
  EXPECT_EQ(expand(x, {2, 3}).data_ptr(), x.data_ptr());
  EXPECT_THROW(expand(x, {3, 1}), ShapeError);
  EXPECT_THROW(expand(x, {2}), ShapeError);
  EXPECT_THROW(expand(x, {-1, 2, 3}), ShapeError);
}

TEST(Broadcast, SumTo) {
  check({.name = "sum_to",
         .f =
             [](const auto& x) {
               return sum_to(x[0], {2, 1}) * 1;
             },
         .inputs = {{{3, 2, 4}}},
         .shapes = {{{2, 3}}, {{2, 1}}, {{1, 2, 1}}, {{0, 2, 3}}}});
  const auto x = from_vector<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(values(sum_to(x, {1, 3})), (std::vector<float>{5, 7, 9}));
  EXPECT_EQ(values(sum_to(x, {2, 1})), (std::vector<float>{6, 15}));
  EXPECT_EQ(values(sum_to(x, {})), (std::vector<float>{21}));
  EXPECT_EQ(values(sum_to(empty<float>({0, 2}), {2})), (std::vector<float>{0, 0}));
  EXPECT_THROW(sum_to(x, {2, 2}), ShapeError);
}

}  // namespace
}  // namespace tenet
