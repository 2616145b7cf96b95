#include <gtest/gtest.h>
#include <tenet/kernels/cpu/cross_entropy.hpp>
#include <tenet/kernels/cpu/softmax.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace tenet {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
const float nan = std::nanf("");

using Values = std::vector<float>;

int64_t rows_of(const Values& x, int64_t n) { return int64_t(x.size()) / n; }

Values softmax(const Values& x, int64_t n) {
  Values y(x.size());
  cpu::softmax(rows_of(x, n), n, x.data(), y.data());
  return y;
}
Values log_softmax(const Values& x, int64_t n) {
  Values y(x.size());
  cpu::log_softmax(rows_of(x, n), n, x.data(), y.data());
  return y;
}
Values logsumexp(const Values& x, int64_t n) {
  Values y(std::size_t(rows_of(x, n)));
  cpu::logsumexp(rows_of(x, n), n, x.data(), y.data());
  return y;
}

void expect_near(const Values& got, const Values& want, float tolerance = 1e-6f) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i]) || std::isinf(want[i])) {
      EXPECT_TRUE(std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i]) << "element " << i << ": " << got[i];
    } else {
      EXPECT_NEAR(got[i], want[i], tolerance * std::max(1.f, std::abs(want[i]))) << "element " << i;
    }
  }
}

Values logits(int64_t rows, int64_t n) {
  Values x(std::size_t(rows * n));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 3 * std::sin(float(i * i % 101));
  return x;
}

TEST(Softmax, IsRightForAnyRowLength) {
  for (const int64_t n : {1, 2, 10, 15, 16, 17, 32, 100, 1000}) {
    const int64_t rows = n < 100 ? 70 : 3;
    const Values x = logits(rows, n);
    const Values y = softmax(x, n), l = log_softmax(x, n), s = logsumexp(x, n);
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t c = 0; c < n; ++c) sum += std::exp(double(x[std::size_t(r * n + c)]));
      EXPECT_NEAR(s[std::size_t(r)], std::log(sum), 1e-5);
      for (int64_t c = 0; c < n; ++c) {
        const std::size_t i = std::size_t(r * n + c);
        ASSERT_NEAR(y[i], std::exp(double(x[i])) / sum, 1e-6);
        ASSERT_NEAR(l[i], double(x[i]) - std::log(sum), 1e-5);
      }
    }
  }
}

TEST(Softmax, TreatsInfinitiesAndNaN) {
  expect_near(softmax({-infinity, 0}, 2), {0, 1});
  expect_near(log_softmax({-infinity, 0}, 2), {-infinity, 0});
  for (const Values& row : {Values{-infinity, -infinity}, {infinity, 0}, {0, nan}, {nan, infinity}}) {
    expect_near(softmax(row, 2), {nan, nan});
    expect_near(log_softmax(row, 2), {nan, nan});
  }
  expect_near(log_softmax({1000, 1001, 1002}, 3), {-2.4076059f, -1.4076059f, -0.4076059f});
}

TEST(Logsumexp, TreatsInfinitiesAndNaN) {
  expect_near(logsumexp({-infinity, -infinity, infinity, 0, -infinity, 0, nan, 0, infinity, nan}, 2),
              {-infinity, infinity, 0, nan, nan});
  expect_near(logsumexp({-15, -infinity, -infinity, -10, -infinity, -infinity}, 3), {-15, -10});
  expect_near(logsumexp(Values(19, -infinity), 19), {-infinity});
  expect_near(logsumexp({1000, 1000}, 2), {1000.6931f});
  float y[2] = {0, 0};
  cpu::logsumexp(int64_t{2}, int64_t{0}, static_cast<const float*>(nullptr), y);
  EXPECT_EQ(y[1], -infinity);
}

TEST(Logsumexp, HasNoGradientInRowsOfMinusInfinity) {
  const Values x{-infinity, -infinity, 0, 0}, dy{1, 2};
  const Values y = logsumexp(x, 2);
  Values dx(4, 9.f);
  cpu::logsumexp_backward(int64_t{2}, int64_t{2}, x.data(), y.data(), dy.data(), dx.data());
  expect_near(dx, {0, 0, 1, 1});
}

TEST(Softmax, GradientsMatchDifferences) {
  const int64_t rows = 2, n = 19;
  std::vector<double> x(std::size_t(rows * n)), w(x.size()), wr(std::size_t(rows), 0.), y(x.size()), dx(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(double(i)), w[i] = std::cos(double(3 * i));
  for (std::size_t i = 0; i < wr.size(); ++i) wr[i] = double(i) + 0.5;
  const auto check = [&](const auto& value) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double h = 1e-6, at = x[i];
      x[i] = at + h;
      const double up = value();
      x[i] = at - h;
      const double down = value();
      x[i] = at;
      ASSERT_NEAR(dx[i], (up - down) / (2 * h), 1e-8);
    }
  };
  const auto weighted = [&](const std::vector<double>& a, const std::vector<double>& b) {
    double s = 0;
    for (std::size_t i = 0; i < b.size(); ++i) s += a[i] * b[i];
    return s;
  };
  std::vector<double> t(x.size());
  cpu::softmax(rows, n, x.data(), y.data());
  cpu::softmax_backward(rows, n, y.data(), w.data(), dx.data());
  check([&] { return cpu::softmax(rows, n, x.data(), t.data()), weighted(t, w); });
  cpu::log_softmax(rows, n, x.data(), y.data());
  cpu::log_softmax_backward(rows, n, y.data(), w.data(), dx.data());
  check([&] { return cpu::log_softmax(rows, n, x.data(), t.data()), weighted(t, w); });
  cpu::logsumexp(rows, n, x.data(), y.data());
  cpu::logsumexp_backward(rows, n, x.data(), y.data(), wr.data(), dx.data());
  check([&] { return cpu::logsumexp(rows, n, x.data(), t.data()), weighted(t, wr); });
  // Cross-entropy, with everything on.
  const std::vector<int64_t> classes{3, 18};
  cpu::CrossEntropyTargets<double> targets{classes.data(), nullptr, -100, 0.1};
  std::vector<double> weight(std::size_t(n), 0.);
  for (std::size_t c = 0; c < weight.size(); ++c) weight[c] = 1 + 0.1 * double(c);
  for (const double* class_weight : {static_cast<const double*>(nullptr), static_cast<const double*>(weight.data())}) {
    targets.weight = class_weight;
    cpu::cross_entropy_backward(rows, n, x.data(), targets, wr.data(), int64_t{1}, dx.data());
    check([&] { return cpu::cross_entropy(rows, n, x.data(), targets, t.data()), weighted(t, wr); });
  }
}

struct Losses {
  Values loss, dx;
};
Losses cross_entropy(const Values& x, int64_t n, const std::vector<int64_t>& classes, double smoothing = 0,
                     int64_t ignore_index = -100, float dloss = 1) {
  const int64_t rows = rows_of(x, n);
  const cpu::CrossEntropyTargets<float> targets{classes.data(), nullptr, ignore_index, smoothing};
  Losses r{Values(std::size_t(rows)), Values(x.size(), 9.f)};
  EXPECT_EQ(cpu::find_bad_target(rows, n, classes.data(), ignore_index), -1);
  cpu::cross_entropy(rows, n, x.data(), targets, r.loss.data());
  cpu::cross_entropy_backward(rows, n, x.data(), targets, &dloss, int64_t{0}, r.dx.data());
  return r;
}

TEST(CrossEntropy, IsExactForBigLogits) {
  Losses r = cross_entropy({1000, 0}, 2, {1});
  expect_near(r.loss, {1000});
  expect_near(r.dx, {1, -1});
  r = cross_entropy({1000, 0}, 2, {0});
  EXPECT_EQ(r.loss, Values{0});
  EXPECT_EQ(r.dx, (Values{0, 0}));
  expect_near(cross_entropy({-infinity, 0, -infinity, 0}, 2, {1, 0}).loss, {0, infinity});
}

TEST(CrossEntropy, IgnoresRows) {
  const Losses all = cross_entropy({1, 2, 3}, 3, {-100}, 0, -100, nan);
  EXPECT_EQ(all.loss, Values{0});
  EXPECT_EQ(all.dx, (Values{0, 0, 0}));
  const float l = 1.098612f;
  expect_near(cross_entropy(Values(18, 0.f), 3, {0, 1, 255, 0, 1, 2}, 0, 255).loss, {l, l, 0, l, l, l});
  expect_near(cross_entropy({1, 2, 3, 0.4f}, 2, {-100, 1}, 0.1).loss, {0, 2.541645f});
}

TEST(CrossEntropy, SmoothsLabels) {
  expect_near(cross_entropy({2, 1, 0}, 3, {0}).loss, {0.407606f});
  expect_near(cross_entropy({2, 1, 0}, 3, {0}, 0.1).loss, {0.507606f});
}

TEST(CrossEntropy, FindsBadTargets) {
  const std::vector<int64_t> classes{0, -100, 4, 5, -4};
  EXPECT_EQ(cpu::find_bad_target(5, 5, classes.data(), -100), 3);
  EXPECT_EQ(cpu::find_bad_target(5, 6, classes.data(), -100), 4);
  EXPECT_EQ(cpu::find_bad_target(5, 6, classes.data(), -4), 1);
  EXPECT_EQ(cpu::find_bad_target(0, 6, classes.data(), -4), -1);
}

TEST(Softmax, TakesHalves) {
  const Values x = logits(3, 20), y = softmax(x, 20);
  std::vector<half> hx(x.size()), hy(x.size()), loss(3), dx(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) hx[i] = half(x[i]);
  cpu::softmax(int64_t{3}, int64_t{20}, hx.data(), hy.data());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(float(hy[i]), y[i], 2e-3f);
  const std::vector<int64_t> classes{1, 2, 3};
  const cpu::CrossEntropyTargets<half> targets{classes.data()};
  const half one(1.f);
  cpu::cross_entropy(int64_t{3}, int64_t{20}, hx.data(), targets, loss.data());
  cpu::cross_entropy_backward(int64_t{3}, int64_t{20}, hx.data(), targets, &one, int64_t{0}, dx.data());
  for (std::size_t r = 0; r < 3; ++r) {
    EXPECT_NEAR(float(loss[r]), -std::log(y[r * 20 + r + 1]), 1e-2f);
    EXPECT_NEAR(float(dx[r * 20 + r + 1]), y[r * 20 + r + 1] - 1, 2e-3f);
  }
}

TEST(Softmax, GivesTheSameBitsOnEveryInstructionSetAndNumberOfThreads) {
  const int64_t rows = 300, n = 333;
  const Values x = logits(rows, n);
  const cpu::Isa best = cpu::isa();
  const int threads = num_threads();
  std::vector<int64_t> classes(std::size_t(rows), 5);
  Values expected;
  Losses expected_loss;
  for (const cpu::Isa isa : {cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512})
    for (const int t : {1, 2, 3}) {
      cpu::set_isa(isa);
      set_num_threads(t);
      const Values y = softmax(x, n);
      const Losses l = cross_entropy(x, n, classes);
      if (expected.empty()) {
        expected = y;
        expected_loss = l;
      }
      EXPECT_EQ(std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)), 0);
      EXPECT_EQ(std::memcmp(l.loss.data(), expected_loss.loss.data(), l.loss.size() * sizeof(float)), 0);
      EXPECT_EQ(std::memcmp(l.dx.data(), expected_loss.dx.data(), l.dx.size() * sizeof(float)), 0);
    }
  cpu::set_isa(best);
  set_num_threads(threads);
}

}  // namespace
}  // namespace tenet
