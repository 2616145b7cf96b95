#include <tenet/ops/map.hpp>
#include <tenet/ops/ops.hpp>

#include <limits>

#include "ops/op_cases.hpp"

namespace tenet {
namespace {

using test::check;
using test::expect_near;
using test::Tensors;

constexpr double infinity = std::numeric_limits<double>::infinity();

// One expression, of tensors or of the numbers in map.
const auto scaled_tanh = [](auto x, auto y) { return x * tanh(y) + 1; };

// map(f, ...) as a function of the vector of inputs.
template <class F>
auto map_all(F f, auto... index) {
  return [=](const auto& x) { return map(f, x[index]...); };
}

// Values as composed of operations or as of a reference; gradients, twice, against finite differences.
TEST(Map, OfTwoTensors) {
  check({.name = "x * tanh(y) + 1",
         .f = map_all(scaled_tanh, 0, 1),
         .inputs = {{{2, 3}}, {{2, 3}}},
         .reference = [](const Tensors& x) { return scaled_tanh(x[0], x[1]); },
         .shapes = test::binary_shapes()});
  check({.name = "a quotient of quotients",
         .f = map_all([](auto x, auto y) { return (x - 2 / y) / (1 - x / y + y * 0.5) - (3 - y) * -x; }, 0, 1),
         .inputs = {{{2, 3}, 0.5, 1}, {{2, 3}, 2, 3}},
         .reference =
             test::elementwise([](double x, double y) { return (x - 2 / y) / (1 - x / y + y * 0.5) - (3 - y) * -x; }),
         .shapes = test::binary_shapes()});
}

TEST(Map, OfOneTensor) {
  const auto unary = [](const char* name, auto f, double low, double high, std::vector<double> kinks = {}) {
    check({.name = name,
           .f = map_all(f, 0),
           .inputs = {{{2, 3}, low, high, kinks}},
           .reference = [f](const Tensors& x) { return f(x[0]); },
           .shapes = test::unary_shapes()});
  };
  unary(
      "exp", [](auto x) { return exp(x); }, -2, 2);
  unary(
      "expm1", [](auto x) { return expm1(x); }, -2, 2);
  unary(
      "log", [](auto x) { return log(x); }, 0.5, 3);
  unary(
      "log1p", [](auto x) { return log1p(x); }, -0.5, 3);
  unary(
      "sqrt", [](auto x) { return sqrt(x); }, 0.5, 3);
  unary(
      "tanh", [](auto x) { return tanh(x); }, -2, 2);
  unary(
      "sigmoid", [](auto x) { return sigmoid(x); }, -2, 2);
  unary(
      "erf", [](auto x) { return erf(x); }, -2, 2);
  unary(
      "sin", [](auto x) { return sin(x); }, -2, 2);
  unary(
      "cos", [](auto x) { return cos(x); }, -2, 2);
  unary(
      "square", [](auto x) { return square(x); }, -2, 2);
  unary("relu", [](auto x) { return relu(x) * x; }, -2, 2, {0});
  unary("abs", [](auto x) { return abs(x) * x; }, -2, 2, {0});
  unary(
      "pow(x, 3)", [](auto x) { return pow(x, 3); }, -2, 2);
  unary(
      "pow(x, 1.5)", [](auto x) { return pow(x, 1.5); }, 0.5, 2);
  unary(
      "pow(2, x)", [](auto x) { return pow(2, x); }, -2, 2);
  unary(
      "+x, -x", [](auto x) { return x * -x; }, -2, 2);
}

TEST(Map, OfTwoTensorsByFunctions) {
  const auto binary = [](const char* name, auto f, auto composed) {
    check({.name = name,
           .f = map_all(f, 0, 1),
           .inputs = {{{2, 3}, 0.5, 1.9}, {{2, 3}, 0.7, 2}},
           .reference = [composed](const Tensors& x) { return composed(x[0], x[1]); }});
  };
  binary(
      "pow", [](auto x, auto y) { return pow(x, y); }, [](auto x, auto y) { return pow(x, y); });
  binary(
      "max", [](auto x, auto y) { return max(x * y, y); }, [](auto x, auto y) { return maximum(x * y, y); });
  binary(
      "min", [](auto x, auto y) { return min(x, x * y); }, [](auto x, auto y) { return minimum(x, x * y); });
  binary(
      "where", [](auto x, auto y) { return where(x > y, x * x, 0.5 * y); },
      [](auto x, auto y) { return where(x > y, x * x, 0.5 * y); });
  binary(
      "where of a number", [](auto x, auto y) { return where(x <= 1, 2, y * x); },
      [](auto x, auto y) { return where(x <= 1, 2, y * x); });
}

TEST(Map, OfSevenTensors) {
  const auto f = [](auto a, auto b, auto c, auto d, auto e, auto x, auto y) {
    return a * b + tanh(c * d) * exp(e) - x / (2 + y * y) + a * y;
  };
  check({.name = "seven",
         .f = map_all(f, 0, 1, 2, 3, 4, 5, 6),
         .inputs = {{{2, 3}}, {{3}}, {{2, 1}}, {{}}, {{2, 3}}, {{1, 1, 3}}, {{2, 3}}},
         .reference = [f](const Tensors& x) { return f(x[0], x[1], x[2], x[3], x[4], x[5], x[6]); },
         .shapes = {{{2, 0}, {1}, {2, 1}, {}, {1, 1}, {2, 0}, {0}}, {{}, {}, {}, {}, {}, {}, {}}}});
}

TEST(Map, OfLargeTensors) {
  // Over several blocks and pieces of parallel work, contiguous, in long runs, in short runs, and gathered.
  const no_grad guard;
  for (const Shape& shape : {Shape{100003}, Shape{300, 301}, Shape{20000, 5}}) {
    Tensor<double> x = randn<double>(shape), y = randn<double>(shape);
    const auto compare = [](const Tensor<double>& a, const Tensor<double>& b) {
      enable_grad on;
      const Tensor<double> leaf_a = detach(a).requires_grad_(), leaf_b = detach(b).requires_grad_();
      const auto run = [&](const Tensor<double>& z) {
        const auto g = autograd::grad<double>(Tensors{sum(z * z)}, std::vector<AnyTensor>{leaf_a, leaf_b});
        return Tensors{detach(z), Tensor<double>(g[0]), Tensor<double>(g[1])};
      };
      const Tensors mapped = run(map(scaled_tanh, leaf_a, leaf_b)), composed = run(scaled_tanh(leaf_a, leaf_b));
      for (std::size_t i = 0; i < 3; ++i) expect_near(mapped[i], composed[i], 1e-10, "result " + std::to_string(i));
    };
    compare(x, y);
    if (shape.size() < 2) continue;
    compare(x.transpose(0, 1), y.transpose(0, 1));
    compare(x.transpose(0, 1), y.transpose(0, 1).contiguous());
    compare(x, y.select(0, 0));
    compare(x, y.narrow(1, 0, 1));
  }
}

TEST(Map, AGradientAloneIsTheSame) {
  for (const std::int64_t n : {5, 100003}) {
    const Tensor<float> x = randn({n}), y = randn({n}).requires_grad_();
    map(scaled_tanh, x, y).sum().backward();
    const Tensor<float> alone = y.grad();
    y.zero_grad();
    scaled_tanh(x, y).sum().backward();
    EXPECT_LT(abs(alone - y.grad()).max().item(), 1e-5f);
    EXPECT_FALSE(x.grad().defined());
  }
}

TEST(Map, CapturesNumbers) {
  const float slope = 0.25f;
  const double shift = 0.1;
  const int factor = 3;
  const Tensor<float> x = tensor({-2.f, 1.f, 4.f}).requires_grad_();
  const Tensor<float> y = map([=](auto v) { return where(v > 0, v, slope * v) * factor + shift; }, x);
  EXPECT_EQ(y.to_vector(), (std::vector<float>{-1.4f, 3.1f, 12.1f}));
  y.sum().backward();
  EXPECT_EQ(x.grad().to_vector(), (std::vector<float>{0.75f, 3, 3}));
}

TEST(Map, TakesPlainNumbersAsTheTensorsType) {
  const Tensor<float> x = tensor({3.f, 1e8f});
  const auto f = [](auto v) {
    static_assert(!std::is_same_v<decltype((v * 0.1 + 1).value), double>);
    return v * 0.1 + 1 - 1L;
  };
  EXPECT_EQ(map(f, x).to_vector(), (std::vector<float>{3.f * 0.1f + 1 - 1, 1e8f * 0.1f}));
  // 0.1f is not 0.1: a comparison in double would fail.
  EXPECT_EQ(map([](auto v) { return where(v == 0.1, v + 1, v); }, tensor({0.1f})).item(), 1.1f);
}

TEST(Map, OfAConstant) {
  const Tensor<double> x = ones<double>({2, 2}).requires_grad_();
  const Tensor<double> y = map([](auto) { return 7; }, x);
  EXPECT_EQ(y.to_vector(), (std::vector<double>(4, 7)));
  y.sum().backward();
  EXPECT_EQ(x.grad().to_vector(), (std::vector<double>(4, 0)));
}

TEST(Map, VariablesGrowAndChange) {
  const auto f = [](auto x, auto y) {
    auto s = x + y;
    s += x;
    s *= 2;
    s -= y * y;
    s /= x;
    auto largest = s;
    largest = x;  // one of fewer inputs
    return s * (x > 0 ? s : 1.0) + +largest;
  };
  check({.name = "variables",
         .f = map_all(f, 0, 1),
         .inputs = {{{2, 3}, 0.5, 2}, {{2, 3}}},
         .reference = [](const Tensors& x) {
           const auto s = ((x[0] + x[1] + x[0]) * 2 - x[1] * x[1]) / x[0];
           return s * s + x[0];
         }});
}

TEST(Map, InHalfPrecisionComputesInFloat) {
  const auto compare = []<class T>(T) {
    for (const std::int64_t n : {3, 1000}) {
      const Tensor<float> x = randn({2, n}), y = randn({n});
      const Tensor<T> hx = to<T>(x).requires_grad_(), hy = to<T>(y).requires_grad_();
      const Tensor<float> fx = to<float>(detach(hx)).requires_grad_(), fy = to<float>(detach(hy)).requires_grad_();
      const Tensor<T> h = map(scaled_tanh, hx, hy);
      const Tensor<float> f = map(scaled_tanh, fx, fy);
      EXPECT_EQ(h.to_vector(), to<T>(detach(f)).to_vector());
      h.sum().backward();
      f.sum().backward();
      EXPECT_EQ(hx.grad().to_vector(), to<T>(fx.grad()).to_vector());
      EXPECT_LT(abs(to<float>(hy.grad()) - fy.grad()).max().item(), 0.1f);
    }
  };
  compare(half());
  compare(bfloat16());
}

// An input that the infinite slope does not belong to keeps its own.
TEST(Map, SlopesDoNotMix) {
  const Tensor<double> x = tensor<double>({2.0}).requires_grad_(), y = tensor<double>({0.0}).requires_grad_();
  map([](auto a, auto b) { return a + sqrt(b); }, x, y).backward(ones<double>({1}));
  EXPECT_EQ(x.grad().item(), 1);
  EXPECT_EQ(y.grad().item(), infinity);
  // Nor does the branch that is not chosen.
  const Tensor<double> z = tensor<double>({0.0, 4.0}).requires_grad_();
  map([](auto a) { return where(a > 0, sqrt(a), a); }, z).sum().backward();
  EXPECT_EQ(z.grad().to_vector(), (std::vector<double>{1, 0.25}));
  // Where the function is constant the gradient is 0, whatever comes from behind.
  const Tensor<double> w = tensor<double>({-1.0, 1.0}).requires_grad_();
  map([](auto a) { return relu(a); }, w).backward(full<double>({2}, infinity));
  EXPECT_EQ(w.grad().to_vector(), (std::vector<double>{0, infinity}));
}

TEST(Map, SlopesAtSpecialPoints) {
  const auto slopes = [](auto f, double a, double b) {
    const Tensor<double> x = scalar(a).requires_grad_(), y = scalar(b).requires_grad_();
    map(f, x, y).backward();
    return std::vector<double>{x.grad().item(), y.grad().item()};
  };
  const auto power = [](auto x, auto y) { return pow(x, y); };
  EXPECT_EQ(slopes(power, 0, 2), (std::vector<double>{0, 0}));
  EXPECT_EQ(slopes(power, 0, 0), (std::vector<double>{0, 0}));
  EXPECT_EQ(slopes(power, 3, 0), (std::vector<double>{0, std::log(3)}));
  const auto larger = [](auto x, auto y) { return maximum(x, y); };
  EXPECT_EQ(slopes(larger, 1, 1), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(slopes(larger, 1, 2), (std::vector<double>{0, 1}));
  const auto sizes = [](auto x, auto y) { return abs(x) + relu(y); };
  EXPECT_EQ(slopes(sizes, 0, 0), (std::vector<double>{0, 0}));
  EXPECT_EQ(slopes(sizes, -2, -3), (std::vector<double>{-1, 0}));
  EXPECT_EQ(slopes([](auto x, auto y) { return pow(x, 0) * y; }, 0, 5), (std::vector<double>{0, 1}));
}

TEST(Map, NaNStays) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor<double> x = tensor<double>({nan, 1.0}), y = tensor<double>({1.0, nan});
  for (const auto& z :
       {map([](auto a, auto b) { return max(a, b); }, x, y), map([](auto a, auto b) { return min(a, b); }, x, y),
        map([](auto a, auto b) { return relu(a) + abs(b); }, x, y)}) {
    for (const double v : z.to_vector()) EXPECT_TRUE(std::isnan(v));
  }
}

TEST(Map, RecordsOneNode) {
  const Tensor<float> x = randn({3}).requires_grad_();
  EXPECT_TRUE(map(scaled_tanh, x, x).requires_grad());
  const no_grad guard;
  EXPECT_FALSE(map(scaled_tanh, x, x).requires_grad());
}

TEST(Map, OfOneTensorTwice) {
  const Tensor<double> x = randn<double>({4}).requires_grad_();
  autograd::gradcheck([](const Tensors& in) { return map(scaled_tanh, in[0], in[0]); }, {x});
}

TEST(Map, HasNoThirdDerivative) {
  const Tensor<double> x = randn<double>({3}).requires_grad_();
  const auto derive = [&](const Tensor<double>& y) {
    return Tensor<double>(
        autograd::grad<double>(Tensors{y.sum()}, std::vector<AnyTensor>{x}, {.create_graph = true})[0]);
  };
  const Tensor<double> second = derive(derive(map([](auto v) { return v * v * v; }, x)));
  expect_near(detach(second), 6 * detach(x), 1e-12, "second derivative");
  try {
    derive(second);
    FAIL() << "no third derivative expected";
  } catch (const NotImplemented& e) {
    EXPECT_NE(std::string(e.what()).find("map: cannot be differentiated a third time"), std::string::npos);
  }
}

TEST(Map, NamesShapesThatDoNotBroadcast) {
  try {
    map(scaled_tanh, ones<float>({2, 3}), ones<float>({4}));
    FAIL() << "the shapes do not broadcast";
  } catch (const ShapeError& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("map: shapes [2, 3] and [4] do not broadcast"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace tenet
