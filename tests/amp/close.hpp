// What low precision should give: the same of the rounded operands, in double.
#pragma once

#include <gtest/gtest.h>
#include <tenet/ops/copy.hpp>

#include <algorithm>
#include <cmath>

namespace tenet::test {

/// `x` rounded to Low, as double.
template <class Low>
Tensor<double> exact(const Tensor<float>& x) {
  return to<double>(to<Low>(detach(x)));
}

/// Float sums of exact products, or numbers within `tolerance` of the greatest.
inline void expect_close(const Tensor<float>& got, const Tensor<double>& want, double tolerance = 4e-6) {
  ASSERT_EQ(got.shape().str(), want.shape().str());
  const auto a = got.to_vector();
  const auto b = want.to_vector();
  double greatest = 0;
  for (const double v : b) greatest = std::max(greatest, std::abs(v));
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance * greatest) << "element " << i;
}

}  // namespace tenet::test
