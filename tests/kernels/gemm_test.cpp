#include "isas.hpp"
#include "operand.hpp"

#include <tenet/kernels/cpu/gemm.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

using namespace tenet;
using cpu::GemmOptions;
using cpu::MatrixView;

namespace {

// Small whole numbers: every sum of their products is exact in any order, in every type but the 8-bit ones, which wrap.
template <class T>
std::vector<T> whole_numbers(int64_t count, std::uint64_t seed) {
  std::vector<T> v;
  for (int64_t i = 0; i < count; ++i) {
    const int x = int(next_random(seed) >> 60) % 7;
    v.push_back(static_cast<T>(std::is_unsigned_v<T> ? x : x - 3));
  }
  return v;
}

std::vector<float> random_floats(int64_t count, std::uint64_t seed) {
  std::vector<float> v;
  for (int64_t i = 0; i < count; ++i) {
    v.push_back(float(next_random(seed) >> 40) / float(1 << 24) - 0.5f);
  }
  return v;
}

template <class T>
void expect_reference(int64_t m, int64_t n, int64_t k, Layout layout_a, Layout layout_b, bool accumulate = false,
                      bool row_bias = false, bool col_bias = false, int64_t gap = 0) {
  SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " layouts " +
               std::to_string(int(layout_a)) + std::to_string(int(layout_b)) + " options " +
               std::to_string(accumulate) + std::to_string(row_bias) + std::to_string(col_bias));
  const Operand<T> a(m, k, layout_a, whole_numbers<T>, 1), b(k, n, layout_b, whole_numbers<T>, 2);
  const std::vector<T> rows = whole_numbers<T>(m, 3), cols = whole_numbers<T>(n, 4);
  const GemmOptions<T> options{accumulate, row_bias ? rows.data() : nullptr, col_bias ? cols.data() : nullptr};
  const int64_t ldc = n + gap;
  std::vector<T> expected = whole_numbers<T>(m * ldc, 5), c = expected;  // what lies in the gap must stay
  cpu::gemm_reference(m, n, k, a.view, b.view, expected.data(), ldc, options);
  cpu::gemm(m, n, k, a.view, b.view, c.data(), ldc, options);
  for (int64_t i = 0; i < m * ldc; ++i) {
    ASSERT_EQ(static_cast<double>(c[std::size_t(i)]), static_cast<double>(expected[std::size_t(i)]))
        << "at " << i / ldc << ", " << i % ldc;
  }
}

template <class T>
class Gemm : public testing::Test {};
using Types = testing::Types<float, double, half, bfloat16, int8_t, uint8_t, int32_t, int64_t>;
TYPED_TEST_SUITE(Gemm, Types);

TYPED_TEST(Gemm, LayoutsAndOptions) {
  using T = TypeParam;
  for_each_isa([] {
    for (Layout a : layouts) {
      for (Layout b : layouts) {
        for (int options = 0; options < 8; ++options) {
          for (const auto& [m, n, k] : {std::array{1, 40, 33}, {40, 1, 33}, {3, 50, 9}, {7, 35, 20}, {33, 4, 40}}) {
            expect_reference<T>(m, n, k, a, b, options & 1, options & 2, options & 4, options % 3);
          }
        }
      }
    }
  });
}

TYPED_TEST(Gemm, EverySmallSize) {
  using T = TypeParam;
  for_each_isa([] {
    for (int64_t m : {0, 1, 2, 3, 4, 5, 6, 7, 13, 15, 29}) {
      for (int64_t n : {0, 1, 2, 3, 5, 8, 9, 16, 17, 31, 33, 49}) {
        for (int64_t k : {0, 1, 2, 7, 8, 17}) {
          expect_reference<T>(m, n, k, Layout::rows, Layout::rows);
          expect_reference<T>(m, n, k, Layout::rows, Layout::columns);
          expect_reference<T>(m, n, k, Layout::columns, Layout::rows, true, true, true);
        }
      }
    }
  });
}

// Beyond the blocks along k, rows and columns. Values stay exact in float and double only.
template <class T>
void check_large() {
  for_each_isa([] {
    for (const auto& [m, n, k] : {std::array{260, 100, 300},
                                  {20, 700, 600},
                                  {700, 20, 600},
                                  {3, 1000, 1100},
                                  {1, 300, 2000},
                                  {500, 500, 3},
                                  {110, 530, 520},
                                  {65, 129, 257}}) {
      for (Layout a : {Layout::rows, Layout::columns}) {
        for (Layout b : {Layout::rows, Layout::columns}) {
          expect_reference<T>(m, n, k, a, b);
          expect_reference<T>(m, n, k, a, b, true, true, true, 5);
        }
      }
    }
  });
}

TEST(GemmLarge, Float) { check_large<float>(); }
TEST(GemmLarge, Double) { check_large<double>(); }

TEST(Gemm, SumsAreAccurate) {
  const int64_t m = 37, n = 65, k = 1000;
  const auto a = random_floats(m * k, 1), b = random_floats(k * n, 2);
  std::vector<float> expected(m * n), c(m * n);
  cpu::gemm_reference<float>(m, n, k, {a.data(), k, 1}, {b.data(), n, 1}, expected.data(), n);
  for_each_isa([&] {
    cpu::gemm<float>(m, n, k, {a.data(), k, 1}, {b.data(), n, 1}, c.data(), n);
    for (std::size_t i = 0; i < c.size(); ++i) ASSERT_NEAR(c[i], expected[i], 1e-4);
  });
}

TEST(Gemm, HalfPrecisionRoundsOnce) {
  const std::vector<bfloat16> ones(1000, bfloat16(1));
  bfloat16 sum{};
  cpu::gemm<bfloat16>(1, 1, 1000, {ones.data(), 1000, 1}, {ones.data(), 1, 1}, &sum, 1);
  EXPECT_EQ(float(sum), 1000);
}

TEST(Gemm, ZeroTimesInfinityIsNaN) {
  for_each_isa([] {
    for (int64_t m : {1, 5, 60}) {
      for (int64_t n : {1, 7, 40}) {
        const int64_t k = 20;
        std::vector<float> a(m * k, 0.0f), b(k * n, 1.0f), c(m * n);
        b[std::size_t(3 * n)] = std::numeric_limits<float>::infinity();
        cpu::gemm<float>(m, n, k, {a.data(), k, 1}, {b.data(), n, 1}, c.data(), n);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) EXPECT_EQ(std::isnan(c[std::size_t(i * n + j)]), j == 0);
        }
      }
    }
  });
}

TEST(Gemm, ThreadsDoNotChangeTheResult) {
  for_each_isa([] {
    for (const auto& [m, n, k] :
         {std::array<int64_t, 3>{256, 300, 300}, {64, 500, 800}, {2, 4000, 1000}, {3000, 16, 70}, {300, 400, 1}}) {
      for (bool transpose : {false, true}) {
        const auto a = random_floats(m * k, 1), b = random_floats(k * n, 2);
        const MatrixView<float> view_b =
            transpose ? MatrixView<float>{b.data(), 1, k} : MatrixView<float>{b.data(), n, 1};
        std::vector<float> one(m * n), more(m * n);
        set_num_threads(1);
        cpu::gemm<float>(m, n, k, {a.data(), k, 1}, view_b, one.data(), n);
        for (int threads : {2, 3}) {
          set_num_threads(threads);
          cpu::gemm<float>(m, n, k, {a.data(), k, 1}, view_b, more.data(), n);
          EXPECT_EQ(std::memcmp(one.data(), more.data(), one.size() * sizeof(float)), 0) << m << " " << n << " " << k;
        }
      }
    }
  });
  set_num_threads(1);
}

TEST(Gemm, BatchesShareOrStep) {
  const int64_t batch = 9, m = 5, n = 18, k = 11;
  const auto a = whole_numbers<float>(batch * m * k, 1), b = whole_numbers<float>(k * n, 2);
  std::vector<float> expected(batch * m * n), c(batch * m * n, -1.0f);
  for (int64_t i = 0; i < batch; ++i) {
    cpu::gemm_reference<float>(m, n, k, {a.data() + i * m * k, k, 1}, {b.data(), n, 1}, expected.data() + i * m * n, n);
  }
  cpu::gemm_batched<float>(batch, m, n, k, {a.data(), k, 1}, m * k, {b.data(), n, 1}, 0, c.data(), n, m * n);
  EXPECT_EQ(c, expected);
  cpu::gemm_batched<float>(0, m, n, k, {a.data(), k, 1}, m * k, {b.data(), n, 1}, 0, c.data(), n, m * n);
}

}  // namespace
