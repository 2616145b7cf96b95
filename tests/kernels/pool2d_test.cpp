#include <gtest/gtest.h>
#include <tenet/kernels/cpu/pool2d.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace tenet {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
const float nan = std::nanf("");

int64_t outputs(int64_t in, int64_t k, int64_t stride, int64_t pad, int64_t dilation) {
  return (in + 2 * pad - dilation * (k - 1) - 1) / stride + 1;
}

cpu::Pool2dShape pool_shape(int64_t planes, int64_t h, int64_t w, int64_t kh, int64_t kw, int64_t stride,
                            int64_t pad = 0, int64_t dilation = 1) {
  return {planes,
          h,
          w,
          outputs(h, kh, stride, pad, dilation),
          outputs(w, kw, stride, pad, dilation),
          kh,
          kw,
          stride,
          stride,
          pad,
          pad,
          dilation,
          dilation};
}

struct Pooled {
  std::vector<float> y, dx;
  std::vector<uint8_t> tap;
};

Pooled pool(const cpu::Pool2dShape& s, const std::vector<float>& x, std::vector<float> dy = {}) {
  const std::size_t in = std::size_t(s.planes * s.h * s.w), out = std::size_t(s.planes * s.oh * s.ow);
  Pooled r{std::vector<float>(out, -7.f), std::vector<float>(in, -7.f), std::vector<uint8_t>(out, 99)};
  EXPECT_EQ(x.size(), in);
  cpu::max_pool2d_forward(s, x.data(), r.y.data(), r.tap.data());
  if (dy.empty()) dy.assign(out, 1.f);
  cpu::max_pool2d_backward(s, dy.data(), r.tap.data(), r.dx.data());
  return r;
}

TEST(MaxPool2d, OfBytes) {
  for (const auto& s : {pool_shape(3, 10, 9, 2, 2, 2), pool_shape(2, 8, 8, 2, 2, 2), pool_shape(2, 6, 38, 2, 2, 2),
                        pool_shape(1, 5, 5, 2, 2, 2), pool_shape(2, 9, 9, 3, 3, 2, 1)}) {
    std::vector<uint8_t> x(std::size_t(s.planes * s.h * s.w)), y(std::size_t(s.planes * s.oh * s.ow));
    std::vector<float> same(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = uint8_t(i * i * 37 + i), same[i] = x[i];
    cpu::max_pool2d_forward(s, x.data(), y.data(), nullptr);
    const std::vector<float> expected = pool(s, same).y;
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(float(y[i]), expected[i]) << i << " of width " << s.w;
  }
}

TEST(MaxPool2d, LetsNaNWin) {
  const auto s = pool_shape(1, 2, 2, 2, 2, 2);
  Pooled r = pool(s, {1, nan, 5, 6});
  EXPECT_TRUE(std::isnan(r.y[0]));
  EXPECT_EQ(r.dx, (std::vector<float>{0, 1, 0, 0}));
  r = pool(s, {nan, nan, nan, nan});
  EXPECT_TRUE(std::isnan(r.y[0]));
  EXPECT_EQ(r.dx, (std::vector<float>{0, 0, 0, 1}));
}

TEST(MaxPool2d, TakesTheFirstOfMinusInfinities) {
  const Pooled r = pool(pool_shape(1, 2, 2, 2, 2, 2), std::vector<float>(4, -infinity));
  EXPECT_EQ(r.y[0], -infinity);
  EXPECT_EQ(r.dx, (std::vector<float>{1, 0, 0, 0}));
}

TEST(MaxPool2d, PadsWithNothing) {
  EXPECT_EQ(pool(pool_shape(1, 3, 3, 3, 3, 1, 1), std::vector<float>(9, -1.f)).y, std::vector<float>(9, -1.f));
  EXPECT_EQ(pool(pool_shape(1, 3, 3, 3, 3, 1, 1), std::vector<float>(9, 1.f)).y, std::vector<float>(9, 1.f));
}

TEST(MaxPool2d, SendsTheGradientToTheFirstOfEqualMaxima) {
  const std::vector<float> x{3, 0, 0, 2, 3, 0, 0, 0, 0, 1, 0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 1, 1, 3, 8, 6};
  const Pooled r = pool(pool_shape(1, 5, 5, 2, 2, 2), x);
  EXPECT_EQ(r.y, (std::vector<float>{3, 2, 0, 1}));
  std::vector<float> dx(25, 0.f);
  dx[0] = dx[3] = dx[10] = dx[13] = 1;
  EXPECT_EQ(r.dx, dx);
}

TEST(MaxPool2d, TakesAnyGeometry) {
  // Against the definition, with the windows read from an image padded by -inf.
  for (const auto& s :
       {pool_shape(2, 7, 9, 3, 3, 2), pool_shape(1, 49, 49, 3, 3, 2), pool_shape(1, 20, 1, 3, 1, 1),
        pool_shape(3, 6, 5, 2, 3, 1, 1), pool_shape(2, 9, 9, 3, 2, 2, 1, 2), pool_shape(2, 5, 5, 4, 4, 3, 2),
        pool_shape(1, 1, 1, 3, 3, 1, 1), pool_shape(2, 12, 12, 2, 2, 2, 1), pool_shape(2, 6, 7, 1, 1, 2),
        pool_shape(0, 6, 7, 2, 2, 2)}) {
    std::vector<float> x(std::size_t(s.planes * s.h * s.w)), dy(std::size_t(s.planes * s.oh * s.ow));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i * 37 % 11) - 5.f;
    for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = float(i % 5) + 1.f;
    const Pooled r = pool(s, x, dy);
    std::vector<float> dx(x.size(), 0.f);
    std::size_t o = 0;
    for (int64_t p = 0; p < s.planes; ++p)
      for (int64_t i = 0; i < s.oh; ++i)
        for (int64_t j = 0; j < s.ow; ++j, ++o) {
          float most = -infinity;
          std::size_t at = x.size();
          for (int64_t t = 0; t < s.kh * s.kw; ++t) {
            const int64_t row = i * s.stride_h - s.pad_h + t / s.kw * s.dil_h;
            const int64_t column = j * s.stride_w - s.pad_w + t % s.kw * s.dil_w;
            if (row < 0 || row >= s.h || column < 0 || column >= s.w) continue;
            const std::size_t place = std::size_t((p * s.h + row) * s.w + column);
            if (x[place] > most) most = x[at = place];
          }
          ASSERT_EQ(r.y[o], most);
          dx[at] += dy[o];
        }
    EXPECT_EQ(r.dx, dx);
  }
}

TEST(MaxPool2d, TwoByTwoIsTheSameOnEveryInstructionSet) {
  // double takes the plain loop.
  const cpu::Isa best = cpu::isa();
  for (const cpu::Isa isa : {cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512}) {
    cpu::set_isa(isa);
    for (int64_t w = 2; w < 44; ++w)
      for (const int64_t h : {2, 5}) {
        const auto s = pool_shape(3, h, w, 2, 2, 2);
        std::vector<float> x(std::size_t(s.planes * h * w));
        const float values[] = {0, 1, nan, -infinity, 1, -0.f, 2, infinity, -3, 0, 2};
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = values[i * i % 11];
        const Pooled fast = pool(s, x);
        const std::vector<double> wide(x.begin(), x.end());
        std::vector<double> wide_y(fast.y.size()), dy(wide_y.size(), 1.0), dx(x.size());
        std::vector<uint8_t> tap(wide_y.size());
        cpu::max_pool2d_forward(s, wide.data(), wide_y.data(), tap.data());
        cpu::max_pool2d_backward(s, dy.data(), tap.data(), dx.data());
        std::vector<float> y(wide_y.begin(), wide_y.end()), alone(y.size());
        ASSERT_EQ(std::memcmp(y.data(), fast.y.data(), y.size() * sizeof(float)), 0) << "width " << w;
        ASSERT_EQ(tap, fast.tap);
        ASSERT_TRUE(std::equal(dx.begin(), dx.end(), fast.dx.begin()));
        cpu::max_pool2d_forward(s, x.data(), alone.data(), nullptr);
        ASSERT_EQ(std::memcmp(y.data(), alone.data(), y.size() * sizeof(float)), 0);
      }
  }
  cpu::set_isa(best);
}

TEST(MaxPool2d, TakesTheOtherTypes) {
  const auto s = pool_shape(1, 4, 4, 2, 2, 2);
  double x[16], y[4], dx[16];
  bfloat16 hx[16], hy[4], hdx[16];
  uint8_t tap[4];
  for (int i = 0; i < 16; ++i) hx[i] = bfloat16(float(x[i] = i * 5 % 16));
  cpu::max_pool2d_forward(s, x, y, tap);
  cpu::max_pool2d_backward(s, y, tap, dx);
  cpu::max_pool2d_forward(s, hx, hy, tap);
  cpu::max_pool2d_backward(s, hy, tap, hdx);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(y[i], double(float(hy[i])));
  double sum = 0;
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(dx[i], double(float(hdx[i])));
    sum += dx[i];
  }
  EXPECT_EQ(sum, y[0] + y[1] + y[2] + y[3]);
}

}  // namespace
}  // namespace tenet
