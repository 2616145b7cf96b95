// The kernels of batch and layer normalization on arrays that are cut into pieces.
#include <gtest/gtest.h>
#include <tenet/kernels/cpu/batch_norm.hpp>
#include <tenet/kernels/cpu/layer_norm.hpp>

#include <cmath>
#include <vector>

#include "kernels/isas.hpp"

namespace tenet {
namespace {

using cpu::ChannelShape;
using Values = std::vector<float>;

Values values(int64_t n, double offset) {
  Values x(std::size_t(n), 0.f);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(offset + std::sin(double(i) * 1.7 + double(i % 13)));
  return x;
}

/// Runs f() with every instruction set and several numbers of threads; its result must always be the same.
template <class F>
auto the_same_everywhere(const F& f) {
  const auto first = f();
  for_each_isa([&] {
    for (const int threads : {1, 2, 3}) {
      set_num_threads(threads);
      EXPECT_EQ(f(), first) << threads << " threads";
    }
  });
  return first;
}

/// Arrays whose channels are single columns, a few, and runs; each in more than one piece.
const ChannelShape shapes[] = {{300, 700, 1}, {150, 3, 7}, {3, 90, 31}, {20, 3, 1000},
                               {2, 2, 9001},  {1, 5, 33},  {5, 3, 0}};

TEST(BatchNormKernels, FindMomentsOfAnyShapeAndOffset) {
  for (const ChannelShape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.outer << " " << s.channels << " " << s.inner);
    const Values x = values(s.count() * s.channels, 1000);
    const auto moments = the_same_everywhere([&] {
      std::vector<cpu::Moments<float>> m(std::size_t(s.channels));
      cpu::channel_moments(s, x.data(), m.data());
      Values out;
      for (const auto& c : m) out.insert(out.end(), {c.count, c.mean, c.deviation});
      return out;
    });
    for (int64_t c = 0; c < s.channels; ++c) {
      double sum = 0, squares = 0;
      const auto each = [&](const auto& f) {
        for (int64_t o = 0; o < s.outer; ++o) {
          for (int64_t i = 0; i < s.inner; ++i) f(double(x[std::size_t((o * s.channels + c) * s.inner + i)]));
        }
      };
      each([&](double v) { sum += v; });
      const double mean = s.count() ? sum / double(s.count()) : 0;
      each([&](double v) { squares += (v - mean) * (v - mean); });
      const float* m = moments.data() + 3 * c;
      ASSERT_EQ(m[0], float(s.count()));
      ASSERT_NEAR(m[1], mean, 2e-4);
      ASSERT_NEAR(m[2], squares, 1e-3 * squares) << c;
    }
  }
}

TEST(BatchNormKernels, FindGradients) {
  for (const ChannelShape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.outer << " " << s.channels << " " << s.inner);
    const auto n = std::size_t(s.count() * s.channels), channels = std::size_t(s.channels);
    const Values x = values(int64_t(n), 5), dy = values(int64_t(n), 0.1);
    Values by[4];
    for (int k = 0; k < 4; ++k) by[k] = values(s.channels, 2 + k);
    const Values sums = the_same_everywhere([&] {
      std::vector<cpu::ChannelSums<float>> out(channels);
      cpu::channel_sums(s, x.data(), by[0].data(), dy.data(), out.data());
      Values flat;
      for (const auto& c : out) flat.insert(flat.end(), {c.sum, c.dot});
      return flat;
    });
    const Values y = the_same_everywhere([&] {
      Values out(n);
      cpu::channel_affine(s, x.data(), by[0].data(), by[1].data(), by[2].data(), out.data());
      return out;
    });
    const Values dx = the_same_everywhere([&] {
      Values out(n);
      cpu::channel_gradient(s, x.data(), dy.data(), by[0].data(), by[1].data(), by[2].data(), by[3].data(), out.data());
      return out;
    });
    std::vector<double> expected(2 * channels);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t c = i / std::size_t(s.inner) % channels;
      const double d = double(x[i]) - double(by[0][c]);
      expected[2 * c] += double(dy[i]);
      expected[2 * c + 1] += double(dy[i]) * d;
      ASSERT_NEAR(y[i], d * double(by[1][c]) + double(by[2][c]), 1e-4);
      ASSERT_NEAR(dx[i], double(dy[i]) * double(by[1][c]) - d * double(by[2][c]) - double(by[3][c]), 1e-4);
    }
    for (std::size_t i = 0; i < sums.size(); ++i) ASSERT_NEAR(sums[i], expected[i], 1e-4 * double(s.count())) << i;
  }
}

TEST(LayerNormKernels, FindValuesAndGradients) {
  struct Size {
    int64_t rows, n;
  };
  for (const Size& s : {Size{5000, 7}, Size{70, 1000}, Size{3, 32}}) {
    const int64_t rows = s.rows, n = s.n;
    const Values x = values(rows * n, 1000), dy = values(rows * n, 0.1), w = values(n, 2), b = values(n, 1);
    const auto size = std::size_t(rows * n), width = std::size_t(n);
    Values mean(std::size_t(rows), 0.f), rstd = mean;
    const Values y = the_same_everywhere([&] {
      Values out(size);
      cpu::layer_norm(rows, n, x.data(), w.data(), b.data(), 1e-5, mean.data(), rstd.data(), out.data());
      return out;
    });
    const Values gradients = the_same_everywhere([&] {
      Values out(size + 2 * width);
      cpu::layer_norm_backward(rows, n, x.data(), w.data(), mean.data(), rstd.data(), dy.data(), out.data(),
                               out.data() + size, out.data() + size + width);
      return out;
    });
    std::vector<double> dw(width), db(width);
    for (std::size_t r = 0; r < std::size_t(rows); ++r) {
      const float *row = x.data() + r * width, *g = dy.data() + r * width;
      double sum = 0, squares = 0, s1 = 0, s2 = 0;
      for (std::size_t j = 0; j < width; ++j) sum += double(row[j]);
      for (std::size_t j = 0; j < width; ++j) squares += std::pow(double(row[j]) - sum / double(n), 2);
      const double over = 1 / std::sqrt(squares / double(n) + 1e-5);
      const auto h = [&](std::size_t j) { return (double(row[j]) - sum / double(n)) * over; };
      for (std::size_t j = 0; j < width; ++j) {
        ASSERT_NEAR(y[r * width + j], h(j) * double(w[j]) + double(b[j]), 2e-3);
        dw[j] += double(g[j]) * h(j), db[j] += double(g[j]);
        s1 += double(g[j]) * double(w[j]), s2 += double(g[j]) * double(w[j]) * h(j);
      }
      for (std::size_t j = 0; j < width; ++j) {
        const double expected = over * (double(g[j]) * double(w[j]) - s1 / double(n) - h(j) * s2 / double(n));
        ASSERT_NEAR(gradients[r * width + j], expected, 5e-3);
      }
    }
    for (std::size_t j = 0; j < width; ++j) {
      ASSERT_NEAR(gradients[size + j], dw[j], 1e-3 * double(rows));
      ASSERT_NEAR(gradients[size + width + j], db[j], 1e-5 * double(rows));
    }
  }
}

}  // namespace
}  // namespace tenet
