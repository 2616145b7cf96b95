#include <tenet/ops/dropout.hpp>

#include "ops/op_cases.hpp"

namespace tenet {
namespace {

template <class T>
std::vector<T> values(const Tensor<T>& x) {
  return x.to_vector();
}

// With a generator that starts anew in each call, dropout is a function like others.
TEST(Dropout, IsALinearFunction) {
  const auto f = [](const auto& x) {
    Generator generator(3);
    return dropout(x[0], 0.4, true, generator);
  };
  test::check({.name = "dropout", .f = f, .inputs = {{{4, 5}}}, .shapes = test::unary_shapes()});
}

TEST(Dropout, DropsAndScales) {
  Generator generator(1);
  auto x = ones<float>({10000}).requires_grad_();
  const auto y = dropout(x, 0.2, true, generator);
  std::int64_t kept = 0;
  for (const float v : values(y)) {
    ASSERT_TRUE(v == 0.f || v == 1.25f) << v;
    kept += v != 0.f;
  }
  EXPECT_NEAR(double(kept), 8000, 200);  // five standard deviations
  y.backward(ones<float>({10000}));
  EXPECT_EQ(values(x.grad()), values(y));
  EXPECT_NE(values(dropout(x, 0.2, true, generator)), values(y));
  generator.manual_seed(1);
  EXPECT_EQ(values(dropout(x, 0.2, true, generator)), values(y));
}

// p = 1 leaves nothing, p = 0 and evaluation everything; what was 0 before was not dropped.
TEST(Dropout, Limits) {
  auto x = from_vector<double>({1, -2, 0}).requires_grad_();
  const auto none = dropout(x, 1);
  EXPECT_EQ(values(none), (std::vector<double>{0, 0, 0}));
  none.backward(ones<double>({3}));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{0, 0, 0}));
  EXPECT_TRUE(dropout(x, 0).is(x));
  EXPECT_TRUE(dropout(x, 0.9, false).is(x));

  auto z = zeros<double>({64}).requires_grad_();
  dropout(z, 0.5).backward(ones<double>({64}));
  int kept = 0;
  for (const double g : values(z.grad())) {
    ASSERT_TRUE(g == 0 || g == 2) << g;
    kept += g == 2;
  }
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 64);
}

TEST(Dropout, TakesAProbability) {
  const auto x = ones<float>({2});
  for (const double p : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(dropout(x, p), Error);
    EXPECT_THROW(dropout(x, p, false), Error);
  }
}

}  // namespace
}  // namespace tenet
