#include <tenet/ops/softmax.hpp>

#include "ops/op_cases.hpp"
#include "ops/reduced.hpp"

namespace tenet {
namespace {

using test::check;

using Floats = std::vector<float>;
constexpr float infinity = std::numeric_limits<float>::infinity();
const float nan = std::nanf("");

const std::vector<std::vector<Shape>> shapes{{{1, 1}}, {{0, 3}}, {{2, 0}}, {{3, 20}}, {{2, 3, 4}}, {{2, 3, 1, 5}}};

void expect_floats(const Tensor<float>& x, const Floats& want, float tolerance = 1e-6f) {
  const Floats got = x.to_vector();
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(test::near(got[i], want[i], tolerance)) << i << ": " << got[i] << " instead of " << want[i];
  }
}

TEST(Softmax, CasesAgainstTheDefinition) {
  for (const std::int64_t dim : {0, 1, -1, -2}) {
    const auto sums = [=](const test::Tensors& x) {
      return test::over({dim}, true, [](const test::Elements& e) {
        double s = 0;
        for (double v : e) s += std::exp(v);
        return s;
      })(x);
    };
    const auto divided = [=](double (*f)(double x, double sum)) {
      return [=](const test::Tensors& x) { return test::elementwise(f)({x[0], sums(x)}); };
    };
    check({.name = "softmax along " + std::to_string(dim),
           .f = [=](const auto& x) { return softmax(x[0], dim); },
           .inputs = {{{3, 5}}},
           .reference = divided([](double x, double sum) { return std::exp(x) / sum; }),
           .shapes = shapes});
    check({.name = "log_softmax along " + std::to_string(dim),
           .f = [=](const auto& x) { return log_softmax(x[0], dim); },
           .inputs = {{{3, 5}}},
           .reference = divided([](double x, double sum) { return x - std::log(sum); }),
           .shapes = shapes});
  }
  for (const bool keepdim : {false, true}) {
    for (const Dims& dims : {Dims{}, Dims{0}, Dims{-1}, Dims{0, 1}}) {
      check({.name = "logsumexp over " + dims.str() + (keepdim ? ", kept" : ""),
             .f = [=](const auto& x) { return logsumexp(x[0], dims, keepdim); },
             .inputs = {{{3, 5}}},
             .reference = test::over(dims, keepdim,
                                     [](const test::Elements& e) {
                                       double s = 0;
                                       for (double v : e) s += std::exp(v);
                                       return std::log(s);
                                     }),
             .shapes = {{{1, 1}}, {{3, 20}}, {{2, 3, 4}}, {{2, 3, 1, 5}}}});
    }
  }
}

TEST(Softmax, CasesAgainstPyTorch) {
  for (const std::int64_t dim : {0, 1, 2}) {
    const auto of = [=](const char* name) { return name + ("_" + std::to_string(dim)); };
    check({.name = of("softmax"), .f = [=](const auto& x) { return softmax(x[0], dim); }, .file = "loss.txt"});
    check({.name = of("log_softmax"), .f = [=](const auto& x) { return log_softmax(x[0], dim); }, .file = "loss.txt"});
    check({.name = of("logsumexp"), .f = [=](const auto& x) { return logsumexp(x[0], {dim}); }, .file = "loss.txt"});
  }
  check({.name = "logsumexp_0_2_kept",
         .f =
             [](const auto& x) {
               return logsumexp(x[0], {0, 2}, true);
             },
         .file = "loss.txt"});
}

TEST(Softmax, OfInfinities) {
  const auto row = [](Floats x) { return from_vector(x, {std::int64_t(x.size())}); };
  expect_floats(softmax(row({-infinity, 0}), 0), {0, 1});
  expect_floats(log_softmax(row({-infinity, 0}), 0), {-infinity, 0});
  for (const Floats& x : {Floats{-infinity, -infinity}, Floats{infinity, 0}, Floats{nan, 0}, Floats{0, 1, nan}}) {
    for (float y : softmax(row(x), 0).to_vector()) EXPECT_TRUE(std::isnan(y));
    for (float y : log_softmax(row(x), 0).to_vector()) EXPECT_TRUE(std::isnan(y));
  }
  expect_floats(log_softmax(row({1000, 1001, 1002}), 0), {-2.407606f, -1.407606f, -0.407606f});
  expect_floats(softmax(row({88, 89, 1e30f}), 0), {0, 0, 1});
  // A NaN stays in its row.
  expect_floats(softmax(from_vector<float>({nan, 0, 0, 0}, {2, 2}), 1), {nan, nan, 0.5f, 0.5f});
}

TEST(Softmax, LogsumexpOfInfinities) {
  const auto of = [](Floats x) { return logsumexp(from_vector(x, {std::int64_t(x.size())}), {0}).item(); };
  EXPECT_EQ(of({-infinity, -infinity}), -infinity);
  EXPECT_EQ(of({infinity, 0}), infinity);
  EXPECT_EQ(of({-infinity, 0}), 0);
  EXPECT_TRUE(std::isnan(of({nan, 0})));
  EXPECT_EQ(of({}), -infinity);
  const float n = -infinity;
  expect_floats(logsumexp(from_vector<float>({-15, -10, n, n, n, n, n, n, n}, {3, 3}), {0}), {-15, -10, n});
  expect_floats(logsumexp(zeros({2, 0}), {1}), {n, n});
  const auto x = from_vector<float>({n, n, n, 0}, {2, 2}).requires_grad_();
  sum(logsumexp(x, {1})).backward();
  expect_floats(x.grad(), {0, 0, 0, 1});
}

TEST(Softmax, OfScalarsAndHalves) {
  EXPECT_EQ(softmax(scalar(3.f), 0).item(), 1);
  EXPECT_EQ(log_softmax(scalar(3.f), -1).item(), 0);
  EXPECT_EQ(logsumexp(scalar(3.f)).item(), 3);
  const Tensor<half> x = from_vector<half>({half(1), half(2), half(60000)}, {3}).requires_grad_();
  const Tensor<half> y = softmax(x, 0);
  EXPECT_EQ(float(y(2)), 1);
  sum(y).backward();
  EXPECT_EQ(float(x.grad()(2)), 0);
  const Tensor<bfloat16> many = softmax(zeros<bfloat16>({1024}), 0);
  EXPECT_EQ(float(many(1023)), 1.f / 1024);
  EXPECT_EQ(float(logsumexp(zeros<half>({1024})).item()), float(half(std::log(1024.f))));
}

TEST(Softmax, WrongDimensionsAreErrors) {
  EXPECT_THROW(softmax(ones({2}), 1), IndexError);
  EXPECT_THROW(log_softmax(ones({2, 3}), -3), IndexError);
  EXPECT_THROW(logsumexp(ones({2, 3}), {0, 0}), IndexError);
}

TEST(Softmax, IsTheSameForAnyNumberOfThreads) {
  for (const std::int64_t rows : {327, 328, 329, 1000}) {
    const Tensor<float> x = empty({rows, 100});
    for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] = 5 * std::sin(float(i * i % 1009));
    for (const std::int64_t dim : {0, 1}) {
      EXPECT_TRUE(test::same_for_any_threads([&] { return softmax(x, dim); })) << rows;
      EXPECT_TRUE(test::same_for_any_threads([&] { return log_softmax(x, dim); })) << rows;
      EXPECT_TRUE(test::same_for_any_threads([&] { return logsumexp(x, {dim}); })) << rows;
      EXPECT_TRUE(test::same_for_any_threads([&] {
        const Tensor<float> leaf = x.clone().requires_grad_();
        sum(softmax(leaf, dim) * x).backward();
        return leaf.grad();
      }));
    }
  }
}

}  // namespace
}  // namespace tenet
