#include <tenet/ops/statistics.hpp>

#include "ops/op_cases.hpp"
#include "ops/reduced.hpp"

namespace tenet {
namespace {

using test::check;
using test::Elements;
using test::over;

using Floats = std::vector<float>;
constexpr double infinity = std::numeric_limits<double>::infinity();

double variance(const Elements& x, double correction) {
  double mean = 0, sum = 0;
  for (double v : x) mean += v / double(x.size());
  for (double v : x) sum += (v - mean) * (v - mean);
  return sum / (double(x.size()) - correction);
}

double p_norm(const Elements& x, double p) {
  double sum = 0, most = 0, least = infinity;
  for (double v : x) {
    sum += std::pow(std::abs(v), p);
    most = std::max(most, std::abs(v));
    least = std::min(least, std::abs(v));
  }
  return p == infinity ? most : p == -infinity ? least : std::pow(sum, 1 / p);
}

template <class F>
void check_reduction(const std::string& name, F f, std::function<double(const Elements&)> reference) {
  for (const bool keepdim : {false, true}) {
    for (const Dims& dims : {Dims{}, Dims{0}, Dims{1}, Dims{-1, 0}}) {
      check({.name = name + " over " + dims.str() + (keepdim ? ", kept" : ""),
             .f = [=](const auto& x) { return f(x[0], dims, keepdim); },
             .inputs = {{{3, 4}, -2, 2, {0}}},
             .reference = over(dims, keepdim, reference),
             .shapes = {{{7, 3}}, {{2, 3, 4}}, {{4, 2, 2}}}});
    }
  }
}

TEST(Statistics, CasesOfVarAndStd) {
  for (const double c : {1.0, 0.0, 0.5}) {
    const auto with = " with correction " + std::to_string(c);
    check_reduction(
        "var" + with, [=](const auto& x, const Dims& d, bool k) { return var(x, d, k, c); },
        [=](const Elements& x) { return variance(x, c); });
    check_reduction(
        "std" + with, [=](const auto& x, const Dims& d, bool k) { return tenet::std(x, d, k, c); },
        [=](const Elements& x) { return std::sqrt(variance(x, c)); });
  }
}

TEST(Statistics, CasesOfNorms) {
  for (const double p : {2.0, 1.0, 3.0, 1.5, 0.5, -1.0, infinity, -infinity}) {
    check_reduction(
        "norm of order " + std::to_string(p), [=](const auto& x, const Dims& d, bool k) { return norm(x, p, d, k); },
        [=](const Elements& x) { return p_norm(x, p); });
  }
}

TEST(Statistics, DefaultsArePyTorchs) {
  const auto x = from_vector<float>({3, 4, 0, 0, 5, 12}, {2, 3});
  EXPECT_FLOAT_EQ(norm(x, 2, {1})(1), 13);
  EXPECT_FLOAT_EQ(norm(x).item(), std::sqrt(194.f));
  EXPECT_EQ(norm(x, 0).item(), 4);
  EXPECT_EQ(norm(x, 0, {1}, true).to_vector(), (Floats{2, 2}));
  EXPECT_FLOAT_EQ(var(from_vector<float>({1, 2, 3, 4}, {4})).item(), 5.f / 3);
  EXPECT_TRUE(std::isnan(var(ones({1})).item()));
  EXPECT_EQ(var(ones({1}), {}, false, 0).item(), 0);
  EXPECT_TRUE(std::isnan(var(ones({0})).item()));
  EXPECT_EQ(norm(zeros({0})).item(), 0);
  EXPECT_EQ(norm(zeros({0}), 1).item(), 0);
}

TEST(Statistics, GradientsAtZeroAreZero) {
  const auto gradient = [](const Floats& values, auto f) {
    const auto x = from_vector(values, {std::int64_t(values.size())}).requires_grad_();
    f(x).backward();
    return x.grad().to_vector();
  };
  for (const double p : {2.0, 1.0, 3.0, 1.5, 0.5, infinity, -infinity}) {
    EXPECT_EQ(gradient({0, 0}, [=](const auto& x) { return norm(x, p); }), (Floats{0, 0})) << p;
  }
  EXPECT_EQ(gradient({2, 2, 2}, [](const auto& x) { return tenet::std(x); }), (Floats{0, 0, 0}));
  EXPECT_EQ(gradient({2, 2, 2}, [](const auto& x) { return var(x); }), (Floats{0, 0, 0}));
  EXPECT_EQ(gradient({0, -3, 2}, [](const auto& x) { return norm(x, 1); }), (Floats{0, -1, 1}));
  EXPECT_EQ(gradient({3, 0, 4}, [](const auto& x) { return norm(x); }), (Floats{0.6f, 0, 0.8f}));
  EXPECT_EQ(gradient({3, -3, 1}, [](const auto& x) { return norm(x, infinity); }), (Floats{0.5f, -0.5f, 0}));
  // One row at zero leaves the others alone.
  const auto x = from_vector<float>({0, 0, 3, 4}, {2, 2}).requires_grad_();
  sum(norm(x, 2, {1})).backward();
  EXPECT_EQ(x.grad().to_vector(), (Floats{0, 0, 0.6f, 0.8f}));
  // The chain of plain operations has 0 / 0 there.
  for (float g : gradient({0, 0}, [](const auto& y) { return sqrt(sum(square(y))); })) EXPECT_TRUE(std::isnan(g));
}

TEST(Statistics, OfHalvesAreAccumulatedInFloat) {
  const auto x = from_vector<half>({half(300), half(-300), half(300), half(-300)}, {4});
  EXPECT_EQ(float(tenet::std(x, {}, false, 0).item()), 300);
  EXPECT_EQ(float(norm(x).item()), 600);
  EXPECT_EQ(float(norm(x, 4, {}).item()), float(half(300 * std::sqrt(2.f))));
  EXPECT_EQ(float(norm(full<bfloat16>({1024}, bfloat16(1))).item()), 32);
  EXPECT_NEAR(float(var(full<half>({5000}, half(7))).item()), 0, 1e-6);
}

TEST(Statistics, WrongArgumentsAreErrors) {
  EXPECT_THROW(var(ones({2}), {1}), IndexError);
  EXPECT_THROW(tenet::std(ones({2, 2}), {0, 0}), IndexError);
  EXPECT_THROW(norm(ones({2}), 2, {-2}), IndexError);
  EXPECT_THROW(norm(ones({2}), std::nan("")), Error);
  EXPECT_THROW(norm(zeros({0}), infinity), ShapeError);
}

TEST(Statistics, AreTheSameForAnyNumberOfThreads) {
  for (const std::int64_t n : {32767, 32768, 32769, 100001}) {
    const Tensor<float> x = empty({n});
    for (std::int64_t i = 0; i < n; ++i) x.data()[i] = std::sin(float(i)) * float(1 + i % 1000);
    EXPECT_TRUE(test::same_for_any_threads([&] { return var(x); })) << n;
    EXPECT_TRUE(test::same_for_any_threads([&] { return norm(x); })) << n;
    EXPECT_TRUE(test::same_for_any_threads([&] { return norm(x, 3); })) << n;
  }
}

}  // namespace
}  // namespace tenet
