#include <tenet/ops/activation.hpp>

#include "ops/op_cases.hpp"

namespace tenet {
namespace {

using test::check;

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

// Values and gradients against PyTorch's, near 0 and far from it; then with gradient checks at other shapes.
template <class F>
void check_activation(const char* name, F f, std::vector<double> kinks = {}) {
  const auto g = [f](const auto& x) { return f(x[0]); };
  check({.name = name, .f = g, .file = "pointwise.txt"});
  check({.name = std::string(name) + "_far", .f = g, .file = "pointwise.txt", .twice = false});
  check({.name = name, .f = g, .inputs = {{{2, 3}, -4, 4, kinks}}, .shapes = test::unary_shapes()});
}

TEST(Activation, Relu) {
  check_activation("relu", [](const auto& x) { return relu(x); }, {0});
  check_activation("leaky_relu", [](const auto& x) { return leaky_relu(x, 0.2); }, {0});
  check_activation("relu6", [](const auto& x) { return relu6(x); }, {0, 6});
  check_activation("hardtanh", [](const auto& x) { return hardtanh(x, -0.5, 1.5); }, {-0.5, 1.5});
}
TEST(Activation, Sigmoid) {
  check_activation("sigmoid", [](const auto& x) { return sigmoid(x); });
  check_activation("tanh", [](const auto& x) { return tanh(x); });
  check_activation("softplus", [](const auto& x) { return softplus(x); });
  check_activation("softplus_2_3", [](const auto& x) { return softplus(x, 2, 3); }, {1.5});
}
TEST(Activation, Gelu) {
  check_activation("gelu", [](const auto& x) { return gelu(x); });
  check_activation("gelu_tanh", [](const auto& x) { return gelu(x, GeluApproximate::tanh); });
}
TEST(Activation, Silu) {
  check_activation("silu", [](const auto& x) { return silu(x); });
  check_activation("mish", [](const auto& x) { return mish(x); });
  check_activation("hardswish", [](const auto& x) { return hardswish(x); }, {-3, 3});
}
TEST(Activation, Elu) {
  check_activation("elu", [](const auto& x) { return elu(x, 1.5); }, {0});
  check_activation("selu", [](const auto& x) { return selu(x); }, {0});
}

TEST(Activation, Defaults) {
  const auto x = from_vector<double>({-2, 0.5});
  test::expect_near(leaky_relu(x), from_vector<double>({-0.02, 0.5}), 1e-15, "leaky_relu");
  test::expect_near(elu(x), from_vector<double>({std::expm1(-2), 0.5}), 1e-15, "elu");
  test::expect_near(hardtanh(x), from_vector<double>({-1, 0.5}), 0, "hardtanh");
}

template <class T>
void expect_relu_keeps_nan() {
  auto x = from_vector<T>({T(nan), T(-1), T(0), T(2)}).requires_grad_();
  const auto y = relu(x);
  test::expect_near(y, from_vector<double>({nan, 0, 0, 2}), 0, "relu");
  y.backward(ones<T>({4}));
  test::expect_near(x.grad(), from_vector<double>({1, 0, 0, 1}), 0, "gradient");
}
TEST(Activation, ReluKeepsNan) {
  expect_relu_keeps_nan<float>();
  expect_relu_keeps_nan<double>();
  expect_relu_keeps_nan<half>();
  expect_relu_keeps_nan<bfloat16>();
}

// What is cut off is 0 for any gradient behind it: not 0 * inf.
TEST(Activation, CutOffGradientIsZero) {
  auto x = from_vector<double>({-1, 1}).requires_grad_();
  relu(x).backward(full<double>({2}, inf));
  test::expect_near(x.grad(), from_vector<double>({0, inf}), 0, "relu");
  x.zero_grad();
  hardtanh(x, 0, 2).backward(full<double>({2}, inf));
  test::expect_near(x.grad(), from_vector<double>({0, inf}), 0, "hardtanh");
}

TEST(Activation, NanStaysNan) {
  const auto x = from_vector<float>({float(nan)});
  for (const auto& y : {relu(x), leaky_relu(x), sigmoid(x), tanh(x), gelu(x), gelu(x, GeluApproximate::tanh), silu(x),
                        elu(x), selu(x), softplus(x), relu6(x), hardswish(x), mish(x)}) {
    EXPECT_TRUE(std::isnan(y.item()));
  }
}

TEST(Activation, ReluOfIntegers) {
  EXPECT_EQ(relu(from_vector<std::int32_t>({-3, 0, 4})).to_vector(), (std::vector<std::int32_t>{0, 0, 4}));
}

TEST(Activation, InPlace) {
  for (const auto& f : {relu_<Tensor<double>>, sigmoid_<Tensor<double>>, tanh_<Tensor<double>>}) {
    auto a = from_vector<double>({-1, 0.5, 2}).requires_grad_(), b = from_vector<double>({-1, 0.5, 2}).requires_grad_();
    const auto y = a * 2;
    EXPECT_TRUE(f(y).is(y));
    y.backward(ones<double>({3}));
    const auto z = b * 2;
    const auto expected = f == relu_<Tensor<double>> ? relu(z) : f == sigmoid_<Tensor<double>> ? sigmoid(z) : tanh(z);
    expected.backward(ones<double>({3}));
    test::expect_near(y, expected, 0, "value");
    test::expect_near(a.grad(), b.grad(), 0, "gradient");
  }
}

TEST(Activation, Errors) {
  const auto x = ones<float>({2});
  EXPECT_THROW(softplus(x, 0), Error);
  EXPECT_THROW(hardtanh(x, 2, 1), Error);
  EXPECT_THROW(hardtanh(x, nan, 1), Error);
}

}  // namespace
}  // namespace tenet
