// Products of few rows with matrices of few bits, against their definition.
#include <tenet/kernels/cpu/narrow_dots.hpp>
#include <tenet/kernels/cpu/quantize.hpp>

#include "isas.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace {

using namespace tenet;

template <class Q>
void check(int64_t columns, int64_t group_size) {
  SCOPED_TRACE(::testing::Message() << columns << " columns in groups of " << group_size);
  std::mt19937 random(5);
  const auto number = [&] { return float(int(random() % 2001) - 1000) / 1000; };
  const int64_t out = 11, groups = (columns + group_size - 1) / group_size;
  std::vector<float> numbers(std::size_t(out * columns)), scales(std::size_t(out * groups));
  std::vector<float> bias(static_cast<std::size_t>(out));
  for (float& s : scales) s = number() + 1.5f;
  for (float& b : bias) b = number();
  cpu::NarrowMatrix<Q> w{columns, group_size, nullptr, columns, scales.data()};
  if constexpr (std::is_same_v<Q, uint8_t>) w.row_step = cpu::int4_bytes(columns);
  else if constexpr (std::is_same_v<Q, bfloat16>) w.scales = nullptr;
  std::vector<Q> values(std::size_t(out * w.row_step));
  for (int64_t row = 0; row < out; ++row) {
    for (int64_t at = 0; at < columns; at += group_size) {
      const int64_t n = std::min(group_size, columns - at);
      float* const to = numbers.data() + row * columns + at;
      Q* const from = values.data() + row * w.row_step + (std::is_same_v<Q, uint8_t> ? at / 2 : at);
      const float scale = w.scales ? scales[std::size_t(row * groups + at / group_size)] : 1;
      std::vector<int8_t> q(static_cast<std::size_t>(n));
      for (int64_t i = 0; i < n; ++i) {
        q[std::size_t(i)] = int8_t(std::is_same_v<Q, uint8_t> ? int(random() % 16) - 8 : int(random() % 256) - 128);
        to[i] = q[std::size_t(i)] * scale;
        if constexpr (!std::is_same_v<Q, uint8_t>) from[i] = Q(q[std::size_t(i)]);
      }
      if constexpr (std::is_same_v<Q, uint8_t>) cpu::pack_int4(n, from, q.data());
    }
  }
  w.values = values.data();
  for (const int64_t m : {1, 2, 4}) {
    std::vector<float> x(std::size_t(m * columns)), y(std::size_t(m * out));
    for (float& v : x) v = number();
    for_each_isa([&] {
      for (const float* add : {static_cast<const float*>(nullptr), static_cast<const float*>(bias.data())}) {
        cpu::narrow_dots(w, out, m, x.data(), y.data(), add);
        for (int64_t i = 0; i < m * out; ++i) {
          double sum = add ? add[i % out] : 0, size = 0;
          for (int64_t k = 0; k < columns; ++k) {
            const double product =
                double(x[std::size_t(i / out * columns + k)]) * double(numbers[std::size_t(i % out * columns + k)]);
            sum += product, size += std::abs(product);
          }
          ASSERT_NEAR(y[std::size_t(i)], sum, 1e-6 * size + 1e-5) << i << " of " << m << " rows";
        }
      }
    });
  }
}

TEST(NarrowDots, AllSizes) {
  for (const auto& [columns, group_size] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 64}, {2, 2}, {17, 4}, {64, 64}, {100, 32}, {333, 64}, {300, 300}}) {
    check<uint8_t>(columns, group_size);
    check<int8_t>(columns, group_size);
    check<bfloat16>(columns, group_size);
  }
}

// An infinite number in a row, times the integers that 4 bits stand for: in a vector of them, and in the tail.
TEST(NarrowDots, InfinityStaysInfinite) {
  const int64_t columns = 70;
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<int8_t> q(std::size_t(columns), 3);
  std::vector<uint8_t> values(std::size_t(cpu::int4_bytes(columns)));
  cpu::pack_int4(columns, values.data(), q.data());
  const cpu::NarrowMatrix<uint8_t> w{columns, columns, values.data(), int64_t(values.size()), nullptr};
  for (const int64_t at : {int64_t{0}, columns / 2 - 1, columns - 1}) {
    std::vector<float> x(std::size_t(columns), 1.0f);
    for (const float v : {infinity, -infinity, 1e38f}) {
      x[std::size_t(at)] = v;
      for_each_isa([&] {
        float y;
        cpu::narrow_dots<uint8_t>(w, 1, 1, x.data(), &y, nullptr);
        EXPECT_EQ(y, v * 3) << at;
      });
    }
  }
}

}  // namespace
