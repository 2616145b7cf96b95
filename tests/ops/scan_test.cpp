#include <tenet/ops/scan.hpp>

#include "ops/op_cases.hpp"
#include "ops/reduced.hpp"

namespace tenet {
namespace {

using test::check;

/// The reference that carries f(value so far, element) along `dim`.
auto scan(std::int64_t dim, double start, double (*f)(double, double)) {
  return [=](const test::Tensors& x) {
    const Shape& shape = x[0].shape();
    Tensor<double> y = from_vector(x[0].to_vector(), shape);
    const int d = wrap_dim("reference", dim, shape.size());
    const std::int64_t n = shape.empty() ? 1 : shape[d];
    std::int64_t step = 1;
    for (int k = d + 1; k < shape.size(); ++k) step *= shape[k];
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      const double before = i / step % n == 0 ? start : y.data()[i - step];
      y.data()[i] = f(before, y.data()[i]);
    }
    return y;
  };
}

TEST(Scan, Cases) {
  for (const std::int64_t dim : {0, 1, -1}) {
    const std::vector<std::vector<Shape>> shapes{{{1, 1}}, {{0, 3}}, {{2, 0}}, {{7, 3}}, {{2, 9, 2}}, {{3, 8}}};
    check({.name = "cumsum along " + std::to_string(dim),
           .f = [=](const auto& x) { return cumsum(x[0], dim); },
           .inputs = {{{3, 5}}},
           .reference = scan(dim, 0, [](double a, double b) { return a + b; }),
           .shapes = shapes});
    check({.name = "cumprod along " + std::to_string(dim),
           .f = [=](const auto& x) { return cumprod(x[0], dim); },
           .inputs = {{{3, 5}}},
           .reference = scan(dim, 1, [](double a, double b) { return a * b; }),
           .shapes = shapes});
  }
  check({.name = "cumsum of a scalar", .f = [](const auto& x) { return cumsum(x[0], 0); }, .inputs = {{{}}}});
  check({.name = "cumprod of a scalar", .f = [](const auto& x) { return cumprod(x[0], -1); }, .inputs = {{{}}}});
}

TEST(Scan, OfEveryType) {
  EXPECT_EQ(cumsum(from_vector<std::int8_t>({100, 100, 100}, {3}), 0).to_vector(),
            (std::vector<std::int64_t>{100, 200, 300}));
  EXPECT_EQ(cumsum(from_vector<bool>({true, false, true}, {3}), 0).to_vector(), (std::vector<std::int64_t>{1, 1, 2}));
  EXPECT_EQ(cumprod(from_vector<std::int32_t>({2, 3, -4}, {3}), 0).to_vector(), (std::vector<std::int64_t>{2, 6, -24}));
  EXPECT_EQ(float(cumsum(full<bfloat16>({1000}, bfloat16(1)), 0)(999)), 1000);
  EXPECT_EQ(float(cumsum(full<half>({2048, 2}, half(0.5f)), 0)(2047, 1)), 1024);
}

TEST(Scan, CumprodHasTheRightGradientAtZeros) {
  const auto x = from_vector<double>({2, 0, 3, 5}, {4}).requires_grad_();
  sum(cumprod(x, 0)).backward();
  EXPECT_EQ(x.grad().to_vector(), (std::vector<double>{1, 2 + 6 + 30, 0, 0}));
}

TEST(Scan, WrongDimensionsAreErrors) {
  EXPECT_THROW(cumsum(ones({2}), 1), IndexError);
  EXPECT_THROW(cumprod(ones({2, 3}), -3), IndexError);
}

TEST(Scan, IsTheSameForAnyNumberOfThreads) {
  for (const std::int64_t n : {511, 512, 513}) {
    const Tensor<float> x = empty({n, 65});
    for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] = std::sin(float(i));
    EXPECT_TRUE(test::same_for_any_threads([&] { return cumsum(x, 0); })) << n;
    EXPECT_TRUE(test::same_for_any_threads([&] { return cumsum(x, 1); })) << n;
  }
}

}  // namespace
}  // namespace tenet
