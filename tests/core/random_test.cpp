#include <tenet/core/random.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "core/support.hpp"

using namespace tenet;

namespace {

std::vector<std::uint32_t> words(const RandomBlock& b) { return {b.word, b.word + 4}; }

template <class T>
bool same_bits(const Tensor<T>& a, const Tensor<T>& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), std::size_t(a.numel()) * sizeof(T)) == 0;
}

struct Moments {
  double mean = 0, variance = 0, skew = 0, kurtosis = 0;
};
template <class T>
Moments moments(const Tensor<T>& t) {
  Moments m;
  const double n = double(t.numel());
  for (T x : t.to_vector()) m.mean += double(x) / n;
  for (T x : t.to_vector()) {
    const double d = double(x) - m.mean;
    m.variance += d * d / n;
    m.skew += d * d * d / n;
    m.kurtosis += d * d * d * d / n;
  }
  m.skew /= std::pow(m.variance, 1.5);
  m.kurtosis /= m.variance * m.variance;
  return m;
}

/// How far counts are from equal, in standard deviations of the chi-square statistic.
double unevenness(const std::vector<std::int64_t>& counts, double expected) {
  double chi = 0;
  for (std::int64_t c : counts) chi += (double(c) - expected) * (double(c) - expected) / expected;
  const double freedom = double(counts.size() - 1);
  return (chi - freedom) / std::sqrt(2 * freedom);
}

}  // namespace

TEST(Philox, KnownAnswers) {  // of the Random123 library
  using Words = std::vector<std::uint32_t>;
  EXPECT_EQ(words(philox(0, 0, 0)), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(words(philox(~0ull, ~0ull, ~0ull)), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(words(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e)),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Generator, StateTravels) {
  Generator a(7);
  EXPECT_EQ(a.seed(), 7u);
  rand({10}, a);
  const GeneratorState saved = a.state();
  EXPECT_EQ(saved, (GeneratorState{7, 3}));
  const auto x = rand({100}, a);
  Generator b;
  EXPECT_EQ(b.seed(), Generator::default_seed);
  b.set_state(saved);
  EXPECT_TRUE(same_bits(rand({100}, b), x));
  a.manual_seed(7);
  EXPECT_EQ(a.state(), (GeneratorState{7, 0}));
}

TEST(Generator, ConcurrentRangesDoNotOverlap) {
  Generator g(1);
  constexpr int threads = 4, draws = 1000;
  std::vector<std::uint64_t> offsets(threads * draws);
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      for (int i = 0; i < draws; ++i) offsets[std::size_t(t * draws + i)] = g.reserve(3).offset;
    });
  }
  for (auto& t : pool) t.join();
  std::sort(offsets.begin(), offsets.end());
  for (std::size_t i = 0; i < offsets.size(); ++i) ASSERT_EQ(offsets[i], 3 * i);
}

TEST(Generator, ManualSeedRestartsTheDefault) {
  manual_seed(3);
  const auto a = rand({5}), b = rand({5});
  EXPECT_FALSE(same_bits(a, b));
  manual_seed(3);
  EXPECT_TRUE(same_bits(rand({5}), a));
  EXPECT_TRUE(same_bits(rand({5}), b));
  Generator own(3);
  EXPECT_TRUE(same_bits(rand({5}, own), a));
}

TEST(Random, SameForAnyNumberOfThreads) {
  auto draw = [](int threads) {
    const WithThreads guard(threads);
    Generator g(11);
    const Shape shape{3, 50001};
    return std::make_tuple(rand<float>(shape, g), randn<double>(shape, g), randn<half>(shape, g),
                           randint(-5, 1000, shape, g), bernoulli(0.3, shape, g), rand<float>({5}, g));
  };
  const auto one = draw(1);
  for (int threads : {2, 3, 7}) {
    const auto many = draw(threads);
    EXPECT_TRUE(same_bits(std::get<0>(one), std::get<0>(many)));
    EXPECT_TRUE(same_bits(std::get<1>(one), std::get<1>(many)));
    EXPECT_TRUE(same_bits(std::get<2>(one), std::get<2>(many)));
    EXPECT_TRUE(same_bits(std::get<3>(one), std::get<3>(many)));
    EXPECT_TRUE(same_bits(std::get<4>(one), std::get<4>(many)));
    EXPECT_TRUE(same_bits(std::get<5>(one), std::get<5>(many)));
  }
}

TEST(Random, AnElementDependsOnItsPlaceOnly) {
  for (std::int64_t n : {1, 2, 3, 4, 5, 7, 1000}) {
    Generator a(5), b(5);
    const auto few = randn({n}, a).to_vector(), many = randn({2000}, b).to_vector();
    EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin())) << n;
  }
}

TEST(Random, StreamsDiffer) {
  Generator g(1), other(2);
  const auto a = rand({1000}, g).to_vector(), b = rand({1000}, g).to_vector(), c = rand({1000}, other).to_vector();
  int equal = 0;
  for (std::size_t i = 0; i < 1000; ++i) equal += (a[i] == b[i]) + (a[i] == c[i]) + (b[i] == c[i]);
  EXPECT_LT(equal, 3);
}

template <class T>
struct RandomFloat : ::testing::Test {};
using Floats = ::testing::Types<float, double, half, bfloat16>;
TYPED_TEST_SUITE(RandomFloat, Floats);

TYPED_TEST(RandomFloat, UniformStaysBelowOneAndFillsEvenly) {
  using T = TypeParam;
  Generator g(21);
  const auto t = rand<T>({400000}, g);
  std::vector<std::int64_t> bins(64);
  for (T x : t.to_vector()) {
    ASSERT_GE(x, T(0));
    ASSERT_LT(x, T(1));
    ++bins[std::size_t(double(x) * 64)];
  }
  EXPECT_LT(std::abs(unevenness(bins, 400000.0 / 64)), 4);
  EXPECT_NEAR(moments(t).variance, 1.0 / 12, 1e-3);
  EXPECT_GT(double(*std::max_element(t.data(), t.data() + t.numel())), 0.995);
}

TYPED_TEST(RandomFloat, NormalHasItsMoments) {
  using T = TypeParam;
  Generator g(22);
  const auto t = randn<T>({400001}, g);
  const Moments m = moments(t);
  EXPECT_NEAR(m.mean, 0, 0.008);
  EXPECT_NEAR(m.variance, 1, 0.012);
  EXPECT_NEAR(m.skew, 0, 0.02);
  EXPECT_NEAR(m.kurtosis, 3, 0.05);
  std::int64_t beyond[4] = {};
  for (T x : t.to_vector()) {
    ASSERT_TRUE(std::isfinite(double(x)));
    for (int s = 1; s < 4; ++s) beyond[s] += std::abs(double(x)) > s + 0.004;
  }
  EXPECT_NEAR(double(beyond[1]) / 400001, 0.3173 - 0.002, 0.004);
  EXPECT_NEAR(double(beyond[2]) / 400001, 0.0455, 0.0015);
  EXPECT_NEAR(double(beyond[3]) / 400001, 0.0027, 0.0004);
}

TYPED_TEST(RandomFloat, UniformBetweenBoundsNeverReachesTheUpper) {
  using T = TypeParam;
  const double next = 1 + std::ldexp(1, 1 - std::numeric_limits<T>::digits);
  const double tiny = double(std::numeric_limits<T>::denorm_min());
  const std::pair<double, double> cases[] = {{-0.1, 0.1}, {1, next}, {-3, -2.99}, {-tiny, 0}, {5, 5}, {0, 30000}};
  for (auto [low, high] : cases) {
    const auto t = empty<T>({20000});
    uniform_(t, low, high);
    for (T x : t.to_vector()) {
      ASSERT_GE(x, T(low));
      if (low < high) ASSERT_LT(x, T(high)) << low;
      else ASSERT_EQ(x, T(low));
    }
  }
}

TEST(Random, NormalTakesMeanAndDeviation) {
  Generator g(23), h(23);
  const auto t = empty<double>({200000}), u = empty<double>({200000});
  EXPECT_TRUE(normal_(t, 3, 0.5, g).is(t));
  const Moments m = moments(t);
  EXPECT_NEAR(m.mean, 3, 0.006);
  EXPECT_NEAR(m.variance, 0.25, 0.004);
  normal_(u, 0, 1, h);
  EXPECT_NEAR(u(7) * 0.5 + 3, t(7), 1e-12);
  const auto constant = normal_(empty<float>({9}), 2, 0);
  EXPECT_EQ(constant.to_vector(), std::vector<float>(9, 2.0f));
}

TEST(Random, NeighboursAreUncorrelated) {
  Generator g(24);
  const auto x = randn<double>({100000}, g).to_vector();
  for (std::size_t lag : {1u, 2u, 3u, 4u, 8u}) {
    double sum = 0;
    for (std::size_t i = 0; i + lag < x.size(); ++i) sum += x[i] * x[i + lag];
    EXPECT_LT(std::abs(sum / 100000), 0.013) << lag;
  }
}

TEST(Random, RandintIsEvenAndInRange) {
  Generator g(25);
  std::vector<std::int64_t> bins(7);
  for (std::int64_t x : randint(-3, 4, {140000}, g).to_vector()) {
    ASSERT_TRUE(x >= -3 && x < 4);
    ++bins[std::size_t(x + 3)];
  }
  EXPECT_LT(std::abs(unevenness(bins, 20000)), 4);
  EXPECT_EQ(randint(5, 6, {3}).to_vector(), (std::vector<std::int64_t>{5, 5, 5}));
}

TEST(Random, RandintOfAWideRangeFavoursNothing) {
  // 2^64 is 4/3 of this range: taking the remainder alone would draw the lower third twice as often.
  const std::int64_t low = std::numeric_limits<std::int64_t>::min(), high = std::int64_t{1} << 62;
  Generator g(26);
  std::vector<std::int64_t> thirds(3);
  for (std::int64_t x : randint(low, high, {30000}, g).to_vector()) {
    ASSERT_LT(x, high);
    ++thirds[std::size_t((std::uint64_t(x) - std::uint64_t(low)) >> 62)];
  }
  EXPECT_LT(std::abs(unevenness(thirds, 10000)), 5);
}

TEST(Random, RandintInEachType) {
  EXPECT_EQ(randint<float>(10, {100}).dtype(), DType::float32);
  for (bool b : randint<bool>(0, 2, {100}).to_vector()) EXPECT_TRUE(b == true || b == false);
  for (int x : randint<std::int8_t>(-128, 128, {1000}).to_vector()) EXPECT_TRUE(x >= -128 && x <= 127);
  const auto bytes = randint<std::uint8_t>(0, 256, {20000}).to_vector();
  EXPECT_EQ(*std::max_element(bytes.begin(), bytes.end()), 255);
  EXPECT_EQ(*std::min_element(bytes.begin(), bytes.end()), 0);
  EXPECT_NO_THROW(randint<half>(-2048, 2049, {3}));
  EXPECT_THROW(randint<half>(-2048, 2050, {3}), Error);
  EXPECT_THROW(randint<std::uint8_t>(-1, 5, {3}), Error);
  EXPECT_THROW(randint<std::int8_t>(0, 129, {3}), Error);
  EXPECT_THROW(randint<bool>(0, 3, {3}), Error);
  EXPECT_THROW(randint(5, 5, {3}), Error);
  EXPECT_THROW(randint(0, {3}), Error);
}

TEST(Random, RandpermIsAPermutation) {
  for (std::int64_t n : {0, 1, 2, 3, 10, 10007}) {
    Generator g(27);
    auto p = randperm(n, g).to_vector();
    ASSERT_EQ(p.size(), std::size_t(n));
    std::sort(p.begin(), p.end());
    for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(p[std::size_t(i)], i);
  }
  Generator a(28), b(28), c(29);
  const auto x = randperm(1000, a);
  EXPECT_TRUE(same_bits(x, randperm(1000, b)));
  EXPECT_FALSE(same_bits(x, randperm(1000, c)));
  EXPECT_FALSE(same_bits(x, randperm(1000, a)));
  EXPECT_THROW(randperm(-1), ShapeError);
  EXPECT_EQ(randperm<std::uint8_t>(256).numel(), 256);
  EXPECT_THROW(randperm<std::uint8_t>(257), Error);
}

TEST(Random, EveryOrderIsEquallyLikely) {
  Generator g(30);
  std::vector<std::int64_t> orders(4 * 4 * 4 * 4), counts;
  for (int i = 0; i < 24000; ++i) {
    const auto p = randperm(4, g);
    ++orders[std::size_t(((p(0) * 4 + p(1)) * 4 + p(2)) * 4 + p(3))];
  }
  for (std::int64_t c : orders)
    if (c) counts.push_back(c);
  ASSERT_EQ(counts.size(), 24u);
  EXPECT_LT(std::abs(unevenness(counts, 1000)), 4);
}

TEST(Random, BernoulliKeepsItsProbability) {
  Generator g(31);
  for (double p : {0.0, 0.1, 0.5, 1.0}) {
    const auto t = bernoulli(p, {100000}, g);
    for (float x : t.to_vector()) ASSERT_TRUE(x == 0 || x == 1);
    EXPECT_NEAR(moments(t).mean, p, p == 0 || p == 1 ? 1e-9 : 0.006);
  }
  EXPECT_EQ(bernoulli<bool>(1, {2}).to_vector(), (std::vector<bool>{true, true}));
  EXPECT_THROW(bernoulli(-0.1, {2}), Error);
  EXPECT_THROW(bernoulli(1.1, {2}), Error);
  EXPECT_THROW(bernoulli(NAN, {2}), Error);
}

TEST(Random, InPlaceFormsFollowStridesAndCountAsAChange) {
  const auto base = zeros<float>({4, 6});
  // Columns 1 and 3 of the transpose: [2, 4] with strides [2, 6].
  const Tensor<float> view(make_alias(*base.impl(), {2, 4}, {2, 6}, 1));
  const auto version = base.version();
  Generator g(32), h(32);
  uniform_(view, 0, 1, g);
  EXPECT_GT(base.version(), version);
  EXPECT_EQ(view.to_vector(), rand({2, 4}, h).to_vector());
  for (int r = 0; r < 4; ++r)
    for (int c : {0, 2, 4, 5}) EXPECT_EQ(base(r, c), 0);

  const Tensor<float> expanded(make_alias(*base.impl(), {3, 6}, {0, 1}, 0));
  EXPECT_THROW(uniform_(expanded), Error);
  EXPECT_THROW(normal_(expanded), Error);
}

TEST(Random, ShapesAndLikeForms) {
  EXPECT_EQ(rand({}).numel(), 1);
  EXPECT_EQ(randn({0, 3}).numel(), 0);
  EXPECT_EQ(rand_like(zeros<double>({2, 5})).shape(), (Shape{2, 5}));
  EXPECT_EQ(randn_like(zeros<half>({2})).dtype(), DType::float16);
  EXPECT_THROW(rand({-1}), ShapeError);
}

TEST(Random, RefusesWrongParameters) {
  const auto t = zeros<float>({3});
  EXPECT_THROW(uniform_(t, 1, 0), Error);
  EXPECT_THROW(uniform_(t, NAN, 1), Error);
  EXPECT_THROW(uniform_(t, 0, INFINITY), Error);
  EXPECT_THROW(uniform_(t, -3e38, 3e38), Error);
  EXPECT_THROW(normal_(t, 0, -1), Error);
  EXPECT_THROW(normal_(t, NAN, 1), Error);
  EXPECT_THROW(normal_(t, 0, INFINITY), Error);
  EXPECT_THROW(uniform_(Tensor<float>()), Error);
  EXPECT_EQ(t.to_vector(), std::vector<float>(3, 0.0f));
}
