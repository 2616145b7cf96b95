#include "isas.hpp"
#include "operand.hpp"

#include <tenet/kernels/cpu/gemm.hpp>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

using namespace tenet;
using cpu::MatrixView;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

template <class T>
std::vector<T> fractions(int64_t count, std::uint64_t seed) {
  std::vector<T> v;
  for (int64_t i = 0; i < count; ++i) v.push_back(T(float(next_random(seed) >> 40) / float(1 << 24) - 0.5f));
  return v;
}

// The sums in double, and how far those of gemm may be off.
struct Sums {
  std::vector<double> sums, bounds;
};
template <class T>
Sums reference(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b) {
  Sums r;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0, absolute = 0;
      for (int64_t p = 0; p < k; ++p) {
        const double x = float(a.data[i * a.row_stride + p * a.col_stride]);
        const double y = float(b.data[p * b.row_stride + j * b.col_stride]);
        sum += x * y;
        absolute += std::abs(x * y);
      }
      r.sums.push_back(sum);
      r.bounds.push_back(double(k) * 0x1p-23 * absolute);
    }
  }
  return r;
}

template <class T>
class GemmHalf : public testing::Test {};
using Types = testing::Types<half, bfloat16>;
TYPED_TEST_SUITE(GemmHalf, Types);

TYPED_TEST(GemmHalf, SumsAreWithinTheStatedBound) {
  using T = TypeParam;
  const double step = std::is_same_v<T, half> ? 0x1p-11 : 0x1p-8;  // relative, of rounding to T
  for (const auto& [m, n, k] : {std::array{1, 40, 700},
                                {40, 1, 65},
                                {4, 50, 1000},
                                {3, 70, 90},
                                {7, 35, 20},
                                {33, 4, 140},
                                {150, 70, 600},
                                {70, 150, 33},
                                {300, 9, 40}}) {
    for (Layout layout_a : layouts) {
      for (Layout layout_b : layouts) {
        const Operand<T> a(m, k, layout_a, fractions<T>, 1), b(k, n, layout_b, fractions<T>, 2);
        const Sums expected = reference<T>(m, n, k, a.view, b.view);
        for_each_isa_and_dots([&, m = m, n = n, k = k] {
          SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " layouts " +
                       std::to_string(int(layout_a)) + std::to_string(int(layout_b)));
          std::vector<float> wide(std::size_t(m * n));
          std::vector<T> c(std::size_t(m * n));
          cpu::gemm<T>(m, n, k, a.view, b.view, wide.data(), n);
          cpu::gemm<T>(m, n, k, a.view, b.view, c.data(), n);
          for (std::size_t i = 0; i < c.size(); ++i) {
            ASSERT_NEAR(wide[i], expected.sums[i], expected.bounds[i]) << i;
            ASSERT_NEAR(float(c[i]), wide[i], std::abs(wide[i]) * step + 0x1p-25) << i;
          }
        });
      }
    }
  }
}

TYPED_TEST(GemmHalf, OptionsOfAFloatResult) {
  using T = TypeParam;
  for_each_isa_and_dots([] {
    for (const auto& [m, n, k] : {std::array{1, 40, 70}, {5, 3, 4}, {30, 50, 40}, {50, 6, 9}, {3, 4, 0}}) {
      const std::vector<T> a(std::size_t(m * k), T(2.0f)), b(std::size_t(k * n), T(-0.5f));
      std::vector<float> rows(std::size_t(m), 100.0f), cols(std::size_t(n), 7.0f), c(std::size_t(m * (n + 1)), 0.25f);
      cpu::gemm<T>(m, n, k, {a.data(), k, 1}, {b.data(), n, 1}, c.data(), n + 1, {true, rows.data(), cols.data()});
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j <= n; ++j) {
          ASSERT_EQ(c[std::size_t(i * (n + 1) + j)], j == n ? 0.25f : 107.25f - float(k)) << m << " " << i << " " << j;
        }
      }
    }
  });
}

template <class T>
T from_bits(unsigned bits) {
  return __builtin_bit_cast(T, std::uint16_t(bits));
}

// Every number times one: read as scaled rows, packed from rows, packed from columns, and as dot products.
TYPED_TEST(GemmHalf, EveryNumberIsReadExactly) {
  using T = TypeParam;
  constexpr int64_t count = 1 << 16;
  std::vector<T> all;
  for (unsigned i = 0; i < count; ++i) all.push_back(from_bits<T>(i));
  const auto expect_all = [&](const float* c, int64_t step, const char* path) {
    const bool flushes = std::is_same_v<T, bfloat16> && cpu::has_dots(cpu::Dots::bfloat16);
    for (int64_t i = 0; i < count; ++i) {
      const float x = float(all[std::size_t(i)]), got = c[i * step];
      if (std::isnan(x)) ASSERT_TRUE(std::isnan(got)) << path << " " << i;
      else if (flushes && std::abs(x) < 0x1p-126f) ASSERT_LE(std::abs(got), std::abs(x)) << path << " " << i;
      else ASSERT_EQ(got, x) << path << " " << i;
    }
  };
  for_each_isa_and_dots([&] {
    constexpr int64_t few = 6;
    const std::vector<T> ones(few, T(1.0f));
    std::vector<float> c(std::size_t(few * count));
    cpu::gemm<T>(1, count, 1, {ones.data(), 1, 1}, {all.data(), count, 1}, c.data(), count);
    expect_all(c.data(), 1, "scaled rows");
    cpu::gemm<T>(few, count, 1, {ones.data(), 1, 1}, {all.data(), count, 1}, c.data(), count);
    expect_all(c.data(), 1, "packed from rows");
    // Each number stands alone in a k of 64, among zeros.
    constexpr int64_t k = 64;
    std::vector<T> spread(std::size_t(k * count), T(0.0f)), many(std::size_t(few * k), T(1.0f));
    for (int64_t i = 0; i < count; ++i) spread[std::size_t(i * k + i % k)] = all[std::size_t(i)];
    cpu::gemm<T>(few, count, k, {many.data(), k, 1}, {spread.data(), 1, k}, c.data(), count);
    expect_all(c.data(), 1, "packed from columns");
    cpu::gemm<T>(1, count, k, {many.data(), k, 1}, {spread.data(), 1, k}, c.data(), count);
    expect_all(c.data(), 1, "dot products");
  });
}

TYPED_TEST(GemmHalf, ZeroTimesInfinityIsNaN) {
  using T = TypeParam;
  for_each_isa_and_dots([] {
    for (int64_t m : {1, 5, 60}) {
      for (int64_t n : {1, 7, 40}) {
        for (bool columns : {false, true}) {
          const int64_t k = 41;
          const std::vector<T> a(std::size_t(m * k), T(0.0f));
          std::vector<T> b(std::size_t(k * n), T(1.0f)), c(std::size_t(m * n));
          b[std::size_t(columns ? 40 : 40 * n)] = T(infinity);
          cpu::gemm<T>(m, n, k, {a.data(), k, 1}, {b.data(), columns ? 1 : n, columns ? k : 1}, c.data(), n);
          for (int64_t i = 0; i < m * n; ++i) {
            ASSERT_EQ(std::isnan(float(c[std::size_t(i)])), i % n == 0) << m << " " << n << " " << i;
          }
        }
      }
    }
  });
}

TYPED_TEST(GemmHalf, RoundsOnceAtTheEnd) {
  using T = TypeParam;
  for_each_isa_and_dots([] {
    for (int64_t m : {1, 8}) {
      const int64_t k = 1000;
      const std::vector<T> ones(std::size_t(m * k), T(1.0f));
      std::vector<T> c(std::size_t(m * m), T(1.0f));
      cpu::gemm<T>(m, m, k, {ones.data(), k, 1}, {ones.data(), m, 1}, c.data(), m, {true, nullptr, nullptr});
      for (T x : c) ASSERT_EQ(float(x), float(T(1001.0f)));
    }
  });
}

TYPED_TEST(GemmHalf, ThreadsDoNotChangeTheResult) {
  using T = TypeParam;
  for_each_isa_and_dots([] {
    for (const auto& [m, n, k] : {std::array{300, 300, 300}, {2, 4000, 1000}, {3000, 16, 70}}) {
      for (bool columns : {false, true}) {
        const auto a = fractions<T>(m * k, 1), b = fractions<T>(k * n, 2);
        const MatrixView<T> view = columns ? MatrixView<T>{b.data(), 1, k} : MatrixView<T>{b.data(), n, 1};
        std::vector<float> one(std::size_t(m * n)), more(std::size_t(m * n));
        set_num_threads(1);
        cpu::gemm<T>(m, n, k, {a.data(), k, 1}, view, one.data(), n);
        for (int threads : {2, 3}) {
          set_num_threads(threads);
          cpu::gemm<T>(m, n, k, {a.data(), k, 1}, view, more.data(), n);
          EXPECT_EQ(std::memcmp(one.data(), more.data(), one.size() * sizeof(float)), 0) << m << " " << n << " " << k;
        }
      }
    }
  });
  set_num_threads(1);
}

}  // namespace
