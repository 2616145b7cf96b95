#include <tenet/ops/arithmetic.hpp>

#include "ops/op_cases.hpp"

namespace tenet {
namespace {

using test::check;
using test::elementwise;

template <class T>
std::vector<T> values(const Tensor<T>& x) {
  return x.to_vector();
}

template <class F, class R>
void check_binary(const char* name, F f, R reference, double low = -2) {
  check({.name = name,
         .f = [f](const auto& x) { return f(x[0], x[1]); },
         .inputs = {{{2, 3}}, {{2, 3}, low}},
         .reference = elementwise(reference),
         .shapes = test::binary_shapes()});
}

TEST(Arithmetic, OfTensors) {
  check_binary(
      "add", [](const auto& a, const auto& b) { return a + b; }, [](double a, double b) { return a + b; });
  check_binary(
      "sub", [](const auto& a, const auto& b) { return a - b; }, [](double a, double b) { return a - b; });
  check_binary(
      "mul", [](const auto& a, const auto& b) { return a * b; }, [](double a, double b) { return a * b; });
  check_binary(
      "div", [](const auto& a, const auto& b) { return a / b; }, [](double a, double b) { return a / b; }, 0.5);
  check({.name = "neg",
         .f = [](const auto& x) { return -x[0]; },
         .inputs = {{{2, 3}}},
         .reference = elementwise([](double x) { return -x; }),
         .shapes = test::unary_shapes()});
}

TEST(Arithmetic, WithNumbers) {
  const auto x = from_vector<float>({1, -2});
  EXPECT_EQ(values(x + 1), (std::vector<float>{2, -1}));
  EXPECT_EQ(values(1.5 + x), (std::vector<float>{2.5, -0.5}));
  EXPECT_EQ(values(x - 1), (std::vector<float>{0, -3}));
  EXPECT_EQ(values(1 - x), (std::vector<float>{0, 3}));
  EXPECT_EQ(values(x * 3), (std::vector<float>{3, -6}));
  EXPECT_EQ(values(3 * x), (std::vector<float>{3, -6}));
  EXPECT_EQ(values(x / 2), (std::vector<float>{0.5, -1}));
  EXPECT_EQ(values(2 / x), (std::vector<float>{2, -1}));
  EXPECT_EQ(values(from_vector<std::int64_t>({1, 2}) * 3), (std::vector<std::int64_t>{3, 6}));
}

TEST(Arithmetic, IntegersWrapAround) {
  constexpr auto most = std::numeric_limits<std::int32_t>::max(), least = std::numeric_limits<std::int32_t>::min();
  const auto x = from_vector<std::int32_t>({most, least});
  EXPECT_EQ(values(x + 1), (std::vector<std::int32_t>{least, least + 1}));
  EXPECT_EQ(values(x - 1), (std::vector<std::int32_t>{most - 1, most}));
  EXPECT_EQ(values(x * 2), (std::vector<std::int32_t>{-2, 0}));
  EXPECT_EQ(values(-x), (std::vector<std::int32_t>{-most, least}));
  EXPECT_EQ(values(from_vector<std::uint8_t>({200}) + from_vector<std::uint8_t>({100})),
            (std::vector<std::uint8_t>{44}));
  EXPECT_EQ(values(from_vector<std::int64_t>({std::numeric_limits<std::int64_t>::max()}) + 1),
            (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min()}));
}

// Half precision computes in float and rounds once.
TEST(Arithmetic, HalfPrecision) {
  const auto h = from_vector<half>({half(2048.f), half(65504.f)});
  EXPECT_EQ(values(h * half(0.5f)), (std::vector<half>{half(1024.f), half(32752.f)}));
  EXPECT_EQ(values(bfloat16(1.f) / full<bfloat16>({1}, bfloat16(4.f))), (std::vector<bfloat16>{bfloat16(0.25f)}));
  EXPECT_EQ(values(h + h), (std::vector<half>{half(4096.f), half(std::numeric_limits<float>::infinity())}));
  EXPECT_EQ(float(values(h + 1)[0]), 2048.f);
  EXPECT_EQ(float(values(h + 3)[0]), 2052.f);  // 2051 is between 2050 and 2052: to even
  const auto b = from_vector<bfloat16>({bfloat16(256.f)});
  EXPECT_EQ(float(values(b + 1)[0]), 256.f);
  EXPECT_EQ(float(values(b * 3)[0]), 768.f);
}

TEST(Arithmetic, ShapesMustBroadcast) {
  const auto a = ones<float>({2, 3}), b = ones<float>({2});
  for (const auto f :
       {add<const Tensor<float>&, const Tensor<float>&>, mul<const Tensor<float>&, const Tensor<float>&>}) {
    EXPECT_THROW(f(a, b), ShapeError);
  }
  EXPECT_THROW(a - ones<float>({3, 3}), ShapeError);
  EXPECT_THROW(a + Tensor<float>(), Error);
}

}  // namespace
}  // namespace tenet
