#include <gtest/gtest.h>
#include <tenet/kernels/cpu/reduce.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include "strided_array.hpp"

namespace tenet {
namespace {

using test::StridedArray;

constexpr float infinity = std::numeric_limits<float>::infinity();
const float nan = std::nanf("");

// The elements of each output, in row-major order.
template <class T>
std::vector<std::vector<double>> groups(StridedArray<T>& in, const std::vector<int64_t>& shape, uint32_t reduced) {
  int64_t outputs = 1;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (!(reduced >> d & 1)) outputs *= shape[d];
  std::vector<std::vector<double>> all((std::size_t(outputs)));
  in.each([&](T& value, const std::vector<int64_t>& index) {
    int64_t o = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (!(reduced >> d & 1)) o = o * shape[d] + index[d];
    all[std::size_t(o)].push_back(cpu::cast<double>(value));
  });
  return all;
}

template <class Out, class T, class R, class Reference>
void check(R op, const std::vector<int64_t>& shape, Reference reference, double tolerance = 0) {
  for (const auto& layout : test::layouts(shape))
    for (uint32_t reduced = 0; reduced < 1u << shape.size(); ++reduced) {
      StridedArray<T> in(layout);
      in.fill(1);
      const auto expected = groups(in, shape, reduced);
      const auto out = std::make_unique<Out[]>(expected.size() + 1);
      cpu::reduce(op, in.rank(), shape.data(), in.view(), reduced, out.get());
      for (std::size_t o = 0; o < expected.size(); ++o) {
        const double want = reference(expected[o]), got = cpu::cast<double>(out[o]);
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(got));
          continue;
        }
        ASSERT_NEAR(got, want, tolerance * std::abs(want)) << ::testing::PrintToString(shape) << " over " << reduced;
      }
    }
}

double sum(const std::vector<double>& x) {
  double s = 0;
  for (const double v : x) s += v;
  return s;
}
double variance(const std::vector<double>& x, double correction) {
  const double mean = sum(x) / double(x.size());
  double s = 0;
  for (const double v : x) s += (v - mean) * (v - mean);
  return s / (double(x.size()) - correction);
}
double argmax(const std::vector<double>& x) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < x.size(); ++i)
    if (x[i] > x[best]) best = i;
  return double(best);
}

using ArgMax = cpu::ArgExtreme<true>;
using ArgMin = cpu::ArgExtreme<false>;

const std::vector<std::vector<int64_t>> shapes{{},        {1},         {5},         {1, 3},       {7, 3},
                                               {130, 2},  {3, 130},    {9000},      {2, 5000},    {600, 20},
                                               {3, 1, 5}, {4, 5, 200}, {2, 3, 150}, {5, 4, 6, 7}, {300, 9, 2}};

TEST(Reduce, SumsOverAnyDimensionsOfAnyLayout) {
  for (const auto& shape : shapes) check<float, float>(cpu::Sum{}, shape, sum);
}

TEST(Reduce, SumsEveryType) {
  const std::vector<int64_t> shape{3, 140, 5};
  check<double, double>(cpu::Sum{}, shape, sum);
  check<float, half>(cpu::Sum{}, shape, sum);
  check<float, bfloat16>(cpu::Sum{}, shape, sum);
  check<int64_t, int8_t>(cpu::Sum{}, shape, sum);
  check<int64_t, int32_t>(cpu::Sum{}, shape, sum);
  check<int64_t, bool>(cpu::Sum{}, shape, sum);
}

TEST(Reduce, HasTheOtherReducers) {
  for (const auto& shape : shapes) {
    check<float, float>(cpu::Max{}, shape, [](const auto& x) { return *std::max_element(x.begin(), x.end()); });
    check<float, float>(cpu::Min{}, shape, [](const auto& x) { return *std::min_element(x.begin(), x.end()); });
    check<int64_t, float>(ArgMax{}, shape, argmax);
    check<double, double>(
        cpu::Var{0}, shape, [](const auto& x) { return variance(x, 0); }, 1e-12);
    check<bool, float>(cpu::All{}, shape, [](const auto& x) { return double(std::count(x.begin(), x.end(), 0) == 0); });
    check<bool, float>(cpu::Any{}, shape,
                       [](const auto& x) { return double(std::size_t(std::count(x.begin(), x.end(), 0)) < x.size()); });
  }
  const std::vector<int64_t> shape{4, 6, 70};
  check<int32_t, int32_t>(cpu::Max{}, shape, [](const auto& x) { return *std::max_element(x.begin(), x.end()); });
  check<int64_t, int8_t>(ArgMin{}, shape,
                         [](const auto& x) { return double(std::min_element(x.begin(), x.end()) - x.begin()); });
  check<float, float>(cpu::SumSquares{}, shape, [](const auto& x) {
    double s = 0;
    for (const double v : x) s += v * v;
    return s;
  });
  check<float, float>(
      cpu::Var{1}, shape, [](const auto& x) { return x.size() > 1 ? variance(x, 1) : nan; }, 1e-5);
}

template <class R, class T, class Out = T>
Out whole(R op, const std::vector<T>& x) {
  const int64_t n = int64_t(x.size()), one = 1;
  Out out{};
  cpu::reduce(op, 1, &n, cpu::Strided<const T>{x.data(), &one}, 1u, &out);
  return out;
}

TEST(Reduce, MultipliesWithSigns) {
  EXPECT_EQ(whole(cpu::Product{}, std::vector<float>{2, -3, 0.5f, 4}), -12.f);
  EXPECT_EQ((whole<cpu::Product, int8_t, int64_t>(cpu::Product{}, std::vector<int8_t>(10, -4))), 1048576);
}

TEST(Reduce, IntegersWrapAround) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  const std::vector<int64_t> x{most, 1, 2};
  EXPECT_EQ(whole(cpu::Sum{}, x), std::numeric_limits<int64_t>::min() + 2);
  EXPECT_EQ(whole(cpu::Product{}, x), -2);
  int64_t sums[3];
  cpu::cumsum(1, 3, 1, x.data(), sums);
  EXPECT_EQ(sums[1], std::numeric_limits<int64_t>::min());
}

TEST(Reduce, GivesTheIdentityOfNoElements) {
  const std::vector<float> none;
  EXPECT_EQ(whole(cpu::Sum{}, none), 0.f);
  EXPECT_EQ(whole(cpu::Product{}, none), 1.f);
  EXPECT_EQ(whole(cpu::Max{}, none), -infinity);
  EXPECT_EQ(whole(cpu::Min{}, none), infinity);
  EXPECT_TRUE(std::isnan(whole(cpu::Var{}, none)));
  EXPECT_TRUE(std::isnan(whole(cpu::Var{1}, std::vector<float>{3})));
  EXPECT_EQ((whole<cpu::All, float, bool>(cpu::All{}, none)), true);
  const int64_t shape[] = {2, 0, 3}, strides[] = {3, 3, 1};
  float out[6] = {1, 1, 1, 1, 1, 1};
  cpu::reduce(cpu::Sum{}, 3, shape, cpu::Strided<const float>{nullptr, strides}, 2u, out);
  for (const float v : out) EXPECT_EQ(v, 0.f);
  cpu::reduce(cpu::Sum{}, 3, shape, cpu::Strided<const float>{nullptr, strides}, 1u, out);  // no outputs either
}

TEST(Reduce, LetsNaNWin) {
  for (const std::size_t n : {3, 64, 200, 5000, 9000})
    for (const std::size_t at : {std::size_t(0), n / 2, n - 1}) {
      std::vector<float> x(n, 1.f);
      x[n / 3] = 5.f;
      x[at] = nan;
      EXPECT_TRUE(std::isnan(whole(cpu::Max{}, x)));
      EXPECT_TRUE(std::isnan(whole(cpu::Min{}, x)));
      EXPECT_TRUE(std::isnan(whole(cpu::Sum{}, x)));
      EXPECT_EQ((whole<ArgMax, float, int64_t>(ArgMax{}, x)), int64_t(at));
      x[n - 1] = nan;
      EXPECT_EQ((whole<ArgMin, float, int64_t>(ArgMin{}, x)), int64_t(at));
      // The same down the columns of a matrix.
      const int64_t shape[] = {int64_t(n), 2}, strides[] = {1, 0};
      float most[2];
      cpu::reduce(cpu::Max{}, 2, shape, cpu::Strided<const float>{x.data(), strides}, 1u, most);
      EXPECT_TRUE(std::isnan(most[0]) && std::isnan(most[1]));
    }
  EXPECT_EQ(whole(cpu::Max{}, std::vector<float>(100, -infinity)), -infinity);
  EXPECT_EQ((whole<ArgMax, float, int64_t>(ArgMax{}, std::vector<float>(100, -infinity))), 0);
}

TEST(Reduce, AccumulatesHalvesInFloat) {
  EXPECT_EQ(float(whole(cpu::Sum{}, std::vector<half>(1000, half(100.f)))), infinity);
  EXPECT_EQ(float(whole(cpu::Sum{}, std::vector<bfloat16>(1000, bfloat16(1.f)))), 1000.f);
}

TEST(Reduce, SumsManyElementsAccurately) {
  const std::size_t n = 3000000;
  const std::vector<float> x(n, 0.1f);
  const double exact = double(n) * double(0.1f);
  EXPECT_NEAR(whole(cpu::Sum{}, x), exact, exact * 1e-6);
  EXPECT_NEAR(whole(cpu::Var{}, x), 0, 1e-12);
  const int64_t shape[] = {int64_t(n / 3), 3}, strides[] = {3, 1};
  float columns[3];
  cpu::reduce(cpu::Sum{}, 2, shape, cpu::Strided<const float>{x.data(), strides}, 1u, columns);
  for (const float c : columns) EXPECT_NEAR(c, exact / 3, exact * 1e-6);
  std::vector<float> far(10000);
  for (std::size_t i = 0; i < far.size(); ++i) far[i] = 10000.f + float(i % 2);
  EXPECT_NEAR(whole(cpu::Var{0}, far), 0.25, 1e-3);
}

template <class R>
void check_bits(R op) {
  struct Case {
    int64_t shape[3];
    uint32_t reduced;
  };
  for (const Case& c :
       {Case{{7, 40, 333}, 7u}, Case{{700, 5, 33}, 1u}, Case{{700, 5, 33}, 4u}, Case{{9, 20, 576}, 5u}}) {
    const int64_t strides[] = {c.shape[1] * c.shape[2], c.shape[2], 1}, n = cpu::numel(3, c.shape);
    std::vector<float> x(std::size_t(n), 0.f), out = x, first;
    for (int64_t i = 0; i < n; ++i) x[std::size_t(i)] = std::sin(float(i));
    for (const int threads : {1, 2, 3}) {
      set_num_threads(threads);
      cpu::reduce(op, 3, c.shape, cpu::Strided<const float>{x.data(), strides}, c.reduced, out.data());
      if (threads == 1) first = out;
      EXPECT_EQ(std::memcmp(first.data(), out.data(), out.size() * sizeof(float)), 0);
    }
  }
}

TEST(Reduce, GivesTheSameBitsForAnyNumberOfThreads) {
  const int threads = num_threads();
  check_bits(cpu::Sum{});
  check_bits(cpu::Var{});
  set_num_threads(threads);
}

TEST(Reduce, GivesTheSameOnEveryInstructionSet) {
  const cpu::Isa best = cpu::isa();
  std::vector<float> x(10001);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(float(i));
  cpu::set_isa(cpu::Isa::baseline);
  const float expected = whole(cpu::Sum{}, x), variance = whole(cpu::Var{}, x);
  for (const cpu::Isa isa : {cpu::Isa::avx2, cpu::Isa::avx512}) {
    cpu::set_isa(isa);
    EXPECT_EQ(whole(cpu::Sum{}, x), expected);
    EXPECT_EQ(whole(cpu::Var{}, x), variance);
  }
  cpu::set_isa(best);
}

TEST(Cumsum, AddsUpAlongADimension) {
  const std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::vector<float> out(12);
  cpu::cumsum(int64_t{2}, int64_t{3}, int64_t{2}, x.data(), out.data());
  EXPECT_EQ(out, (std::vector<float>{1, 2, 4, 6, 9, 12, 7, 8, 16, 18, 27, 30}));
  const std::vector<int8_t> small(300, 100);
  std::vector<int64_t> total(300);
  cpu::cumsum(int64_t{1}, int64_t{300}, int64_t{1}, small.data(), total.data());
  EXPECT_EQ(total[299], 30000);
  cpu::cumsum(int64_t{3}, int64_t{0}, int64_t{2}, x.data(), out.data());
}

}  // namespace
}  // namespace tenet
