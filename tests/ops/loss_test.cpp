#include <tenet/ops/loss.hpp>

#include "ops/op_cases.hpp"
#include "ops/reduced.hpp"

namespace tenet {
namespace {

using test::check;

using Floats = std::vector<float>;
using Classes = std::vector<std::int64_t>;
constexpr float infinity = std::numeric_limits<float>::infinity();

constexpr Reduction reductions[] = {Reduction::none, Reduction::mean, Reduction::sum};

std::string name(Reduction r) { return r == Reduction::none ? "none" : r == Reduction::mean ? "mean" : "sum"; }

Tensor<std::int64_t> classes(const Classes& c) { return from_vector(c, {std::int64_t(c.size())}); }

void expect_floats(const Tensor<float>& x, const Floats& want, float tolerance = 1e-6f) {
  const Floats got = x.to_vector();
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(test::near(got[i], want[i], tolerance)) << i << ": " << got[i] << " instead of " << want[i];
  }
}

template <class E, class F>
std::string message(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing was thrown";
}

// ---- against PyTorch

TEST(CrossEntropy, CasesAgainstPyTorch) {
  for (const std::string shape : {"", "_2d", "_one"}) {
    for (const Reduction r : reductions) {
      for (const double smoothing : {0.0, 0.3}) {
        const std::string with = (smoothing == 0 ? "_0_" : "_0.3_") + name(r);
        check({.name = "cross_entropy" + shape + with,
               .f =
                   [=](const auto& x) {
                     return cross_entropy(x[0], to<std::int64_t>(x[1]), {.reduction = r, .label_smoothing = smoothing});
                   },
               .file = "loss.txt"});
        check({.name = "cross_entropy" + shape + "_weight" + with,
               .f =
                   [=](const auto& x) {
                     return cross_entropy(x[0], to<std::int64_t>(x[1]),
                                          {.weight = x[2], .reduction = r, .label_smoothing = smoothing});
                   },
               .file = "loss.txt"});
        check({.name = "cross_entropy" + shape + "_probabilities" + with,
               .f =
                   [=](const auto& x) {
                     return cross_entropy(x[0], x[1], {.weight = x[2], .reduction = r, .label_smoothing = smoothing});
                   },
               .file = "loss.txt"});
      }
    }
  }
}

TEST(NllLoss, CasesAgainstPyTorch) {
  for (const std::string shape : {"", "_2d"}) {
    for (const Reduction r : reductions) {
      check({.name = "nll_loss" + shape + "_" + name(r),
             .f = [=](const auto& x) { return nll_loss(x[0], to<std::int64_t>(x[1]), {.reduction = r}); },
             .file = "loss.txt"});
      check(
          {.name = "nll_loss" + shape + "_weight_" + name(r),
           .f = [=](const auto& x) { return nll_loss(x[0], to<std::int64_t>(x[1]), {.weight = x[2], .reduction = r}); },
           .file = "loss.txt"});
    }
  }
}

TEST(Loss, CasesAgainstPyTorch) {
  for (const Reduction r : reductions) {
    const std::string end = "_" + name(r);
    check({.name = "mse_loss" + end, .f = [=](const auto& x) { return mse_loss(x[0], x[1], r); }, .file = "loss.txt"});
    check({.name = "l1_loss" + end, .f = [=](const auto& x) { return l1_loss(x[0], x[1], r); }, .file = "loss.txt"});
    for (const auto& [text, beta] : {std::pair{"1", 1.0}, {"0.5", 0.5}, {"0", 0.0}}) {
      check({.name = std::string("smooth_l1_loss_") + text + end,
             .f = [=, b = beta](const auto& x) { return smooth_l1_loss(x[0], x[1], {.beta = b, .reduction = r}); },
             .file = "loss.txt"});
    }
    check({.name = "binary_cross_entropy" + end,
           .f = [=](const auto& x) { return binary_cross_entropy(x[0], x[1], {.reduction = r}); },
           .file = "loss.txt"});
    check({.name = "binary_cross_entropy_weight" + end,
           .f = [=](const auto& x) { return binary_cross_entropy(x[0], x[1], {.weight = x[2], .reduction = r}); },
           .file = "loss.txt"});
    check({.name = "binary_cross_entropy_with_logits" + end,
           .f = [=](const auto& x) { return binary_cross_entropy_with_logits(x[0], x[1], {.reduction = r}); },
           .file = "loss.txt"});
    check({.name = "binary_cross_entropy_with_logits_weight" + end,
           .f =
               [=](const auto& x) {
                 return binary_cross_entropy_with_logits(x[0], x[1],
                                                         {.weight = x[2], .reduction = r, .pos_weight = x[3]});
               },
           .file = "loss.txt"});
  }
}

// ---- special values

struct ValueAndGradient {
  Floats value, gradient;
};

ValueAndGradient of_logits(const Floats& logits, const Shape& shape, const Classes& targets,
                           const CrossEntropyOptions& options = {}) {
  const auto x = from_vector(logits, shape).requires_grad_();
  const auto loss = cross_entropy(x, classes(targets), options);
  loss.backward(ones(loss.shape()));
  return {loss.to_vector(), x.grad().to_vector()};
}

TEST(CrossEntropy, OfInfiniteAndLargeLogits) {
  EXPECT_EQ(of_logits({-infinity, 0}, {1, 2}, {1}).value, (Floats{0}));
  EXPECT_EQ(of_logits({-infinity, 0}, {1, 2}, {0}).value, (Floats{infinity}));
  const auto wrong = of_logits({1000, 0}, {1, 2}, {1}), right = of_logits({1000, 0}, {1, 2}, {0});
  EXPECT_EQ(wrong.value, (Floats{1000}));
  EXPECT_EQ(wrong.gradient, (Floats{1, -1}));
  EXPECT_EQ(right.value, (Floats{0}));
  EXPECT_EQ(right.gradient, (Floats{0, 0}));
}

TEST(CrossEntropy, WithEveryTargetIgnored) {
  const Floats x{1, 2, 3}, zeros{0, 0, 0};
  const auto none = of_logits(x, {1, 3}, {-100}, {.reduction = Reduction::none});
  EXPECT_EQ(none.value, (Floats{0}));
  EXPECT_EQ(none.gradient, zeros);
  const auto sum = of_logits(x, {1, 3}, {-100}, {.reduction = Reduction::sum});
  EXPECT_EQ(sum.value, (Floats{0}));
  EXPECT_EQ(sum.gradient, zeros);
  for (const double smoothing : {0.0, 0.1}) {
    const auto mean = of_logits(x, {1, 3}, {-100}, {.label_smoothing = smoothing});
    EXPECT_TRUE(std::isnan(mean.value[0]));
    EXPECT_EQ(mean.gradient, zeros);
  }
  const auto log_p = from_vector(x, {1, 3}).requires_grad_();
  nll_loss(log_p, classes({-100})).backward();
  EXPECT_EQ(log_p.grad().to_vector(), zeros);
}

TEST(CrossEntropy, OfAnEmptyBatch) {
  const auto x = zeros({0, 3}).requires_grad_();
  const auto none = zeros<std::int64_t>({0});
  EXPECT_EQ(cross_entropy(x, none, {.reduction = Reduction::sum}).item(), 0);
  EXPECT_TRUE(std::isnan(cross_entropy(x, none).item()));
  EXPECT_EQ(cross_entropy(x, none, {.reduction = Reduction::none}).shape(), (Shape{0}));
  // What the empty batch was made from has gradients of exactly 0.
  for (const Reduction r : {Reduction::sum, Reduction::mean}) {
    const auto weight = ones({3}).requires_grad_();
    cross_entropy(zeros({0, 3}) * weight, none, {.reduction = r}).backward();
    EXPECT_EQ(weight.grad().to_vector(), (Floats{0, 0, 0}));
  }
  EXPECT_TRUE(std::isnan(mse_loss(zeros({0}), zeros({0})).item()));
  EXPECT_EQ(mse_loss(zeros({0}), zeros({0}), Reduction::sum).item(), 0);
  EXPECT_EQ(cross_entropy(zeros({0, 3, 2}), zeros<std::int64_t>({0, 2}), {.reduction = Reduction::none}).shape(),
            (Shape{0, 2}));
}

TEST(CrossEntropy, TargetsOutsideOfTheClassesAreErrors) {
  const auto x = zeros({6, 6});
  EXPECT_EQ(message<IndexError>([&] {
              cross_entropy(x, classes({1, 2, 3, 4, 5, 6}));
            }),
            "cross_entropy: target 6 (element 5) is outside of 6 classes, [0, 5]");
  EXPECT_EQ(message<IndexError>([&] {
              nll_loss(zeros({1, 5}), classes({-4}), {.ignore_index = -1});
            }),
            "nll_loss: target -4 (element 0) is outside of 5 classes, [0, 4]");
  EXPECT_THROW(cross_entropy(zeros({1, 5}), classes({-4}), {.ignore_index = -1}), IndexError);
  EXPECT_THROW(cross_entropy(zeros({1, 5}), classes({-1})), IndexError);
}

TEST(CrossEntropy, IgnoresTheIndexItIsTold) {
  const auto x = zeros({6, 3});
  const auto t = classes({0, 1, 255, 0, 1, 2});
  const float l = 1.0986123f;
  expect_floats(cross_entropy(x, t, {.ignore_index = 255, .reduction = Reduction::none}), {l, l, 0, l, l, l});
  EXPECT_FLOAT_EQ(cross_entropy(x, t, {.ignore_index = 255}).item(), l);
  EXPECT_FLOAT_EQ(cross_entropy(x, t, {.ignore_index = 255, .reduction = Reduction::sum}).item(), 5.493061f);
  // An ignored class still has its share of the softmax.
  expect_floats(cross_entropy(x, t.clone().fill_(1), {.ignore_index = 2, .reduction = Reduction::none}), Floats(6, l));
  // The logits of an ignored row do not matter.
  const auto odd = of_logits({std::nanf(""), 0, 1, 2}, {2, 2}, {-100, 0});
  EXPECT_FALSE(std::isnan(odd.value[0]));
  EXPECT_EQ(odd.gradient[0], 0);
}

TEST(CrossEntropy, SmoothsOnlyTheRowsThatCount) {
  const CrossEntropyOptions none{.reduction = Reduction::none, .label_smoothing = 0.1};
  const auto losses = of_logits({1, 2, 3, 0.4f}, {2, 2}, {-100, 1}, none);
  EXPECT_EQ(losses.value[0], 0);
  EXPECT_NEAR(losses.value[1], 2.541645f, 2e-6f);
  EXPECT_EQ(losses.gradient[0], 0);
  EXPECT_EQ(losses.gradient[1], 0);
  for (const Reduction r : {Reduction::sum, Reduction::mean}) {
    const auto one = of_logits({1, 2, 3, 0.4f}, {2, 2}, {-100, 1}, {.reduction = r, .label_smoothing = 0.1});
    EXPECT_NEAR(one.value[0], 2.541645f, 2e-6f);
  }
  EXPECT_NEAR(of_logits({2, 1, 0}, {1, 3}, {0}).value[0], 0.407606f, 1e-6f);
  EXPECT_NEAR(of_logits({2, 1, 0}, {1, 3}, {0}, {.label_smoothing = 0.1}).value[0], 0.507606f, 1e-6f);
  EXPECT_THROW(cross_entropy(zeros({1, 2}), classes({0}), {.label_smoothing = 1.5}), Error);
  EXPECT_THROW(cross_entropy(zeros({1, 2}), classes({0}), {.label_smoothing = -0.1}), Error);
}

TEST(CrossEntropy, WrongShapesAndTypesAreErrors) {
  EXPECT_EQ(message<ShapeError>([] {
              cross_entropy(zeros({4, 3}), classes({0, 1}));
            }),
            "cross_entropy: expected targets of shape [4] for scores [4, 3], got [2]");
  EXPECT_EQ(message<ShapeError>([] {
              cross_entropy(zeros({2, 3, 5}), zeros<std::int64_t>({2, 3}));
            }),
            "cross_entropy: expected targets of shape [2, 5] for scores [2, 3, 5], got [2, 3]");
  EXPECT_THROW(cross_entropy(scalar(1.f), scalar<std::int64_t>(0)), ShapeError);
  EXPECT_THROW(cross_entropy(zeros({2, 0}), classes({0, 0})), ShapeError);
  EXPECT_EQ(message<ShapeError>([] {
              cross_entropy(zeros({2, 3}), classes({0, 0}), {.weight = ones({2})});
            }),
            "cross_entropy: expected a weight for each of 3 classes, got shape [2]");
  EXPECT_EQ(message<DTypeError>([] {
              nll_loss(zeros({2, 3}), classes({0, 0}), {.weight = ones<double>({3})});
            }),
            "nll_loss: expected weights of float32, got float64");
  EXPECT_THROW(cross_entropy(zeros({2, 3}), zeros({2, 1})), ShapeError);
  EXPECT_THROW(mse_loss(zeros({4, 1}), zeros({4})), ShapeError);
  EXPECT_THROW(l1_loss(zeros({4}), zeros({3})), ShapeError);
  EXPECT_THROW(smooth_l1_loss(zeros({4}), zeros({4}), {.beta = -1}), Error);
  EXPECT_THROW(binary_cross_entropy(zeros({4}), zeros({1})), ShapeError);
  EXPECT_THROW(binary_cross_entropy(zeros({4}), zeros({4}), {.weight = ones({2, 4})}), ShapeError);
  EXPECT_THROW(binary_cross_entropy_with_logits(zeros({4}), zeros({4}), {.pos_weight = ones<double>({4})}), DTypeError);
}

TEST(CrossEntropy, OfHalvesAveragesInFloat) {
  const std::int64_t n = 20000;
  const Tensor<half> x = zeros<half>({n, 2});
  for (std::int64_t i = 0; i < n; ++i) x(i, 1) = half(10);
  const Tensor<half> leaf = x.clone().requires_grad_();
  const Tensor<half> loss = cross_entropy(leaf, zeros<std::int64_t>({n}));  // the sum, 200000, is no half
  EXPECT_NEAR(float(loss.item()), 10, 0.01);
  (loss * 1000).backward();
  EXPECT_NEAR(float(leaf.grad()(0, 1)), 0.05, 1e-4);
  const auto b = cross_entropy(to<bfloat16>(x), zeros<std::int64_t>({n}), {.weight = ones<bfloat16>({2})});
  EXPECT_NEAR(float(b.item()), 10, 0.05);
  EXPECT_NEAR(float(nll_loss(x, ones<std::int64_t>({n})).item()), -10, 0.01);
}

TEST(CrossEntropy, ASecondDerivativeIsTheLast) {
  const auto x = from_vector<float>({1, 2, 3}, {1, 3}).requires_grad_();
  const auto derive = [&](const Tensor<float>& y) { return sum(square(autograd::grad(y, x, {.create_graph = true}))); };
  const auto loss = cross_entropy(x, classes({0}));
  EXPECT_THROW(derive(derive(loss)).backward(), NotImplemented);
  derive(derive(nll_loss(log_softmax(x, 1), classes({0})))).backward();
}

TEST(BinaryCrossEntropy, ClampsTheLogarithm) {
  const auto of = [](float p, float t) { return binary_cross_entropy(scalar(p), scalar(t)).item(); };
  EXPECT_EQ(of(0, 1), 100);
  EXPECT_EQ(of(1, 1), 0);
  EXPECT_EQ(of(1, 0), 100);
  EXPECT_EQ(of(0, 0), 0);
  const auto p = from_vector<float>({0, 1, 0, 1}, {4}).requires_grad_();
  binary_cross_entropy(p, from_vector<float>({1, 0, 0, 1}, {4})).backward();
  for (float g : p.grad().to_vector()) EXPECT_TRUE(std::isfinite(g));
  EXPECT_LT(p.grad()(0), -1e10f);
  EXPECT_GT(p.grad()(1), 1e10f);
  EXPECT_EQ(p.grad()(2), 0);  // as in PyTorch: (p - t) / max(p (1 - p), 1e-12)
  EXPECT_EQ(p.grad()(3), 0);
  for (float wrong : {-0.01f, 1.01f, std::nanf("")}) EXPECT_THROW(of(wrong, 1), Error);
}

TEST(BinaryCrossEntropy, OfLargeLogits) {
  const auto of = [](float x, float t) {
    const auto leaf = scalar(x).requires_grad_();
    const auto loss = binary_cross_entropy_with_logits(leaf, scalar(t));
    loss.backward();
    return std::pair(loss.item(), leaf.grad().item());
  };
  EXPECT_EQ(of(1000, 1), (std::pair{0.f, 0.f}));
  EXPECT_EQ(of(1000, 0), (std::pair{1000.f, 1.f}));
  EXPECT_EQ(of(-1000, 1), (std::pair{1000.f, -1.f}));
  EXPECT_EQ(of(-1000, 0), (std::pair{0.f, 0.f}));
  EXPECT_EQ(of(0, 0.5f), (std::pair{std::log(2.f), 0.f}));
}

TEST(Loss, GradientsAtEqualValuesAreZero) {
  for (const auto loss :
       {+[](const Tensor<float>&x, const Tensor<float>&y) { return mse_loss(x, y); },
        +[](const Tensor<float>&x, const Tensor<float>&y) { return l1_loss(x, y); },
        +[](const Tensor<float>&x, const Tensor<float>&y) { return smooth_l1_loss(x, y); },
        +[](const Tensor<float>&x, const Tensor<float>&y) { return smooth_l1_loss(x, y, {.beta = 0}); }}) {
    const auto x = ones({3}).requires_grad_();
    loss(x, ones({3})).backward();
    EXPECT_EQ(x.grad().to_vector(), (Floats{0, 0, 0}));
  }
}

TEST(Loss, IsTheSameForAnyNumberOfThreads) {
  for (const std::int64_t rows : {3276, 3277, 3278, 10001}) {
    const Tensor<float> x = empty({rows, 10});
    const Tensor<std::int64_t> t = empty<std::int64_t>({rows});
    for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] = 5 * std::sin(float(i * i % 1009));
    for (std::int64_t i = 0; i < rows; ++i) t.data()[i] = i % 11 == 10 ? -100 : i % 10;
    const CrossEntropyOptions options{.weight = arange(1, 11), .label_smoothing = 0.1};
    EXPECT_TRUE(test::same_for_any_threads([&] { return cross_entropy(x, t, options); })) << rows;
    EXPECT_TRUE(test::same_for_any_threads([&] { return nll_loss(x, t); })) << rows;
    EXPECT_TRUE(test::same_for_any_threads([&] { return mse_loss(x, x * 2); })) << rows;
    EXPECT_TRUE(test::same_for_any_threads([&] { return binary_cross_entropy_with_logits(x, x); })) << rows;
    EXPECT_TRUE(test::same_for_any_threads([&] {
      const Tensor<float> leaf = x.clone().requires_grad_();
      cross_entropy(leaf, t, options).backward();
      return leaf.grad();
    })) << rows;
  }
}

TEST(KlDiv, CasesAgainstPyTorch) {
  for (const Reduction r : reductions) {
    check({.name = "kl_div_" + name(r),
           .f = [=](const auto& x) { return kl_div(x[0], x[1], {.reduction = r}); },
           .file = "loss.txt"});
    check({.name = "kl_div_log_" + name(r),
           .f = [=](const auto& x) { return kl_div(x[0], x[1], {.reduction = r, .log_target = true}); },
           .file = "loss.txt"});
  }
}

TEST(KlDiv, IsZeroWhereTheTargetIs) {
  const auto reference = test::read_reference("loss.txt", "kl_div_zero");
  const auto loss = kl_div(reference.inputs[0], reference.inputs[1], {.reduction = Reduction::sum});
  EXPECT_NEAR(loss.item(), reference.output.item(), 1e-12);
  EXPECT_THROW(kl_div(zeros<float>({2, 3}), zeros<float>({3})), ShapeError);
}

}  // namespace
}  // namespace tenet
