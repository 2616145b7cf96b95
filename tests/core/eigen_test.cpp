#include <tenet/core/eigen.hpp>
#include <tenet/tenet.hpp>

#include <gtest/gtest.h>

namespace {

using namespace tenet;

TEST(AsEigen, SharesRowsAndColumns) {
  const Tensor<float> t = arange<float>(6).view({2, 3});
  const auto m = as_eigen(t);
  EXPECT_EQ(m.rows(), 2);
  EXPECT_EQ(m.cols(), 3);
  EXPECT_EQ(m(1, 2), 5);
  EXPECT_EQ(as_eigen(t.transpose(0, 1))(2, 1), 5);
  as_eigen(t)(0, 1) = 7;
  EXPECT_EQ(t[0][1].item(), 7);
  const Eigen::MatrixXf product = m * m.transpose();
  EXPECT_EQ(product(1, 1), 9 + 16 + 25);
}

TEST(AsEigen, VectorsAreColumns) {
  const Tensor<bfloat16> t = arange<float>(8).to<bfloat16>();
  const auto m = as_eigen(t.slice(0, 1, 8, 3));
  EXPECT_EQ(m.rows(), 3);
  EXPECT_EQ(m.cols(), 1);
  EXPECT_EQ(float(m(2, 0)), 7);
  EXPECT_EQ(as_eigen(zeros<double>({0})).size(), 0);
  EXPECT_EQ(as_eigen(full({1}, 3.0f).expand({4})).sum(), 12);
}

TEST(AsEigen, OtherRanksThrow) {
  try {
    as_eigen(zeros<float>({2, 3, 4}));
    FAIL();
  } catch (const ShapeError& e) {
    EXPECT_EQ(std::string(e.what()), "as_eigen: expected one or two dimensions, got [2, 3, 4]");
  }
  EXPECT_THROW(as_eigen(zeros<float>({})), ShapeError);
}

}  // namespace
