// Products with an operand packed beforehand: the same as without.
#include <tenet/kernels/cpu/gemm_int8_panels.hpp>

#include "isas.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace {

using namespace tenet;

TEST(Int8Panels, GiveTheSameProduct) {
  std::mt19937 random(5);
  for (const int64_t m : {1, 4, 5, 13, 70}) {
    for (const int64_t n : {1, 4, 5, 16, 33, 600}) {
      for (const int64_t k : {1, 3, 64, 511, 513, 1030, 2050}) {
        std::vector<uint8_t> a(std::size_t(m * k));
        std::vector<int8_t> b(std::size_t(n * k));
        for (auto& v : a) v = uint8_t(random());
        for (auto& v : b) v = int8_t(random());
        const float scale = 0.01f;
        for_each_isa_and_dots([&] {
          std::vector<std::uint32_t> panels(std::size_t(cpu::int8_panels_size(n, k)));
          cpu::pack_int8_panels<int8_t>(n, k, {b.data(), 1, k}, panels.data());
          std::vector<float> c(std::size_t(m * n)), expected(c);
          cpu::gemm_int8<uint8_t, float>(m, n, k, {a.data(), k, 1}, {b.data(), 1, k}, expected.data(), n, {&scale});
          cpu::gemm_int8<uint8_t, float>(m, n, k, {a.data(), k, 1}, {b.data(), 1, k}, c.data(), n, {&scale},
                                         panels.data());
          EXPECT_EQ(c, expected) << m << " " << n << " " << k;
        });
      }
    }
  }
}

}  // namespace
