// The 8-bit convolution against its definition, with exact sums.
#include <tenet/kernels/cpu/conv2d_int8.hpp>

#include "isas.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace {

using namespace tenet;
using cpu::Conv2dShape;

Conv2dShape shape(int64_t n, int64_t c, int64_t h, int64_t w, int64_t o, int64_t kh, int64_t kw, int64_t stride = 1,
                  int64_t pad = 0, int64_t dilation = 1, int64_t groups = 1) {
  Conv2dShape s{n, c, h, w, o, kh, kw, 0, 0, stride, stride, pad, pad, dilation, dilation, groups};
  s.oh = (h + 2 * pad - dilation * (kh - 1) - 1) / stride + 1;
  s.ow = (w + 2 * pad - dilation * (kw - 1) - 1) / stride + 1;
  return s;
}

void check(const Conv2dShape& s) {
  SCOPED_TRACE(::testing::Message() << s.n << "x" << s.c << "x" << s.h << "x" << s.w << " -> " << s.o << ", " << s.kh
                                    << "x" << s.kw << " stride " << s.stride_h << " pad " << s.pad_h << " groups "
                                    << s.groups);
  std::mt19937 random(3);
  const int64_t taps = s.c / s.groups * s.kh * s.kw;
  const int32_t zero = 77;
  std::vector<float> x(std::size_t(s.n * s.c * s.h * s.w));
  std::vector<int32_t> q(x.size()), wide(std::size_t(s.o * taps)), sums(std::size_t(s.n * s.o * s.oh * s.ow));
  std::vector<int8_t> w(wide.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    q[i] = int32_t(random() % 256) - zero;
    x[i] = float(q[i]) * 0.5f + (q[i] > -zero && q[i] < 255 - zero ? 0.2f : 0.0f);
  }
  std::vector<int32_t> weight_sums(std::size_t(s.o));
  for (std::size_t i = 0; i < w.size(); ++i) {
    w[i] = int8_t(random());
    wide[i] = w[i];
    weight_sums[i / std::size_t(taps)] += w[i];
  }
  cpu::conv2d_forward_reference<int32_t>(s, q.data(), wide.data(), nullptr, sums.data());
  std::vector<uint8_t> bytes(x.size()), rounded(sums.size());
  for (std::size_t i = 0; i < x.size(); ++i) bytes[i] = uint8_t(q[i] + zero);
  std::vector<int32_t> correction(weight_sums);
  for (int32_t& sum : correction) sum *= -zero;
  std::vector<float> scale(std::size_t(s.o)), bias(scale), y(sums.size()), same(y);
  for (std::size_t i = 0; i < scale.size(); ++i) scale[i] = 0.01f * float(i + 1), bias[i] = float(i) - 2;
  const cpu::QuantizeOptions input{2.0f, zero, 0, 255};
  for_each_isa_and_dots([&] {
    std::vector<std::uint32_t> packed(std::size_t(cpu::conv2d_int8_weight_size(s)));
    cpu::pack_conv2d_int8_weight(s, w.data(), packed.data());
    for (const bool by_output : {false, true}) {
      cpu::ScaleOptions output{scale.data(), by_output, correction.data(), by_output ? bias.data() : nullptr};
      EXPECT_TRUE(cpu::conv2d_int8<int8_t>(s, x.data(), input, packed.data(), output, y.data()));
      EXPECT_TRUE(cpu::conv2d_int8<int8_t>(s, bytes.data(), input, packed.data(), output, same.data()));
      output.zero_point = 100;
      EXPECT_TRUE(cpu::conv2d_int8<int8_t>(s, bytes.data(), input, packed.data(), output, rounded.data()));
      for (std::size_t i = 0; i < y.size(); ++i) {
        const std::size_t o = i / std::size_t(s.oh * s.ow) % std::size_t(s.o);
        const float product = float(sums[i]) * scale[by_output ? o : 0];
        const float value = by_output ? product + bias[o] : product;
        ASSERT_EQ(y[i], value) << i;
        ASSERT_EQ(same[i], value) << i;
        ASSERT_EQ(int(rounded[i]), int(std::clamp(std::nearbyint(value) + 100, 0.0f, 255.0f))) << i;
      }
    }
  });
  x[x.size() / 2] = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::uint32_t> packed(std::size_t(cpu::conv2d_int8_weight_size(s)));
  cpu::pack_conv2d_int8_weight(s, w.data(), packed.data());
  EXPECT_FALSE(cpu::conv2d_int8<int8_t>(s, x.data(), input, packed.data(), {scale.data()}, y.data()));
}

TEST(Conv2dInt8, Shapes) {
  check(shape(2, 1, 28, 28, 20, 5, 5));
  check(shape(2, 20, 12, 12, 50, 5, 5));
  check(shape(1, 3, 9, 11, 7, 3, 3, 1, 1));
  check(shape(3, 5, 6, 5, 4, 2, 3));
  check(shape(1, 4, 3, 3, 3, 3, 3));
  check(shape(2, 2, 1, 1, 2, 1, 1));
  check(shape(1, 64, 14, 14, 64, 3, 3, 1, 1));
  check(shape(2, 17, 8, 8, 33, 1, 1));
}

TEST(Conv2dInt8, StridesPaddingDilationGroups) {
  check(shape(1, 3, 17, 19, 5, 3, 3, 2, 1));
  check(shape(2, 6, 13, 10, 4, 2, 2, 3, 2));
  check(shape(1, 5, 12, 13, 6, 3, 3, 1, 2, 2));
  check(shape(2, 8, 9, 9, 6, 3, 3, 2, 1, 2, 2));
  check(shape(2, 6, 10, 10, 6, 3, 3, 1, 1, 1, 6));
  check(shape(1, 9, 7, 7, 12, 1, 1, 1, 0, 1, 3));
  check(shape(1, 2, 2, 3, 3, 2, 2, 1, 3));
  check(shape(1, 6, 8, 8, 5, 1, 1, 2));
}

}  // namespace
