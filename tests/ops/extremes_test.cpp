#include <tenet/ops/extremes.hpp>
#include <tenet/ops/unary.hpp>

#include "ops/op_cases.hpp"
#include "ops/reduced.hpp"

namespace tenet {
namespace {

using test::check;
using test::Elements;
using test::over;

using Floats = std::vector<float>;
using Places = std::vector<std::int64_t>;
const float nan = std::nanf("");
constexpr float infinity = std::numeric_limits<float>::infinity();

const std::vector<std::vector<Shape>> any_rank{{{}}, {{1}}, {{1, 1, 1}}, {{3, 4, 5}}, {{2, 1, 3, 2}}};
const std::vector<std::vector<Shape>> matrices{{{1, 1}}, {{7, 3}}, {{2, 3, 4}}};

double greatest(const Elements& x) { return *std::max_element(x.begin(), x.end()); }
double least(const Elements& x) { return *std::min_element(x.begin(), x.end()); }

template <class F>
void check_reduction(const std::string& name, F f, double (*reference)(const Elements&)) {
  for (const bool keepdim : {false, true}) {
    for (const Dims& dims : {Dims{}, Dims{0}, Dims{1}, Dims{-1, 0}}) {
      check({.name = name + " over " + dims.str() + (keepdim ? ", kept" : ""),
             .f = [=](const auto& x) { return f(x[0], dims, keepdim); },
             .inputs = {{{3, 4}}},
             .reference = over(dims, keepdim, reference),
             .shapes = dims.empty() ? any_rank : matrices});
    }
  }
}

TEST(Extremes, CasesOfAmaxAndAmin) {
  check_reduction(
      "amax", [](const auto& x, const Dims& d, bool k) { return amax(x, d, k); }, greatest);
  check_reduction(
      "amin", [](const auto& x, const Dims& d, bool k) { return amin(x, d, k); }, least);
}

TEST(Extremes, CasesOfMaxAndMinAlongADimension) {
  for (const std::int64_t dim : {0, 1, -1, -2}) {
    for (const bool keepdim : {false, true}) {
      const auto which = " along " + std::to_string(dim) + (keepdim ? ", kept" : "");
      check({.name = "max" + which,
             .f = [=](const auto& x) { return max(x[0], dim, keepdim).values; },
             .inputs = {{{3, 4}}},
             .reference = over({dim}, keepdim, greatest),
             .shapes = matrices});
      check({.name = "min" + which,
             .f = [=](const auto& x) { return min(x[0], dim, keepdim).values; },
             .inputs = {{{3, 4}}},
             .reference = over({dim}, keepdim, least),
             .shapes = matrices});
    }
  }
}

TEST(Extremes, PlacesAreTheFirstInRowMajorOrder) {
  const auto x = from_vector<float>({1, 5, 2, 5, 0, 5, 0, 0}, {2, 4});
  EXPECT_EQ(argmax(x).item(), 1);
  EXPECT_EQ(argmin(x).item(), 4);
  EXPECT_EQ(argmax(x, 1).to_vector(), (Places{1, 1}));
  EXPECT_EQ(argmax(x, 0, true).shape(), (Shape{1, 4}));
  EXPECT_EQ(argmax(x, 0).to_vector(), (Places{0, 0, 0, 0}));
  EXPECT_EQ(argmin(x, -1).to_vector(), (Places{0, 0}));
  EXPECT_EQ(x.argmax(1).to_vector(), (Places{1, 1}));
  EXPECT_EQ(x.argmin(0).to_vector(), (Places{1, 0, 1, 1}));
  const auto best = max(x, 1);
  EXPECT_EQ(best.values.to_vector(), (Floats{5, 5}));
  EXPECT_EQ(best.indices.to_vector(), (Places{1, 1}));
  const auto worst = min(x, 0, true);
  EXPECT_EQ(worst.values.shape(), (Shape{1, 4}));
  EXPECT_EQ(worst.indices.shape(), (Shape{1, 4}));
  EXPECT_EQ(worst.values.to_vector(), (Floats{0, 5, 0, 0}));
  EXPECT_EQ(argmax(test::arrange(x, test::Layout::reversed)).item(), 1);
  EXPECT_EQ(argmax(transpose(x, 0, 1)).item(), 2);  // [1, 0, 5, 5, ...]
  EXPECT_EQ(max(scalar(3.f), 0).values.item(), 3);
  EXPECT_EQ(max(scalar(3.f), -1).indices.item(), 0);
}

TEST(Extremes, NanWins) {
  EXPECT_TRUE(std::isnan(max(from_vector<float>({1, nan, 1}, {3})).item()));
  EXPECT_TRUE(std::isnan(min(from_vector<float>({nan, 1, 1}, {3})).item()));
  const auto x = from_vector<float>({1, nan, 3, nan, 7, 8}, {2, 3});
  EXPECT_EQ(argmax(x).item(), 1);
  EXPECT_EQ(argmin(x, 1).to_vector(), (Places{1, 0}));
  const auto best = max(x, 1);
  EXPECT_TRUE(std::isnan(best.values(0)));
  EXPECT_TRUE(std::isnan(amax(x, {1})(1)));
  EXPECT_EQ(best.indices.to_vector(), (Places{1, 0}));
  // A NaN hides anywhere in a long row.
  for (const std::int64_t at : {0, 63, 64, 4095, 4096, 9998}) {
    const Tensor<float> row = ones({9999});
    row.data()[at] = nan;
    EXPECT_TRUE(std::isnan(amax(row).item())) << at;
    EXPECT_EQ(argmin(row).item(), at);
  }
  // Its gradient goes to the NaN.
  const auto leaf = from_vector<float>({1, nan, 3}, {3}).requires_grad_();
  max(leaf).backward();
  EXPECT_EQ(leaf.grad().to_vector(), (Floats{0, 1, 0}));
}

TEST(Extremes, EqualOnesShareTheGradient) {
  const auto gradient = [](const Floats& values, auto f) {
    const auto x = from_vector(values, {std::int64_t(values.size())}).requires_grad_();
    f(x).backward();
    return x.grad().to_vector();
  };
  EXPECT_EQ(gradient({2, 2, 1}, [](const auto& x) { return max(x); }), (Floats{0.5f, 0.5f, 0}));
  EXPECT_EQ(gradient({2, 1, 1}, [](const auto& x) { return min(x); }), (Floats{0, 0.5f, 0.5f}));
  EXPECT_EQ(gradient({2, 2, 1}, [](const auto& x) { return amax(x, {0}); }), (Floats{0.5f, 0.5f, 0}));
  EXPECT_EQ(gradient({2, 2, 1}, [](const auto& x) { return max(x, 0).values; }), (Floats{1, 0, 0}));
  EXPECT_EQ(gradient({-infinity, -infinity}, [](const auto& x) { return max(x); }), (Floats{0.5f, 0.5f}));
  const auto x = from_vector<float>({3, 3, 1, 0, 4, 4}, {2, 3}).requires_grad_();
  amax(x, {1}, true).backward(from_vector<float>({10, 20}, {2, 1}));
  EXPECT_EQ(x.grad().to_vector(), (Floats{5, 5, 0, 0, 10, 10}));
}

TEST(Extremes, ManyHalvesShareTheGradientToo) {
  const auto x = full<half>({70000}, half(1.f)).requires_grad_();
  amax(x).backward(full<half>({}, half(70.f)));
  EXPECT_EQ(float(x.grad()(0)), float(half(0.001f)));
}

TEST(Extremes, NothingToChooseFromIsAnError) {
  const auto message = [](auto f) {
    try {
      f();
    } catch (const ShapeError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(message([] { max(zeros({0})); }), "amax: expected elements to reduce, got shape [0]");
  EXPECT_EQ(message([] { argmin(zeros({2, 0}), 1); }), "argmin: expected elements to reduce, got shape [2, 0]");
  EXPECT_THROW(max(zeros({0, 3}), 0), ShapeError);
  EXPECT_THROW(amin(zeros({2, 0})), ShapeError);
  EXPECT_THROW(argmax(zeros({2, 3}), 2), IndexError);
  EXPECT_EQ(max(zeros({0, 3}), 1).values.shape(), (Shape{0}));
  EXPECT_EQ(amax(zeros({2, 0}), {0}).shape(), (Shape{0}));
}

TEST(Extremes, OfEveryType) {
  EXPECT_EQ(max(from_vector<std::int32_t>({-5, 7, 2}, {3})).item(), 7);
  EXPECT_EQ(min(from_vector<std::uint8_t>({200, 7, 255}, {3})).item(), 7);
  EXPECT_EQ(max(from_vector<std::int64_t>({-5, std::int64_t(1) << 60, 2}, {3}), 0).indices.item(), 1);
  EXPECT_EQ(float(max(from_vector<half>({half(-5), half(7), half(2)}, {3}), 0).values.item()), 7);
  EXPECT_EQ(argmin(from_vector<bfloat16>({bfloat16(-5), bfloat16(-7)}, {2})).item(), 1);
  EXPECT_TRUE(max(from_vector<bool>({false, true}, {2})).item());
  const auto x = from_vector<half>({half(3), half(3), half(1)}, {3}).requires_grad_();
  max(x).backward();
  EXPECT_EQ(float(x.grad()(1)), 0.5f);
}

TEST(Extremes, AreTheSameForAnyNumberOfThreads) {
  for (const std::int64_t n : {32767, 32768, 32769, 100001}) {
    const Tensor<float> x = empty({n});
    for (std::int64_t i = 0; i < n; ++i) x.data()[i] = float(i * 7919 % 1013);
    EXPECT_TRUE(test::same_for_any_threads([&] { return amax(x); })) << n;
    EXPECT_TRUE(test::same_for_any_threads([&] { return argmax(x); })) << n;
    EXPECT_EQ(argmin(x).item(), 0);
  }
}

}  // namespace
}  // namespace tenet
