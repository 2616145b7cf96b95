#include <gtest/gtest.h>
#include <tenet/kernels/cpu/copy.hpp>
#include <tenet/kernels/cpu/pointwise.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "strided_array.hpp"

namespace tenet {
namespace {

using test::StridedArray;

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct MultiplyAdd {
  template <class T>
  T operator()(T a, T b, T c) const {
    return a * b + c;
  }
};
struct Less {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct Select {
  float operator()(bool c, float a, float b) const { return c ? a : b; }
};
struct Constant {
  float value;
  float operator()() const { return value; }
};
struct Power {
  static constexpr bool vectorize = false;
  float operator()(float a, float b) const { return std::pow(a, b); }
};

// Every combination of layouts of out, a and b over one shape, against a plain loop.
template <class T>
void check_layouts(const std::vector<int64_t>& shape) {
  for (const auto& out_layout : test::dense_layouts(shape))
    for (const auto& a_layout : test::layouts(shape))
      for (const auto& b_layout : test::layouts(shape)) {
        StridedArray<T> out(out_layout), a(a_layout), b(b_layout);
        a.fill(1);
        b.fill(2);
        cpu::map(Add{}, out.rank(), shape.data(), out.span(), a.view(), b.view());
        int64_t i = 0;
        out.each([&](T& value, const std::vector<int64_t>& index) {
          const T expected = T(cpu::compute_t<T>(a.at(index)) + cpu::compute_t<T>(b.at(index)));
          ASSERT_EQ(value, expected) << "element " << i << " of " << ::testing::PrintToString(shape);
          ++i;
        });
        ASSERT_TRUE(out.gaps_untouched());
      }
}

TEST(Map, TakesAnyLayout) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{},
                                            {1},
                                            {7},
                                            {0},
                                            {3, 0, 2},
                                            {2, 3},
                                            {1, 5, 1},
                                            {3, 4, 5},
                                            {2, 700},
                                            {3, 2, 300},
                                            {700, 3}})
    check_layouts<float>(shape);
}

TEST(Map, TakesEveryType) {
  const std::vector<int64_t> shape{3, 5, 37};
  check_layouts<double>(shape);
  check_layouts<half>(shape);
  check_layouts<bfloat16>(shape);
  check_layouts<int8_t>(shape);
  check_layouts<uint8_t>(shape);
  check_layouts<int32_t>(shape);
  check_layouts<int64_t>(shape);
}

TEST(Map, TakesZeroToThreeInputsOfMixedTypes) {
  const int64_t n = 1000, one = 1, none = 0;
  std::vector<float> a(n), b(n), out(n, -1.f);
  for (int64_t i = 0; i < n; ++i) a[i] = float(i % 13), b[i] = float(i % 7);
  std::vector<uint8_t> less(n);
  const cpu::Strided<const float> va{a.data(), &one}, vb{b.data(), &one};
  bool* const flags = reinterpret_cast<bool*>(less.data());
  cpu::map(Less{}, 1, &n, cpu::Strided<bool>{flags, &one}, va, vb);
  cpu::map(Select{}, 1, &n, cpu::Strided<float>{out.data(), &one}, cpu::Strided<const bool>{flags, &one}, va, vb);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[i], std::min(a[i], b[i]));
  const float k = 3;
  cpu::map(MultiplyAdd{}, 1, &n, cpu::Strided<float>{out.data(), &one}, va, cpu::Strided<const float>{&k, &none}, vb);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[i], a[i] * 3 + b[i]);
  cpu::map(Power{}, 1, &n, cpu::Strided<float>{out.data(), &one}, va, vb);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[i], std::pow(a[i], b[i]));
  cpu::map(Constant{2.5f}, 1, &n, cpu::Strided<float>{out.data(), &one});
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[i], 2.5f);
}

TEST(Map, WritesOverItsInput) {
  for (const int64_t n : {3, 40, 70000}) {
    const int64_t shape[] = {n, 2}, strides[] = {3, 1};
    std::vector<float> x(std::size_t(3 * n), 1.f);
    std::vector<half> h(std::size_t(3 * n), half(1.f));
    cpu::map(Add{}, 2, shape, cpu::Strided<float>{x.data(), strides}, cpu::Strided<const float>{x.data(), strides},
             cpu::Strided<const float>{x.data(), strides});
    cpu::map(Add{}, 2, shape, cpu::Strided<half>{h.data(), strides}, cpu::Strided<const half>{h.data(), strides},
             cpu::Strided<const half>{h.data(), strides});
    for (int64_t i = 0; i < 3 * n; ++i) ASSERT_EQ(x[i], i % 3 < 2 ? 2.f : 1.f);
    for (int64_t i = 0; i < 3 * n; ++i) ASSERT_EQ(float(h[i]), i % 3 < 2 ? 2.f : 1.f);
  }
}

TEST(Map, GivesTheSameBitsOnEveryInstructionSetAndNumberOfThreads) {
  const int64_t n = 100003;
  std::vector<float> a(n), b(n), c(n), expected(n), out(n);
  for (int64_t i = 0; i < n; ++i) {
    a[i] = std::sin(float(i));
    b[i] = std::cos(float(3 * i));
    c[i] = -a[i] * b[i];
  }
  const cpu::Isa best = cpu::isa();
  const int threads = num_threads();
  cpu::set_isa(cpu::Isa::baseline);
  set_num_threads(1);
  cpu::map_contiguous(Add{}, n, expected.data(), a.data(), b.data());
  for (const cpu::Isa isa : {cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512})
    for (const int t : {1, 2, 3}) {
      cpu::set_isa(isa);
      set_num_threads(t);
      std::fill(out.begin(), out.end(), 0.f);
      cpu::map_contiguous(Add{}, n, out.data(), a.data(), b.data());
      EXPECT_EQ(std::memcmp(out.data(), expected.data(), n * sizeof(float)), 0);
    }
  cpu::set_isa(best);
  // A product and a sum in one functor: the place within a vector must not decide how they are rounded.
  cpu::map_contiguous(MultiplyAdd{}, n, expected.data(), a.data(), b.data(), c.data());
  for (int64_t begin = 0; begin < 70; ++begin) {
    cpu::map_contiguous(MultiplyAdd{}, 70 - begin, out.data() + begin, a.data() + begin, b.data() + begin,
                        c.data() + begin);
    EXPECT_EQ(std::memcmp(out.data() + begin, expected.data() + begin, (70 - begin) * sizeof(float)), 0);
  }
  set_num_threads(threads);
}

// Sum, difference and first of two inputs.
struct Three {
  template <class T>
  cpu::Values<T, 3> operator()(T a, T b) const {
    return {{a + b, a - b, a}};
  }
};

template <class T>
void check_many(const std::vector<int64_t>& shape) {
  for (const auto& out_layout : test::dense_layouts(shape))
    for (const auto& a_layout : test::layouts(shape))
      for (const auto& b_layout : {test::dense_layouts(shape)[0], test::layouts(shape).back()})
        for (const bool wanted : {true, false}) {
          StridedArray<T> sum(out_layout), difference(out_layout), first(out_layout), a(a_layout), b(b_layout);
          a.fill(1);
          b.fill(2);
          T* const out[] = {sum.span().data, wanted ? difference.span().data : nullptr, first.span().data};
          const cpu::Strided<const T> in[] = {a.view(), b.view()};
          cpu::map_many<3, 2>(Three{}, sum.rank(), shape.data(), out, sum.span().strides, in);
          const auto expect = [&](StridedArray<T>& array, auto expected) {
            array.each([&](T& value, const std::vector<int64_t>& index) {
              ASSERT_EQ(value, T(expected(cpu::compute_t<T>(a.at(index)), cpu::compute_t<T>(b.at(index)))))
                  << ::testing::PrintToString(shape);
            });
            ASSERT_TRUE(array.gaps_untouched());
          };
          expect(sum, [](auto x, auto y) { return x + y; });
          expect(difference, [&](auto x, auto y) { return wanted ? x - y : decltype(x)(77); });
          expect(first, [](auto x, auto) { return x; });
        }
}

TEST(MapMany, TakesAnyLayout) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, {1}, {0}, {7}, {3, 0, 2}, {3, 4, 5}, {2, 700}, {700, 3}, {3, 2, 300}}) {
    check_many<float>(shape);
    check_many<half>(shape);
  }
  check_many<double>({33000, 2});
}

TEST(Map, RejectsTooManyDimensions) {
  const int64_t shape[] = {1, 1, 1, 1, 1, 1, 1, 1, 2}, strides[] = {4, 4, 4, 4, 4, 4, 4, 4, 2};
  float x[4] = {};
  EXPECT_THROW(cpu::map(Constant{0}, 9, shape, cpu::Strided<float>{x, strides}), ShapeError);
}

template <class To, class From>
void check_copy(const std::vector<int64_t>& shape) {
  for (const auto& out_layout : test::dense_layouts(shape))
    for (const auto& in_layout : test::layouts(shape)) {
      StridedArray<To> out(out_layout);
      StridedArray<From> in(in_layout);
      in.fill(1);
      cpu::copy(out.rank(), shape.data(), out.span(), in.view());
      out.each([&](To& value, const std::vector<int64_t>& index) {
        ASSERT_EQ(value, cpu::cast<To>(in.at(index))) << ::testing::PrintToString(shape);
      });
      ASSERT_TRUE(out.gaps_untouched());
    }
}

TEST(Copy, TakesAnyLayout) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{},
                                            {1},
                                            {5},
                                            {0, 4},
                                            {3, 4},
                                            {40, 33},
                                            {100, 129},
                                            {3, 30, 20},
                                            {2, 70, 3, 17},
                                            {150, 80}}) {
    check_copy<float, float>(shape);
    check_copy<double, double>(shape);
    check_copy<half, half>(shape);
    check_copy<bool, bool>(shape);
    check_copy<float, int32_t>(shape);
    check_copy<half, float>(shape);
    check_copy<float, bfloat16>(shape);
  }
}

template <class To, class From>
To converted(From x) {
  // Through the array kernel, away from the end of a vector.
  const int64_t n = 37, one = 1;
  From in[n];
  To out[n];
  std::fill_n(in, n, x);
  cpu::copy(1, &n, cpu::Strided<To>{out, &one}, cpu::Strided<const From>{in, &one});
  EXPECT_EQ(std::memcmp(&out[0], &out[36], sizeof(To)), 0);
  return out[3];
}

uint16_t bfloat16_bits(uint32_t x) {
  return __builtin_bit_cast(uint16_t, converted<bfloat16>(__builtin_bit_cast(float, x)));
}

TEST(Copy, RoundsToBfloat16) {
  EXPECT_EQ(bfloat16_bits(0x3f808000), 0x3f80);
  EXPECT_EQ(bfloat16_bits(0x3f818000), 0x3f82);
  EXPECT_EQ(bfloat16_bits(0x3f808001), 0x3f81);
  EXPECT_EQ(__builtin_bit_cast(uint16_t, converted<bfloat16>(3.14f)), 0x4049);
  EXPECT_EQ(bfloat16_bits(0x3e89ccd5), 0x3e8a);
  EXPECT_EQ(bfloat16_bits(0x7f7fffff), 0x7f80);
  EXPECT_EQ(bfloat16_bits(0x80000000), 0x8000);
  EXPECT_EQ(bfloat16_bits(0x00018000), 0x0002);
  EXPECT_EQ(bfloat16_bits(0x7f800001), 0x7fc0);
  EXPECT_EQ(bfloat16_bits(0xff800001), 0xffc0);
  EXPECT_EQ(bfloat16_bits(0x7fffffff), 0x7fff);
}

TEST(Copy, RoundsToHalf) {
  const float tiny = std::ldexp(1.f, -24), infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(float(converted<half>(65519.99f)), 65504.f);
  EXPECT_EQ(float(converted<half>(65520.f)), infinity);
  EXPECT_EQ(float(converted<half>(-65520.f)), -infinity);
  EXPECT_EQ(float(converted<half>(std::ldexp(1.f, -25))), 0.f);
  EXPECT_EQ(float(converted<half>(std::nextafter(std::ldexp(1.f, -25), 1.f))), tiny);
  EXPECT_EQ(float(converted<half>(2049.f)), 2048.f);
  EXPECT_EQ(float(converted<half>(2051.f)), 2052.f);
  EXPECT_EQ(float(converted<half>(infinity)), infinity);
  EXPECT_TRUE(std::isnan(float(converted<half>(std::nanf("")))));
  EXPECT_TRUE(std::signbit(float(converted<half>(-0.f))));
}

TEST(Copy, HalfToFloatAndBackIsTheIdentity) {
  std::vector<half> in(65536), back(65536);
  std::vector<float> wide(65536);
  for (int u = 0; u < 65536; ++u) in[u].x = uint16_t(u);
  cpu::convert(65536, wide.data(), in.data());
  cpu::convert(65536, back.data(), wide.data());
  for (int u = 0; u < 65536; ++u) {
    const bool nan = (u & 0x7fff) > 0x7c00;
    const int expected = nan ? u | 0x200 : u;
    ASSERT_EQ(int(back[u].x), expected);
    const int exponent = u >> 10 & 31, fraction = u & 1023;
    if (nan || exponent == 31) continue;
    const double value = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
    ASSERT_EQ(wide[u], float(u & 0x8000 ? -value : value));
  }
}

TEST(Copy, SaturatesFloatToInteger) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ((converted<int8_t>(300.f)), 127);
  EXPECT_EQ((converted<int8_t>(-1e30f)), -128);
  EXPECT_EQ((converted<uint8_t>(-1.f)), 0);
  EXPECT_EQ((converted<uint8_t>(255.9f)), 255);
  EXPECT_EQ((converted<int32_t>(infinity)), std::numeric_limits<int32_t>::max());
  EXPECT_EQ((converted<int32_t>(-2147483648.f)), std::numeric_limits<int32_t>::min());
  EXPECT_EQ((converted<int64_t>(9.3e18)), std::numeric_limits<int64_t>::max());
  EXPECT_EQ((converted<int64_t>(-infinity)), std::numeric_limits<int64_t>::min());
  EXPECT_EQ((converted<int64_t>(std::nan(""))), 0);
  EXPECT_EQ((converted<int32_t>(-2.7)), -2);
  EXPECT_EQ((converted<bool>(std::nan(""))), true);
  EXPECT_EQ((converted<bool>(0.5f)), true);
  EXPECT_EQ((converted<bool>(-0.f)), false);
  EXPECT_EQ((converted<int32_t>(half(-3.5f))), -3);
}

}  // namespace
}  // namespace tenet
