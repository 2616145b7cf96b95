#include "isas.hpp"

#include <tenet/kernels/cpu/conv2d.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

using namespace tenet;
using cpu::Conv2dShape;

namespace {

int64_t outputs(int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  return (in + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
}

Conv2dShape with_outputs(Conv2dShape s) {
  s.oh = outputs(s.h, s.kh, s.stride_h, s.pad_h, s.dil_h);
  s.ow = outputs(s.w, s.kw, s.stride_w, s.pad_w, s.dil_w);
  return s;
}

struct Geometry {
  int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dil_h = 1, dil_w = 1, groups = 1;
};

Conv2dShape shape(int64_t n, int64_t c, int64_t h, int64_t w, int64_t o, int64_t kh, int64_t kw, Geometry g = {}) {
  return with_outputs(
      {n, c, h, w, o, kh, kw, 0, 0, g.stride_h, g.stride_w, g.pad_h, g.pad_w, g.dil_h, g.dil_w, g.groups});
}

int64_t x_size(const Conv2dShape& s) { return s.n * s.c * s.h * s.w; }
int64_t w_size(const Conv2dShape& s) { return s.o * (s.c / s.groups) * s.kh * s.kw; }
int64_t y_size(const Conv2dShape& s) { return s.n * s.o * s.oh * s.ow; }

std::string str(const Conv2dShape& s) {
  std::string text;
  for (int64_t v :
       {s.n, s.c, s.h, s.w, s.o, s.kh, s.kw, s.stride_h, s.stride_w, s.pad_h, s.pad_w, s.dil_h, s.dil_w, s.groups}) {
    text += std::to_string(v) + " ";
  }
  return text;
}

// Small whole numbers, so that every sum is exact in any order.
template <class T>
std::vector<T> whole_numbers(int64_t count, std::uint64_t seed) {
  std::vector<T> v;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    v.push_back(static_cast<T>(int(seed >> 60) % 5 - 2));
  }
  return v;
}

template <class T>
void expect_equal(const std::vector<T>& got, const std::vector<T>& expected, const char* what) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(static_cast<double>(got[i]), static_cast<double>(expected[i])) << what << " at " << i;
  }
}

template <class T>
void expect_reference(const Conv2dShape& s) {
  SCOPED_TRACE(str(s));
  const auto x = whole_numbers<T>(x_size(s), 1), w = whole_numbers<T>(w_size(s), 2), bias = whole_numbers<T>(s.o, 3);
  const auto dy = whole_numbers<T>(y_size(s), 4);
  const T garbage = static_cast<T>(77);
  std::vector<T> y(dy.size(), garbage), dx(x.size(), garbage), dw(w.size(), garbage);
  std::vector<T> expected_y = y, expected_dx = dx, expected_dw = dw;
  for (const T* b : {bias.data(), static_cast<const T*>(nullptr)}) {
    conv2d_forward_reference(s, x.data(), w.data(), b, expected_y.data());
    conv2d_forward(s, x.data(), w.data(), b, y.data());
    expect_equal(y, expected_y, "y");
  }
  conv2d_backward_data_reference(s, dy.data(), w.data(), expected_dx.data());
  conv2d_backward_data(s, dy.data(), w.data(), dx.data());
  expect_equal(dx, expected_dx, "dx");
  conv2d_backward_weight_reference(s, x.data(), dy.data(), expected_dw.data());
  conv2d_backward_weight(s, x.data(), dy.data(), dw.data());
  expect_equal(dw, expected_dw, "dw");
}

const std::vector<Conv2dShape>& cases() {
  static const std::vector<Conv2dShape> list = {
      shape(3, 1, 28, 28, 20, 5, 5),
      shape(3, 20, 12, 12, 50, 5, 5),
      shape(1, 1, 1, 1, 1, 1, 1),
      shape(2, 3, 9, 11, 4, 3, 3),
      shape(2, 3, 13, 17, 7, 3, 3, {.pad_h = 1, .pad_w = 1}),
      shape(2, 3, 13, 17, 7, 2, 4, {.pad_h = 1, .pad_w = 3}),
      shape(2, 2, 5, 5, 1, 2, 2, {.stride_h = 2, .stride_w = 2}),  // leaves a remainder
      shape(1, 3, 16, 16, 5, 7, 7, {.stride_h = 3, .stride_w = 3, .pad_h = 2, .pad_w = 2}),
      shape(2, 3, 12, 40, 5, 3, 3, {.stride_w = 2}),
      shape(2, 3, 23, 40, 5, 3, 5, {.stride_h = 2, .stride_w = 3, .pad_h = 1, .pad_w = 2, .dil_h = 2, .dil_w = 2}),
      shape(1, 2, 20, 20, 3, 3, 3, {.dil_h = 3, .dil_w = 4}),
      shape(2, 1, 4, 4, 1, 1, 1, {.stride_h = 2, .stride_w = 2}),  // kernel smaller than the stride
      shape(2, 5, 14, 14, 9, 1, 1),
      shape(2, 5, 28, 28, 6, 1, 1),
      shape(2, 5, 7, 7, 6, 1, 1, {.pad_h = 1, .pad_w = 1}),
      shape(2, 4, 1, 1, 16, 1, 1, {.groups = 2}),
      shape(2, 6, 10, 19, 9, 3, 3, {.groups = 3}),
      shape(2, 23, 6, 6, 23, 3, 3, {.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1, .groups = 23}),  // depthwise
      shape(1, 4, 30, 30, 8, 3, 3, {.pad_h = 1, .pad_w = 1, .groups = 4}),
      shape(5, 3, 6, 5, 8, 6, 5),                            // covers the image
      shape(2, 3, 4, 4, 5, 4, 4, {.pad_h = 3, .pad_w = 3}),  // more padding than image
      shape(1, 2, 3, 300, 3, 1, 9),
      shape(1, 2, 300, 3, 3, 9, 1, {.pad_w = 1}),
      shape(1, 40, 60, 33, 3, 3, 3),                            // several chunks of rows
      shape(40, 2, 40, 40, 3, 3, 3, {.pad_h = 1, .pad_w = 1}),  // several pieces of the batch
      shape(2, 70, 9, 9, 30, 3, 3),
      shape(3, 2, 8, 8, 3, 3, 3, {.stride_h = 9, .stride_w = 9}),
      // depthwise
      shape(2, 3, 9, 11, 3, 3, 3, {.pad_h = 1, .pad_w = 1, .groups = 3}),
      shape(1, 5, 20, 17, 10, 5, 4, {.pad_h = 2, .pad_w = 1, .dil_w = 2, .groups = 5}),
      shape(2, 4, 3, 3, 4, 1, 2, {.groups = 4}),
      shape(2, 3, 12, 9, 3, 7, 7, {.pad_h = 5, .groups = 3}),
      // many channels
      shape(2, 66, 13, 7, 131, 1, 1),
      shape(2, 128, 6, 7, 130, 1, 1, {.groups = 2}),
      shape(2, 16, 9, 11, 64, 3, 3),
      shape(1, 8, 45, 33, 65, 3, 3, {.pad_h = 1, .pad_w = 1}),
      shape(2, 9, 23, 40, 67, 3, 5, {.stride_h = 2, .stride_w = 3, .pad_h = 1, .pad_w = 2, .dil_h = 2, .dil_w = 2}),
      shape(2, 14, 20, 20, 128, 3, 3, {.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1, .groups = 2}),
      shape(1, 8, 36, 70, 64, 3, 3, {.stride_w = 2}),
  };
  return list;
}

template <class T>
class Conv2d : public testing::Test {};
using Types = testing::Types<float, double, bfloat16, int32_t>;
TYPED_TEST_SUITE(Conv2d, Types);

TYPED_TEST(Conv2d, MatchesReference) {
  for_each_isa([] {
    for (const Conv2dShape& s : cases()) expect_reference<TypeParam>(s);
  });
}

TYPED_TEST(Conv2d, EmptyBatch) {
  for_each_isa([] { expect_reference<TypeParam>(shape(0, 3, 8, 8, 4, 3, 3)); });
}

TEST(Conv2dWidths, EveryWidthPaddingAndStride) {
  for_each_isa([] {
    for (int64_t w = 1; w < 36; ++w) {
      for (int64_t stride : {1, 2, 3}) {
        for (int64_t pad : {0, 1, 2}) {
          if (w + 2 * pad < 3) continue;
          expect_reference<float>(shape(2, 2, 3, w, 3, 2, 3, {.stride_w = stride, .pad_w = pad}));
        }
      }
    }
  });
}

// What lies beside a row must not leak into it.
TEST(Conv2dWidths, InfinityStaysWhereItBelongs) {
  for_each_isa([] {
    for (int64_t w : {5, 9, 20, 21}) {
      for (const Conv2dShape& s : {shape(2, 2, 6, w, 3, 3, 3), shape(2, 2, 6, w, 2, 3, 3, {.groups = 2})}) {
        auto x = whole_numbers<float>(x_size(s), 1), weights = whole_numbers<float>(w_size(s), 2);
        auto dy = whole_numbers<float>(y_size(s), 4);
        x[std::size_t(3 * w)] = std::numeric_limits<float>::infinity();  // read by the taps of column 0 only
        dy[std::size_t(2 * s.ow)] = std::numeric_limits<float>::infinity();
        std::vector<float> y(dy.size()), dx(x.size()), dw(weights.size());
        std::vector<float> expected_y = y, expected_dx = dx, expected_dw = dw;
        conv2d_forward(s, x.data(), weights.data(), static_cast<const float*>(nullptr), y.data());
        conv2d_backward_data(s, dy.data(), weights.data(), dx.data());
        conv2d_backward_weight(s, x.data(), dy.data(), dw.data());
        conv2d_forward_reference(s, x.data(), weights.data(), static_cast<const float*>(nullptr), expected_y.data());
        conv2d_backward_data_reference(s, dy.data(), weights.data(), expected_dx.data());
        conv2d_backward_weight_reference(s, x.data(), dy.data(), expected_dw.data());
        const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
        EXPECT_TRUE(std::equal(y.begin(), y.end(), expected_y.begin(), same)) << "y, width " << w;
        EXPECT_TRUE(std::equal(dx.begin(), dx.end(), expected_dx.begin(), same)) << "dx, width " << w;
        EXPECT_TRUE(std::equal(dw.begin(), dw.end(), expected_dw.begin(), same)) << "dw, width " << w;
      }
    }
  });
}

const std::vector<Conv2dShape>& winograd_cases() {
  static const std::vector<Conv2dShape> list = {
      shape(2, 48, 9, 14, 50, 3, 3, {.pad_h = 1, .pad_w = 1}),
      shape(1, 64, 8, 8, 48, 3, 3),
      shape(3, 50, 13, 23, 49, 3, 3, {.pad_h = 2, .pad_w = 0}),
      shape(1, 48, 5, 80, 48, 3, 3, {.pad_h = 2, .pad_w = 2}),  // several pieces
      shape(17, 20, 8, 9, 50, 5, 5),
      shape(21, 9, 9, 18, 11, 5, 5, {.pad_h = 2, .pad_w = 1}),
      shape(35, 8, 4, 5, 17, 5, 5, {.pad_h = 4, .pad_w = 3}),
      shape(530, 8, 2, 1, 8, 5, 5, {.pad_h = 4, .pad_w = 4}),    // several pieces and slices
      shape(17, 4, 16, 16, 60, 5, 5, {.pad_h = 2, .pad_w = 2}),  // several pieces of a slice
  };
  return list;
}

// Winograd's numbers are rounded otherwise: compared with double, by the magnitude of the terms.
TEST(Conv2dWinograd, KeepsItsBound) {
  for (const Conv2dShape& s : winograd_cases()) {
    SCOPED_TRACE(str(s));
    std::vector<float> x(std::size_t(x_size(s))), w(std::size_t(w_size(s))), bias(std::size_t(s.o)),
        dy(std::size_t(y_size(s)));
    for (auto* v : {&x, &w, &bias, &dy}) {
      for (float& f : *v) f = std::sin(3.7f * float(&f - v->data()) + float(v->size()));
    }
    struct Results {
      std::vector<double> y, dx, dw;
      Results(const Conv2dShape& s, const std::vector<double>& x, const std::vector<double>& w,
              const std::vector<double>& bias, const std::vector<double>& dy)
          : y(dy.size()), dx(x.size()), dw(w.size()) {
        conv2d_forward_reference(s, x.data(), w.data(), bias.data(), y.data());
        conv2d_backward_data_reference(s, dy.data(), w.data(), dx.data());
        conv2d_backward_weight_reference(s, x.data(), dy.data(), dw.data());
      }
    };
    const auto wide = [](const std::vector<float>& v) { return std::vector<double>(v.begin(), v.end()); };
    const auto magnitudes = [&](const std::vector<float>& v) {
      std::vector<double> out = wide(v);
      for (double& f : out) f = std::abs(f);
      return out;
    };
    const Results expected(s, wide(x), wide(w), wide(bias), wide(dy));
    const Results terms(s, magnitudes(x), magnitudes(w), magnitudes(bias), magnitudes(dy));
    for_each_isa([&] {
      if (cpu::isa() == cpu::Isa::baseline && s.kh == 5) return;  // without
      ASSERT_TRUE(cpu::winograd_pays(s) || cpu::winograd5_pays(s));
      const auto expect_near = [](const std::vector<float>& got, const std::vector<double>& expected_values,
                                  const std::vector<double>& magnitude, const char* what) {
        for (std::size_t i = 0; i < got.size(); ++i) {
          ASSERT_NEAR(double(got[i]), expected_values[i], cpu::winograd_error * magnitude[i]) << what << " at " << i;
        }
      };
      std::vector<float> y(dy.size()), dx(x.size()), dw(w.size());
      conv2d_forward(s, x.data(), w.data(), bias.data(), y.data());
      conv2d_backward_data(s, dy.data(), w.data(), dx.data());
      conv2d_backward_weight(s, x.data(), dy.data(), dw.data());
      expect_near(y, expected.y, terms.y, "y");
      expect_near(dx, expected.dx, terms.dx, "dx");
      expect_near(dw, expected.dw, terms.dw, "dw");
    });
  }
}

// A single large pixel: what shares a tile with it may be off by a part of it, all else is 0.
TEST(Conv2dWinograd, ErrorsStayInTheirTile) {
  for (const Conv2dShape& s : {shape(2, 48, 15, 18, 50, 3, 3, {.pad_h = 1, .pad_w = 2}),
                               shape(17, 20, 15, 18, 11, 5, 5, {.pad_h = 2, .pad_w = 1})}) {
    SCOPED_TRACE(str(s));
    constexpr float large = 30000;
    const int64_t image = 1, channel = 3, row = 6, column = 9, taps = s.kh * s.kw;
    std::vector<float> x(std::size_t(x_size(s))), dy(std::size_t(y_size(s))), w(std::size_t(w_size(s)));
    x[std::size_t(((image * s.c + channel) * s.h + row) * s.w + column)] = large;
    dy[std::size_t(((image * s.o + channel) * s.oh + row) * s.ow + column)] = large;
    for (float& f : w) f = std::sin(3.7f * float(&f - w.data()));
    std::vector<float> y(dy.size()), dx(x.size()), expected_y(dy.size()), expected_dx(x.size());
    conv2d_forward_reference(s, x.data(), w.data(), static_cast<const float*>(nullptr), expected_y.data());
    conv2d_backward_data_reference(s, dy.data(), w.data(), expected_dx.data());
    // Whether the tile of 4 outputs at i, each from `kernel` inputs padded by `pad`, reads the input at `from`.
    const auto reads = [](int64_t i, int64_t kernel, int64_t pad, int64_t from) {
      const int64_t first = i / 4 * 4 - pad;
      return first <= from && from < first + kernel + 3;
    };
    const auto check = [&](const std::vector<float>& got, const std::vector<float>& expected, int64_t channels,
                           int64_t height, int64_t width, const auto& shares_tile, int64_t filter, int64_t step) {
      for (int64_t i = 0; i < int64_t(got.size()); ++i) {
        const int64_t plane = i / (height * width), c = plane % channels;
        double bound = 0;
        if (plane / channels == image && shares_tile(i / width % height, i % width)) {
          for (int64_t t = 0; t < taps; ++t) bound += std::abs(w[std::size_t((filter + c * step) * taps + t)]);
        }
        ASSERT_NEAR(got[std::size_t(i)], expected[std::size_t(i)], cpu::winograd_error * large * bound) << "at " << i;
      }
    };
    for_each_isa([&] {
      ASSERT_TRUE(cpu::winograd_pays(s) || cpu::winograd5_pays(s) || cpu::isa() == cpu::Isa::baseline);
      conv2d_forward(s, x.data(), w.data(), static_cast<const float*>(nullptr), y.data());
      check(
          y, expected_y, s.o, s.oh, s.ow,
          [&](int64_t i, int64_t j) { return reads(i, s.kh, s.pad_h, row) && reads(j, s.kw, s.pad_w, column); },
          channel, s.c);
      conv2d_backward_data(s, dy.data(), w.data(), dx.data());
      check(
          dx, expected_dx, s.c, s.h, s.w,
          [&](int64_t i, int64_t j) {
            // 3 x 3: a convolution of dy; 5 x 5: what the tile of dy was read from.
            if (s.kh == 3) return reads(i, 3, 2 - s.pad_h, row) && reads(j, 3, 2 - s.pad_w, column);
            return reads(row, 5, s.pad_h, i) && reads(column, 5, s.pad_w, j);
          },
          channel * s.c, 1);
    });
  }
}

TEST(Conv2dWinograd, WhatIsNotFiniteStaysWhereItBelongs) {
  for (const Conv2dShape& s :
       {shape(2, 48, 12, 12, 48, 3, 3, {.pad_h = 1, .pad_w = 1}), shape(32, 16, 12, 12, 16, 5, 5)}) {
    ASSERT_TRUE(cpu::isa() == cpu::Isa::baseline || cpu::winograd_pays(s) || cpu::winograd5_pays(s));
    auto x = whole_numbers<float>(x_size(s), 1), dy = whole_numbers<float>(y_size(s), 4);
    auto w = std::vector<float>(std::size_t(w_size(s)), 1.0f);
    const auto expect_same = [](const std::vector<float>& got, const std::vector<float>& expected, const char* what) {
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_TRUE(got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i]))) << what << " at " << i;
      }
    };
    for (const float special : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      x[std::size_t(5 * s.w + 5)] = dy[std::size_t(6 * s.ow + 6)] = special;  // of which padding sees nothing
      std::vector<float> y(dy.size()), dx(x.size()), dw(w.size());
      std::vector<float> expected_y(y.size()), expected_dx(x.size()), expected_dw(w.size());
      conv2d_forward(s, x.data(), w.data(), static_cast<const float*>(nullptr), y.data());
      conv2d_forward_reference(s, x.data(), w.data(), static_cast<const float*>(nullptr), expected_y.data());
      expect_same(y, expected_y, "y");
      conv2d_backward_data(s, dy.data(), w.data(), dx.data());
      conv2d_backward_data_reference(s, dy.data(), w.data(), expected_dx.data());
      expect_same(dx, expected_dx, "dx");
      conv2d_backward_weight(s, x.data(), dy.data(), dw.data());
      conv2d_backward_weight_reference(s, x.data(), dy.data(), expected_dw.data());
      expect_same(dw, expected_dw, "dw");
    }
  }
}

TEST(Conv2dThreads, DoNotChangeTheResult) {
  for_each_isa([] {
    for (const Conv2dShape& s :
         {shape(64, 1, 28, 28, 20, 5, 5), shape(32, 20, 12, 12, 50, 5, 5), winograd_cases()[7],
          shape(3, 16, 40, 40, 24, 3, 3, {.pad_h = 1, .pad_w = 1}), shape(3, 66, 28, 26, 65, 1, 1), winograd_cases()[3],
          shape(3, 16, 40, 40, 64, 3, 3, {.stride_h = 2, .stride_w = 2})}) {
      auto x = whole_numbers<float>(x_size(s), 1), w = whole_numbers<float>(w_size(s), 2);
      auto dy = whole_numbers<float>(y_size(s), 4);
      for (auto* v : {&x, &w, &dy}) {
        for (float& f : *v) f = std::sin(f + float(&f - v->data()));  // sums depend on their order
      }
      std::vector<std::vector<float>> results;
      for (int threads : {1, 2, 3}) {
        set_num_threads(threads);
        std::vector<float> y(dy.size()), dx(x.size()), dw(w.size());
        conv2d_forward(s, x.data(), w.data(), static_cast<const float*>(nullptr), y.data());
        conv2d_backward_data(s, dy.data(), w.data(), dx.data());
        conv2d_backward_weight(s, x.data(), dy.data(), dw.data());
        y.insert(y.end(), dx.begin(), dx.end());
        y.insert(y.end(), dw.begin(), dw.end());
        results.push_back(y);
      }
      EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), results[0].size() * sizeof(float)), 0) << str(s);
      EXPECT_EQ(std::memcmp(results[0].data(), results[2].data(), results[0].size() * sizeof(float)), 0) << str(s);
    }
  });
  set_num_threads(1);
}

}  // namespace
