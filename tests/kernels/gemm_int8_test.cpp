#include "isas.hpp"
#include "operand.hpp"

#include <tenet/kernels/cpu/gemm_int8.hpp>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

using namespace tenet;
using cpu::GemmOptions;
using cpu::MatrixView;
using cpu::ScaleOptions;

namespace {

// Over the whole range, the extremes often.
template <class T>
std::vector<T> numbers(int64_t count, std::uint64_t seed) {
  std::vector<T> v;
  for (int64_t i = 0; i < count; ++i) {
    const int choice = int(next_random(seed) >> 62);
    v.push_back(choice == 0   ? std::numeric_limits<T>::min()
                : choice == 1 ? std::numeric_limits<T>::max()
                              : static_cast<T>(seed >> 40));
  }
  return v;
}

template <class A>
std::vector<std::int64_t> exact_sums(int64_t m, int64_t n, int64_t k, MatrixView<A> a, MatrixView<int8_t> b) {
  std::vector<std::int64_t> sums(std::size_t(m * n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t p = 0; p < k; ++p) {
        sums[std::size_t(i * n + j)] +=
            std::int64_t(a.data[i * a.row_stride + p * a.col_stride]) * b.data[p * b.row_stride + j * b.col_stride];
      }
    }
  }
  return sums;
}

template <class A>
void expect_exact(int64_t m, int64_t n, int64_t k, Layout layout_a, Layout layout_b, bool accumulate = false,
                  bool row_bias = false, bool col_bias = false, int64_t gap = 0) {
  SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " layouts " +
               std::to_string(int(layout_a)) + std::to_string(int(layout_b)));
  const Operand<A> a(m, k, layout_a, numbers<A>, 1);
  const Operand<int8_t> b(k, n, layout_b, numbers<int8_t>, 2);
  const std::vector<int32_t> rows(std::size_t(m), 1000), cols(std::size_t(n), -70000);
  const int64_t ldc = n + gap;
  std::vector<int32_t> c(std::size_t(m * ldc), 5);
  const std::vector<std::int64_t> sums = exact_sums<A>(m, n, k, a.view, b.view);
  cpu::gemm_int8<A>(m, n, k, a.view, b.view, c.data(), ldc,
                    {accumulate, row_bias ? rows.data() : nullptr, col_bias ? cols.data() : nullptr});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < ldc; ++j) {
      const std::int64_t expected =
          j >= n ? 5
                 : sums[std::size_t(i * n + j)] + (accumulate ? 5 : 0) + (row_bias ? 1000 : 0) - (col_bias ? 70000 : 0);
      ASSERT_EQ(c[std::size_t(i * ldc + j)], expected) << "at " << i << ", " << j;
    }
  }
}

template <class A>
class GemmInt8 : public testing::Test {};
using Types = testing::Types<int8_t, uint8_t>;
TYPED_TEST_SUITE(GemmInt8, Types);

TYPED_TEST(GemmInt8, LayoutsAndOptions) {
  using A = TypeParam;
  for_each_isa_and_dots([] {
    for (Layout a : layouts) {
      for (Layout b : layouts) {
        for (int options = 0; options < 8; ++options) {
          for (const auto& [m, n, k] : {std::array{1, 40, 133}, {40, 1, 133}, {3, 50, 9}, {7, 35, 70}, {33, 4, 140}}) {
            expect_exact<A>(m, n, k, a, b, options & 1, options & 2, options & 4, options % 3);
          }
        }
      }
    }
  });
}

TYPED_TEST(GemmInt8, EverySmallSize) {
  using A = TypeParam;
  for_each_isa_and_dots([] {
    for (int64_t m : {0, 1, 2, 4, 5, 6, 7, 13, 15, 29}) {
      for (int64_t n : {0, 1, 3, 5, 8, 9, 16, 17, 33, 49}) {
        for (int64_t k : {0, 1, 2, 3, 4, 7, 8, 17, 37, 67}) {
          expect_exact<A>(m, n, k, Layout::rows, Layout::rows);
          expect_exact<A>(m, n, k, Layout::rows, Layout::columns);
          expect_exact<A>(m, n, k, Layout::columns, Layout::rows, true, true, true);
        }
      }
    }
  });
}

// Beyond the blocks along k, rows and columns.
TYPED_TEST(GemmInt8, LargeSizes) {
  using A = TypeParam;
  for_each_isa_and_dots([] {
    for (const auto& [m, n, k] :
         {std::array{260, 100, 300}, {20, 700, 600}, {700, 20, 60}, {3, 1000, 1100}, {7, 40, 2100}}) {
      for (Layout a : {Layout::rows, Layout::columns}) {
        for (Layout b : {Layout::rows, Layout::columns}) expect_exact<A>(m, n, k, a, b, true, true, true, 5);
      }
    }
  });
}

template <class A>
int32_t dot(std::vector<A> a, std::vector<int8_t> b) {
  int32_t sum = 0;
  cpu::gemm_int8<A>(1, 1, int64_t(a.size()), {a.data(), int64_t(a.size()), 1}, {b.data(), 1, 1}, &sum, 1);
  return sum;
}

// Pairs of products that do not fit 16 bits. https://github.com/pytorch/pytorch/issues/44939
TEST(GemmInt8Extremes, NothingSaturates) {
  for_each_isa_and_dots([] {
    EXPECT_EQ(dot<uint8_t>({211, 171}, {71, 107}), 33278);
    EXPECT_EQ(dot<uint8_t>({255, 255}, {127, 127}), 64770);
    EXPECT_EQ(dot<uint8_t>({255, 255}, {-128, -128}), -65280);
    EXPECT_EQ(dot<int8_t>({-128, -128}, {-128, -128}), 32768);
    for (int64_t m : {1, 4, 6, 30}) {
      const int64_t n = 40, k = 4096;
      const std::vector<uint8_t> a(std::size_t(m * k), uint8_t(255));
      const std::vector<int8_t> signed_a(std::size_t(m * k), int8_t(-128)), b(std::size_t(k * n), int8_t(-128));
      std::vector<int32_t> c(std::size_t(m * n));
      for (bool columns : {false, true}) {
        const MatrixView<int8_t> view =
            columns ? MatrixView<int8_t>{b.data(), 1, k} : MatrixView<int8_t>{b.data(), n, 1};
        cpu::gemm_int8<uint8_t>(m, n, k, {a.data(), k, 1}, view, c.data(), n);
        for (int32_t x : c) ASSERT_EQ(x, -255 * 128 * k);
        cpu::gemm_int8<int8_t>(m, n, k, {signed_a.data(), k, 1}, view, c.data(), n);
        for (int32_t x : c) ASSERT_EQ(x, 128 * 128 * k);
      }
    }
  });
}

TEST(GemmInt8Extremes, SumsWrapAround) {
  const int64_t k = 140000;
  const std::vector<int8_t> lowest(std::size_t(k), int8_t(-128));
  for_each_isa_and_dots(
      [&] { EXPECT_EQ(dot<int8_t>(lowest, lowest), int32_t(std::uint32_t(16384) * std::uint32_t(k))); });
}

struct Scaling {
  int64_t m, n, k;
  std::vector<float> scale, bias;
  std::vector<int32_t> sum_bias;
  ScaleOptions options;
};

Scaling scaling(int64_t m, int64_t n, int64_t k, int choice, int32_t zero_point) {
  Scaling s{m, n, k, {}, {}, {}, {}};
  for (int64_t j = 0; j < n; ++j) {
    s.scale.push_back((choice & 4 ? 0.5f : 0.0007f) * float(1 + j % 5) * (j % 7 == 6 ? -1.0f : 1.0f));
    s.bias.push_back(float(j % 11) - 5.25f);
    s.sum_bias.push_back(int32_t(j % 13) * 1000);
  }
  s.options = {s.scale.data(), (choice & 1) != 0, choice & 2 ? s.sum_bias.data() : nullptr,
               choice & 2 ? s.bias.data() : nullptr, zero_point};
  return s;
}

template <class A, class C>
void expect_scaled(const Scaling& s, Layout layout_b) {
  const Operand<A> a(s.m, s.k, Layout::rows, numbers<A>, 1);
  const Operand<int8_t> b(s.k, s.n, layout_b, numbers<int8_t>, 2);
  const std::vector<std::int64_t> sums = exact_sums<A>(s.m, s.n, s.k, a.view, b.view);
  std::vector<C> c(std::size_t(s.m * (s.n + 1)), C(3));
  cpu::gemm_int8<A>(s.m, s.n, s.k, a.view, b.view, c.data(), s.n + 1, s.options);
  const ScaleOptions& o = s.options;
  for (int64_t i = 0; i < s.m; ++i) {
    ASSERT_EQ(c[std::size_t(i * (s.n + 1) + s.n)], C(3));
    for (int64_t j = 0; j < s.n; ++j) {
      const float sum = float(int32_t(sums[std::size_t(i * s.n + j)] + (o.sum_bias ? o.sum_bias[j] : 0)));
      volatile float x = sum * o.scale[o.scale_columns ? j : 0];  // rounded before the bias comes
      x = x + (o.bias ? o.bias[j] : 0.0f);
      C expected;
      if constexpr (std::is_same_v<C, float>) {
        expected = x;
      } else {
        const double nearest = std::nearbyint(double(x)) + o.zero_point;
        expected = C(
            std::min<double>(std::max<double>(nearest, std::numeric_limits<C>::min()), std::numeric_limits<C>::max()));
      }
      ASSERT_EQ(c[std::size_t(i * (s.n + 1) + j)], expected) << "at " << i << ", " << j;
    }
  }
}

TYPED_TEST(GemmInt8, ScaledResults) {
  using A = TypeParam;
  for_each_isa_and_dots([] {
    for (int choice = 0; choice < 8; ++choice) {
      for (const auto& [m, n, k] :
           {std::array{1, 700, 64}, {2, 9, 3}, {40, 70, 33}, {70, 5, 40}, {6, 20, 0}, {300, 3, 70}}) {
        for (Layout b : {Layout::rows, Layout::columns}) {
          expect_scaled<A, float>(scaling(m, n, k, choice, 0), b);
          expect_scaled<A, int8_t>(scaling(m, n, k, choice, choice & 1 ? -128 : 17), b);
          expect_scaled<A, uint8_t>(scaling(m, n, k, choice, choice & 1 ? 255 : 0), b);
        }
      }
    }
  });
}

TEST(GemmInt8Extremes, TiesGoToEvenAndNaNToTheZeroPoint) {
  const std::vector<uint8_t> ones(8, uint8_t(1));
  const std::vector<int8_t> b{1, 3, 5, -1, -3, 127, -128, 0};
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for_each_isa_and_dots([&] {
    std::array<int8_t, 8> c{};
    const float half = 0.5f;
    cpu::gemm_int8<uint8_t>(1, 8, 1, {ones.data(), 1, 1}, {b.data(), 8, 1}, c.data(), 8, ScaleOptions{&half});
    EXPECT_EQ(c, (std::array<int8_t, 8>{0, 2, 2, 0, -2, 64, -64, 0}));
    std::array<uint8_t, 8> u{};
    cpu::gemm_int8<uint8_t>(1, 8, 1, {ones.data(), 1, 1}, {b.data(), 8, 1}, u.data(), 8,
                            ScaleOptions{&infinity, false, nullptr, nullptr, 7});
    EXPECT_EQ(u, (std::array<uint8_t, 8>{255, 255, 255, 0, 0, 255, 0, 7}));  // zero times infinity is NaN
    cpu::gemm_int8<uint8_t>(1, 8, 1, {ones.data(), 1, 1}, {b.data(), 8, 1}, u.data(), 8,
                            ScaleOptions{&nan, false, nullptr, nullptr, 7});
    for (uint8_t x : u) EXPECT_EQ(x, 7);
  });
}

TEST(GemmInt8Extremes, ThreadsDoNotChangeTheResult) {
  const int64_t m = 300, n = 500, k = 400;
  const auto a = numbers<uint8_t>(m * k, 1);
  const auto b = numbers<int8_t>(k * n, 2);
  const float scale = 0.01f;
  std::vector<std::vector<float>> results;
  for_each_isa_and_dots([&] {
    for (int threads : {1, 2, 3}) {
      set_num_threads(threads);
      results.emplace_back(std::size_t(m * n));
      cpu::gemm_int8<uint8_t>(m, n, k, {a.data(), k, 1}, {b.data(), n, 1}, results.back().data(), n,
                              ScaleOptions{&scale});
      EXPECT_EQ(results.back(), results.front());
    }
  });
  set_num_threads(1);
}

}  // namespace
