#include <tenet/ops/inplace.hpp>
#include <tenet/ops/matmul.hpp>

#include "message.hpp"
#include "ops/op_cases.hpp"
#include "ops/reduced.hpp"

namespace tenet {
namespace {

using test::check;
using test::message;

TEST(Matmul, CasesAgainstPyTorch) {
  for (const char* name : {"1d_1d",         "2d_1d",
                           "1d_2d",         "2d_2d",
                           "3d_1d",         "1d_3d",
                           "3d_2d",         "2d_3d",
                           "3d_3d",         "3d_one",
                           "4d_3d",         "4d_4d",
                           "ones",          "row_column",
                           "column_row",    "inner_empty",
                           "rows_empty",    "columns_empty",
                           "1d_empty",      "batch_empty",
                           "batches_empty", "batch_inner_empty"}) {
    check({.name = std::string("matmul_") + name,
           .f = [](const auto& x) { return matmul(x[0], x[1]); },
           .file = "layers.txt"});
  }
}

TEST(Linear, CasesAgainstPyTorch) {
  for (const char* name : {"1d", "2d", "3d", "4d", "one", "batch_empty", "in_empty", "3d_empty"}) {
    check({.name = std::string("linear_") + name,
           .f = [](const auto& x) { return linear(x[0], x[1], x[2]); },
           .file = "layers.txt"});
  }
  for (const char* name : {"no_bias", "1d_no_bias"}) {
    check({.name = std::string("linear_") + name,
           .f = [](const auto& x) { return linear(x[0], x[1]); },
           .file = "layers.txt"});
  }
}

TEST(Matmul, OfEmptyTensorsIsZeros) {
  const Tensor<float> y = matmul(empty({2, 0}), empty({0, 3}));
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_EQ(y.to_vector(), std::vector<float>(6, 0.f));
  const Tensor<float> w = ones({3, 0}).requires_grad_(), b = ones({3}).requires_grad_();
  sum(linear(ones({2, 0}), w, b)).backward();
  EXPECT_EQ(linear(ones({2, 3, 0}), w, b).shape(), Shape({2, 3, w.size(0)}));
  EXPECT_EQ(w.grad().shape(), (Shape{3, 0}));
  EXPECT_EQ(b.grad().to_vector(), std::vector<float>(3, 2.f));
}

TEST(Linear, OfAnEmptyBatchHasGradientsOfZeros) {
  const Tensor<float> x = ones({0, 4}).requires_grad_(), w = ones({3, 4}).requires_grad_();
  const Tensor<float> b = ones({3}).requires_grad_();
  const Tensor<float> y = linear(x, w, b);
  EXPECT_EQ(y.shape(), (Shape{0, 3}));
  sum(y).backward();
  EXPECT_EQ(x.grad().shape(), x.shape());
  EXPECT_EQ(w.grad().to_vector(), std::vector<float>(12, 0.f));
  EXPECT_EQ(b.grad().to_vector(), std::vector<float>(3, 0.f));
}

// Every way an operand can lie in memory, against the product of copies.
TEST(Matmul, ReadsAnyStrides) {
  const Tensor<float> a = arange(6 * 5).view({6, 5}), b = arange(5 * 7).view({5, 7});
  const Tensor<float> y = matmul(a, b);
  EXPECT_EQ(matmul(b.t(), a.t()).t().to_vector(), y.to_vector());
  const auto expect_copy = [](const Tensor<float>& p, const Tensor<float>& q) {
    EXPECT_EQ(matmul(p, q).to_vector(), matmul(p.clone(), q.clone()).to_vector());
  };
  expect_copy(a.slice(0, 0, 6, 2), b.slice(1, 0, 7, 3));
  expect_copy(a.slice(1, 0, 5, 2), b.slice(0, 0, 5, 2));
  expect_copy(ones({1, 5}).expand({6, 5}), b);
  expect_copy(ones({6, 1}).expand({6, 5}), ones({1, 1}).expand({5, 7}));
  expect_copy(arange(24).view({2, 3, 4}).transpose(0, 1), arange(24).view({3, 4, 2}));
  expect_copy(arange(24).view({4, 3, 2}).permute({2, 1, 0}), arange(8).view({2, 4}).t());
}

TEST(Matmul, OfWholeNumbersIsExact) {
  const auto a = tensor<std::int64_t>({{1, 2}, {3, 4}}), b = tensor<std::int64_t>({{5, 6}, {7, 1LL << 40}});
  EXPECT_EQ(matmul(a, b).to_vector(), (std::vector<std::int64_t>{19, 6 + (1LL << 41), 43, 18 + (1LL << 42)}));
  const auto v = tensor<std::int32_t>({1, 2, 3});
  EXPECT_EQ(matmul(v, v).item(), 14);
}

TEST(Matmul, OfHalvesSumsInFloat) {
  const Tensor<half> a = full<half>({1, 4096}, half(1)), b = full<half>({4096, 1}, half(1));
  EXPECT_EQ(float(matmul(a, b).item()), 4096.f);
  const Tensor<bfloat16> c = full<bfloat16>({2, 1000}, bfloat16(1)).requires_grad_();
  const Tensor<bfloat16> w = full<bfloat16>({1, 1000}, bfloat16(1)), bias = full<bfloat16>({1}, bfloat16(24));
  const Tensor<bfloat16> y = linear(c, w, bias);
  EXPECT_EQ(float(y(1, 0)), 1024.f);
  sum(y).backward();
  EXPECT_EQ(float(c.grad()(1, 999)), 1.f);
}

TEST(Matmul, NaNAndInfinityStayWhereTheyAre) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const Tensor<float> y = matmul(tensor<float>({{nan, 0}, {1, 1}, {inf, 0}}), tensor<float>({{0, 1}, {1, 1}}));
  const std::vector<float> v = y.to_vector();
  EXPECT_TRUE(std::isnan(v[0]) && std::isnan(v[1]));
  EXPECT_EQ(v[2], 1);
  EXPECT_EQ(v[3], 2);
  EXPECT_TRUE(std::isnan(v[4]));
  EXPECT_EQ(v[5], inf);
}

TEST(Matmul, IsAMethodToo) {
  const Tensor<float> a = arange(6).view({2, 3});
  EXPECT_EQ(a.matmul(a.t()).to_vector(), matmul(a, a.t()).to_vector());
}

TEST(Matmul, ErrorsNameTheShapes) {
  EXPECT_EQ(message<ShapeError>([] {
              matmul(ones({2, 3}), ones({4, 5}));
            }),
            "matmul: cannot multiply [2, 3] by [4, 5]");
  EXPECT_THROW(matmul(scalar(1.f), ones({1})), ShapeError);
  EXPECT_THROW(matmul(ones({1}), scalar(1.f)), ShapeError);
  EXPECT_THROW(matmul(ones({3}), ones({4})), ShapeError);
  EXPECT_THROW(matmul(ones({2, 3}), ones({2})), ShapeError);
  EXPECT_THROW(matmul(ones({2, 3, 4}), ones({3, 4, 2})), ShapeError);  // batches of 2 and 3
  EXPECT_THROW(matmul(Tensor<float>(), ones({3})), Error);
}

TEST(Linear, ErrorsNameTheShapes) {
  EXPECT_EQ(message<ShapeError>([] {
              linear(ones({2, 3}), ones({5, 4}));
            }),
            "linear: expected 4 input features, got input [2, 3]");
  EXPECT_THROW(linear(ones({2, 3}), ones({3})), ShapeError);
  EXPECT_THROW(linear(scalar(1.f), ones({1, 1})), ShapeError);
  EXPECT_EQ(message<ShapeError>([] {
              linear(ones({2, 3}), ones({4, 3}), ones({1, 4}));
            }),
            "linear: expected a bias [4], got [1, 4]");
  EXPECT_THROW(linear(ones({2, 3}), Tensor<float>()), Error);
}

TEST(Linear, AChangedWeightIsNoticedByBackward) {
  const Tensor<float> x = ones({2, 3}).requires_grad_(), w = ones({4, 3});
  const Tensor<float> y = sum(linear(x, w));
  w.add_(1);
  EXPECT_THROW(y.backward(), Error);
}

TEST(Matmul, IsTheSameForAnyNumberOfThreads) {
  // Small, thin, of many pieces, and 56 -> 444.
  for (const auto& [m, k, n] : {std::array<std::int64_t, 3>{17, 9, 5},
                                {64, 800, 500},
                                {300, 300, 300},
                                {3, 2000, 999},
                                {999, 2000, 3},
                                {200, 56, 444}}) {
    Generator g(7);
    const Tensor<float> a = randn({m, k}, g), b = randn({k, n}, g), wide = randn({m, n}, g);
    EXPECT_TRUE(test::same_for_any_threads([&] { return matmul(a, b); })) << m << " " << k << " " << n;
    for (int which : {0, 1}) {
      EXPECT_TRUE(test::same_for_any_threads([&] {
        const Tensor<float> x = a.clone().requires_grad_(), w = b.clone().requires_grad_();
        sum(matmul(x, w) * wide).backward();
        return (which ? w : x).grad();
      })) << m
          << " " << k << " " << n;
    }
  }
  Generator g(8);
  const Tensor<float> a = randn({40, 33, 47}, g), b = randn({40, 47, 29}, g);
  EXPECT_TRUE(test::same_for_any_threads([&] { return matmul(a, b); }));
  EXPECT_TRUE(test::same_for_any_threads([&] { return linear(a, b[0].t()); }));
}

}  // namespace
}  // namespace tenet
