#include <gtest/gtest.h>
#include <tenet/kernels/cpu/math.hpp>
#include <tenet/kernels/cpu/pointwise.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace tenet {
namespace {

namespace math = cpu::math;

constexpr float infinity = std::numeric_limits<float>::infinity();
const float nan = std::nanf("");

struct Exp {
  static constexpr bool fused = true;
  float operator()(float x) const { return math::exp(x); }
};
struct Log {
  static constexpr bool fused = true;
  float operator()(float x) const { return math::log(x); }
};
struct Log1p {
  static constexpr bool fused = true;
  float operator()(float x) const { return math::log1p(x); }
};
struct Expm1 {
  static constexpr bool fused = true;
  float operator()(float x) const { return math::expm1(x); }
};
struct Tanh {
  static constexpr bool fused = true;
  float operator()(float x) const { return math::tanh(x); }
};
struct Sigmoid {
  static constexpr bool fused = true;
  float operator()(float x) const { return math::sigmoid(x); }
};
struct Erf {
  static constexpr bool fused = true;
  float operator()(float x) const { return math::erf(x); }
};
struct NormalCdf {
  static constexpr bool fused = true;
  float operator()(float x) const { return math::normal_cdf(x); }
};
struct Sqrt {
  static constexpr bool fused = true;
  float operator()(float x) const { return math::sqrt(x); }
};

// Finite floats over all exponents, and denser ones where the functions bend.
std::vector<float> samples() {
  std::vector<float> x;
  for (uint32_t u = 0; u < 0x7f800000u; u += 20011) {
    const float v = __builtin_bit_cast(float, u);
    x.push_back(v);
    x.push_back(-v);
  }
  for (int i = -40000; i <= 40000; ++i) x.push_back(float(i) * 0.0026f);
  return x;
}

// Largest error in units of the last place of the exact result; wrong infinities and NaN count as infinite.
template <class F, class Reference>
double worst_ulp(F f, Reference reference) {
  const std::vector<float> x = samples();
  std::vector<float> y(x.size());
  cpu::map_contiguous(f, int64_t(x.size()), y.data(), x.data());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = reference(static_cast<long double>(x[i]));
    const float rounded = float(exact);
    if (std::isnan(rounded) || std::isinf(rounded) || std::isinf(y[i])) {
      const bool same = std::isnan(rounded) ? std::isnan(y[i]) : rounded == y[i];
      // At the border of overflow half an ulp decides.
      if (!same && !(exact > 3.4028234e38L && exact < 3.4028240e38L)) return infinity;
      continue;
    }
    int exponent;
    std::frexp(double(exact), &exponent);
    const double error = std::abs(double(y[i] - exact)) / std::ldexp(1., std::max(exponent - 24, -149));
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

class Math : public ::testing::TestWithParam<cpu::Isa> {
 protected:
  void SetUp() override { cpu::set_isa(GetParam()); }
  void TearDown() override { cpu::set_isa(best_); }

 private:
  cpu::Isa best_ = cpu::isa();
};

TEST_P(Math, IsAccurate) {
  EXPECT_LE(worst_ulp(Exp{}, [](long double x) { return std::exp(x); }), 2);
  EXPECT_LE(worst_ulp(Log{}, [](long double x) { return std::log(x); }), 2);
  EXPECT_LE(worst_ulp(Log1p{}, [](long double x) { return std::log1p(x); }), 2);
  EXPECT_LE(worst_ulp(Expm1{}, [](long double x) { return std::expm1(x); }), 4);
  EXPECT_LE(worst_ulp(Tanh{}, [](long double x) { return std::tanh(x); }), 2);
  EXPECT_LE(worst_ulp(Sigmoid{}, [](long double x) { return 1 / (1 + std::exp(-x)); }), 3);
  EXPECT_LE(worst_ulp(Erf{}, [](long double x) { return std::erf(x); }), 2);
  EXPECT_LE(worst_ulp(Sqrt{}, [](long double x) { return std::sqrt(x); }), 0.5);
}

TEST_P(Math, NormalCdfIsAccurate) {
  const std::vector<float> x = samples();
  std::vector<float> y(x.size());
  cpu::map_contiguous(NormalCdf{}, int64_t(x.size()), y.data(), x.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::erfc(double(x[i]) * -0.70710678118654752440) / 2;
    ASSERT_NEAR(y[i], exact, 1e-7) << x[i];
    if (x[i] > -3 && x[i] < 0) {
      ASSERT_NEAR(y[i] / exact, 1, 1e-5) << x[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OnEachInstructionSet, Math,
                         ::testing::Values(cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512));

TEST(MathSpecials, AreRight) {
  EXPECT_EQ(math::exp(0.f), 1.f);
  EXPECT_EQ(math::exp(infinity), infinity);
  EXPECT_EQ(math::exp(-infinity), 0.f);
  EXPECT_EQ(math::exp(100.f), infinity);
  EXPECT_EQ(math::log(1.f), 0.f);
  EXPECT_EQ(math::log(0.f), -infinity);
  EXPECT_EQ(math::log(-0.f), -infinity);
  EXPECT_EQ(math::log(infinity), infinity);
  EXPECT_TRUE(std::isnan(math::log(-1.f)));
  EXPECT_EQ(math::log1p(infinity), infinity);
  EXPECT_EQ(math::log1p(-1.f), -infinity);
  EXPECT_TRUE(std::isnan(math::log1p(-1.5f)));
  EXPECT_EQ(math::expm1(infinity), infinity);
  EXPECT_EQ(math::expm1(-infinity), -1.f);
  EXPECT_EQ(math::tanh(infinity), 1.f);
  EXPECT_EQ(math::tanh(-infinity), -1.f);
  EXPECT_EQ(math::sigmoid(infinity), 1.f);
  EXPECT_EQ(math::sigmoid(-infinity), 0.f);
  EXPECT_EQ(math::sigmoid(0.f), 0.5f);
  EXPECT_EQ(math::erf(infinity), 1.f);
  EXPECT_EQ(math::erf(-infinity), -1.f);
  EXPECT_EQ(math::normal_cdf(infinity), 1.f);
  EXPECT_EQ(math::normal_cdf(-infinity), 0.f);
  EXPECT_TRUE(std::isnan(math::normal_cdf(nan)));
  EXPECT_TRUE(std::isnan(math::sqrt(-1.f)));
  EXPECT_EQ(math::sqrt(infinity), infinity);
  for (const float zero : {0.f, -0.f}) {
    EXPECT_EQ(std::signbit(math::tanh(zero)), std::signbit(zero));
    EXPECT_EQ(std::signbit(math::erf(zero)), std::signbit(zero));
    EXPECT_EQ(std::signbit(math::log1p(zero)), std::signbit(zero));
    EXPECT_EQ(std::signbit(math::expm1(zero)), std::signbit(zero));
    EXPECT_EQ(std::signbit(math::sqrt(zero)), std::signbit(zero));
  }
}

template <class F>
void check_nan_and_bits(F f) {
  // NaN at every place of a vector, and the same value with the same bits at every place and for every length.
  // Its bits may be any: what they would add to an exponent must not show.
  const uint32_t nans[] = {0x7fc00000, 0x7fc00001, 0x7f800001, 0x7fffffff, 0xffffffff, 0xffc00123};
  std::vector<float> x(67), y(67), part(67);
  for (std::size_t at = 0; at < x.size(); ++at) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.37f + 0.01f * float(i);
    x[at] = std::bit_cast<float>(nans[at % std::size(nans)]);
    cpu::map_contiguous(f, int64_t(x.size()), y.data(), x.data());
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(std::isnan(y[i]), i == at);
    cpu::map_contiguous(f, int64_t(x.size() - at), part.data(), x.data() + at);
    ASSERT_TRUE(std::isnan(part[0]));  // the sign of a NaN means nothing
    ASSERT_EQ(std::memcmp(part.data() + 1, y.data() + at + 1, (x.size() - at - 1) * sizeof(float)), 0);
  }
}

TEST_P(Math, KeepsNaNAndDoesNotDependOnThePlace) {
  check_nan_and_bits(Exp{});
  check_nan_and_bits(Log{});
  check_nan_and_bits(Log1p{});
  check_nan_and_bits(Expm1{});
  check_nan_and_bits(Tanh{});
  check_nan_and_bits(Sigmoid{});
  check_nan_and_bits(Erf{});
  check_nan_and_bits(NormalCdf{});
  check_nan_and_bits(Sqrt{});
}

TEST(MathDouble, IsTheStandardLibrarys) {
  for (double x = 0.1; x < 3; x += 0.1) {
    EXPECT_EQ(math::exp(x), std::exp(x));
    EXPECT_EQ(math::log(x), std::log(x));
    EXPECT_EQ(math::tanh(-x), std::tanh(-x));
    EXPECT_EQ(math::erf(x), std::erf(x));
    EXPECT_DOUBLE_EQ(math::sigmoid(x), 1 / (1 + std::exp(-x)));
    EXPECT_DOUBLE_EQ(math::sigmoid(-x), 1 / (1 + std::exp(x)));
  }
  EXPECT_TRUE(std::isnan(math::sigmoid(std::nan(""))));
}

}  // namespace
}  // namespace tenet
