#include <tenet/ops/arithmetic.hpp>
#include <tenet/ops/conv2d.hpp>

#include "message.hpp"
#include "ops/op_cases.hpp"
#include "ops/reduced.hpp"

namespace tenet {
namespace {

using test::check;
using test::message;

using Floats = std::vector<float>;

struct ConvCase {
  const char* name;
  Conv2dOptions options = {};
};

TEST(Conv2d, CasesAgainstPyTorch) {
  for (const ConvCase& c : {ConvCase{"plain"},
                            {"stride", {.stride = 2}},
                            {"strides", {.stride = {2, 3}}},
                            {"stride_over_kernel", {.stride = 3}},
                            {"padding", {.padding = {1, 2}}},
                            {"padding_over_kernel", {.padding = 3}},
                            {"dilation", {.dilation = {2, 3}}},
                            {"groups", {.groups = 2}},
                            {"depthwise", {.stride = 2, .padding = 1, .groups = 3}},
                            {"depthwise_multiplied", {.groups = 2}},
                            {"pointwise"},
                            {"pointwise_stride", {.stride = 2}},
                            {"pointwise_groups", {.groups = 2}},
                            {"whole_image"},
                            {"same", {.padding = 2}},
                            {"one"},
                            {"one_padded", {.padding = 1}},
                            {"row", {.stride = {1, 2}, .padding = {0, 1}}},
                            {"everything", {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2}},
                            {"unbatched", {.padding = 1}},
                            {"batch_empty"}}) {
    check({.name = std::string("conv2d_") + c.name,
           .f = [o = c.options](const auto& x) { return conv2d(x[0], x[1], x[2], o); },
           .file = "layers.txt"});
  }
  check({.name = "conv2d_no_bias", .f = [](const auto& x) { return conv2d(x[0], x[1]); }, .file = "layers.txt"});
}

/// The sum's gradients of input and weight.
struct Gradients {
  Tensor<float> y, dx, dw;
  Gradients(const Tensor<float>& x, const Tensor<float>& w, const Conv2dOptions& o = {}) {
    const Tensor<float> a = x.clone().requires_grad_(), b = w.clone().requires_grad_();
    y = conv2d(a, b, Tensor<float>(), o);
    sum(y).backward();
    dx = a.grad();
    dw = b.grad();
  }
};

TEST(Conv2d, GroupedPointwise) {
  const Tensor<float> x = zeros({1, 4, 1, 1});
  x(0, 3, 0, 0) = 1;
  Floats want(16, 0.f);
  std::fill(want.begin() + 8, want.end(), 1.f);
  EXPECT_EQ(conv2d(x, ones({16, 2, 1, 1}), Tensor<float>(), {.groups = 2}).to_vector(), want);
}

TEST(Conv2d, DepthwiseWithAStride) {
  const Floats each{4, 6, 6, 6, 9, 9, 6, 9, 9};
  const Floats dx{1, 2, 1, 2, 1, 1, 2, 4, 2, 4, 2, 2, 1, 2, 1, 2, 1, 1,
                  2, 4, 2, 4, 2, 2, 1, 2, 1, 2, 1, 1, 1, 2, 1, 2, 1, 1};
  for (const std::int64_t c : {1, 23, 24, 25}) {
    const Gradients g(ones({1, c, 6, 6}), ones({c, 1, 3, 3}), {.stride = 2, .padding = 1, .groups = c});
    for (std::int64_t i = 0; i < c; ++i) {
      EXPECT_EQ(g.y[0][i].to_vector(), each);
      EXPECT_EQ(g.dw[i].to_vector(), each);
      EXPECT_EQ(g.dx[0][i].to_vector(), dx);
    }
  }
}

TEST(Conv2d, OfAWeightThatIsNotContiguous) {
  const Tensor<float> x = arange(1, 19).view({1, 2, 3, 3}).clone().requires_grad_();
  const Tensor<float> kernel = arange(1, 17).view({2, 2, 2, 2}).clone().requires_grad_();
  const Tensor<float> y = conv2d(x, kernel.transpose(0, 1)), loss = sum(y * y);
  EXPECT_EQ(y.to_vector(), (Floats{548, 600, 704, 756, 788, 872, 1040, 1124}));
  EXPECT_EQ(loss.item(), 5453760.f);
  loss.backward();
  EXPECT_EQ(x.grad().to_vector(), (Floats{8976, 21568, 12864, 26128, 60848, 35264, 18784, 42544, 24032, 30352, 66496,
                                          36416, 75408, 163760, 88896, 46688, 100528, 54112}));
  EXPECT_EQ(kernel.grad().to_vector(), (Floats{16688, 21904, 32336, 37552, 24624, 32272, 47568, 55216,  //
                                               63632, 68848, 79280, 84496, 93456, 101104, 116400, 124048}));
}

TEST(Conv2d, AStrideLeavesARemainder) {
  const Gradients g(arange(1, 26).view({1, 1, 5, 5}), tensor<float>({1, 2, 3, 4}).view({1, 1, 2, 2}), {.stride = 2});
  EXPECT_EQ(g.y.to_vector(), (Floats{51, 71, 151, 171}));
  EXPECT_EQ(g.dw.to_vector(), (Floats{28, 32, 48, 52}));
  EXPECT_EQ(g.dx.to_vector(), (Floats{1, 2, 1, 2, 0, 3, 4, 3, 4, 0, 1, 2, 1, 2, 0, 3, 4, 3, 4, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(conv2d(arange(1, 17).view({1, 1, 4, 4}), ones({1, 1, 1, 1}), Tensor<float>(), {.stride = 2}).to_vector(),
            (Floats{1, 3, 9, 11}));
  const Gradients big(ones({1, 1, 16, 16}), ones({1, 1, 7, 7}), {.stride = 3, .padding = 2});
  EXPECT_EQ(big.y.shape(), (Shape{1, 1, 5, 5}));
  EXPECT_EQ(big.dx.shape(), (Shape{1, 1, 16, 16}));
  EXPECT_EQ(sum(big.dx).item(), sum(big.y).item());
}

TEST(Conv2d, OfAnEmptyBatchHasGradientsOfZeros) {
  const Tensor<float> x = ones({0, 3, 8, 8}).requires_grad_(), w = ones({4, 3, 3, 3}).requires_grad_();
  const Tensor<float> b = ones({4}).requires_grad_();
  const Tensor<float> y = conv2d(x, w, b);
  EXPECT_EQ(y.shape(), (Shape{0, 4, 6, 6}));
  sum(y).backward();
  EXPECT_EQ(x.grad().shape(), x.shape());
  EXPECT_EQ(w.grad().to_vector(), Floats(4 * 27, 0.f));
  EXPECT_EQ(b.grad().to_vector(), Floats(4, 0.f));
}

TEST(Conv2d, WithoutChannelsIsTheBias) {
  EXPECT_EQ(conv2d(ones({1, 0, 3, 3}), ones({2, 0, 2, 2}), tensor<float>({3, 4})).to_vector(),
            (Floats{3, 3, 3, 3, 4, 4, 4, 4}));
  EXPECT_EQ(conv2d(ones({2, 1, 3, 3}), ones({0, 1, 2, 2})).shape(), (Shape{2, 0, 2, 2}));
  EXPECT_EQ(conv2d(ones({1, 1, 0, 2}), ones({1, 1, 2, 2}), tensor<float>({5}), {.padding = 1}).to_vector(),
            Floats(3, 5.f));
}

TEST(Conv2d, NaNStaysInsideItsWindows) {
  const Tensor<float> x = ones({1, 1, 4, 4});
  x(0, 0, 0, 0) = std::nanf("");
  const Floats y = conv2d(x, zeros({1, 1, 2, 2})).to_vector();
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(Floats(y.begin() + 1, y.end()), Floats(8, 0.f));
}

TEST(Conv2d, TakesHalves) {
  const Tensor<bfloat16> x = full<bfloat16>({1, 8, 12, 12}, bfloat16(1)).requires_grad_();
  const Tensor<bfloat16> w = full<bfloat16>({1, 8, 8, 8}, bfloat16(1)).requires_grad_();
  const Tensor<bfloat16> y = conv2d(x, w, full<bfloat16>({1}, bfloat16(0)));
  EXPECT_EQ(float(y(0, 0, 4, 4)), 512.f);  // sums of ones in bfloat16 would stop at 256
  sum(y).backward();
  EXPECT_EQ(float(w.grad()(0, 7, 0, 0)), 25.f);
  EXPECT_EQ(float(x.grad()(0, 0, 5, 5)), 25.f);
}

// Float against double at the sizes of real layers.
TEST(Conv2d, AtTheSizesOfRealLayers) {
  struct Layer {
    Shape x, w;
    Conv2dOptions options = {};
  };
  for (const Layer& l : {Layer{{3, 1, 28, 28}, {20, 1, 5, 5}},
                         {{3, 20, 12, 12}, {50, 20, 5, 5}},
                         {{2, 16, 15, 17}, {24, 16, 3, 3}, {.padding = 1}},
                         {{1, 3, 33, 30}, {8, 3, 7, 7}, {.stride = 2, .padding = 3}},
                         {{2, 32, 9, 9}, {64, 32, 1, 1}},
                         {{1, 16, 13, 14}, {16, 1, 3, 3}, {.padding = 2, .dilation = 2, .groups = 16}}}) {
    SCOPED_TRACE(l.x.str() + " " + l.w.str());
    Generator g(3);
    const Tensor<float> x = randn(l.x, g).requires_grad_(), w = (randn(l.w, g) * 0.1f).detach().requires_grad_();
    const Tensor<float> b = randn({l.w[0]}, g).requires_grad_();
    const Tensor<double> dx = to<double>(x).detach().requires_grad_(), dw = to<double>(w).detach().requires_grad_();
    const Tensor<double> db = to<double>(b).detach().requires_grad_();
    const Tensor<float> y = conv2d(x, w, b, l.options), weights = randn(y.shape(), g);
    const Tensor<double> dy = conv2d(dx, dw, db, l.options);
    test::expect_near(y, dy, 1e-4, "output");
    sum(y * weights).backward();
    sum(dy * to<double>(weights)).backward();
    test::expect_near(x.grad(), dx.grad(), 1e-4, "gradient of the input");
    test::expect_near(w.grad(), dw.grad(), 1e-4, "gradient of the weight");
    test::expect_near(b.grad(), db.grad(), 1e-4, "gradient of the bias");
  }
}

TEST(Conv2d, ErrorsNameTheShapes) {
  EXPECT_EQ(message<ShapeError>([] {
              conv2d(ones({8, 1, 28, 28}), ones({4, 3, 3, 3}));
            }),
            "conv2d: expected 3 input channels, got input [8, 1, 28, 28]");
  EXPECT_EQ(message<ShapeError>([] {
              conv2d(ones({1, 2, 5, 5}), ones({4, 2, 3, 3}), ones({3}));
            }),
            "conv2d: expected a bias [4], got [3]");
  EXPECT_EQ(message<ShapeError>([] {
              conv2d(ones({1, 2, 2, 5}), ones({4, 2, 3, 3}));
            }),
            "conv2d: a kernel that spans 3 does not fit a size of 2 padded by 0");
  const Tensor<float> x = ones({1, 4, 5, 5}), w = ones({6, 2, 3, 3}), none;
  const auto expect_throws = [&](const Tensor<float>& a, const Tensor<float>& b, const Conv2dOptions& o) {
    EXPECT_THROW(conv2d(a, b, none, o), ShapeError);
  };
  expect_throws(x, ones({5, 2, 3, 3}), {.groups = 2});  // 5 outputs in 2 groups
  expect_throws(ones({1, 5, 5, 5}), w, {.groups = 2});  // 5 inputs in 2 groups
  expect_throws(x, w, {.groups = 0});
  expect_throws(x, w, {.groups = -2});
  expect_throws(x, w, {.stride = 0, .groups = 2});
  expect_throws(x, w, {.padding = -1, .groups = 2});
  expect_throws(x, w, {.dilation = 0, .groups = 2});
  expect_throws(x, w, {.dilation = 3, .groups = 2});
  expect_throws(x, w, {.dilation = std::int64_t(1) << 62, .groups = 2});
  expect_throws(x, w, {.padding = std::int64_t(1) << 62, .groups = 2});
  expect_throws(x, w, {.padding = std::int64_t(1) << 38, .groups = 2});  // no such output
  expect_throws(x, ones({6, 2, 0, 3}), {.groups = 2});
  expect_throws(ones({4, 5}), w, {.groups = 2});
  expect_throws(x, ones({6, 2, 3}), {.groups = 2});
  expect_throws(empty({1, 2, 3, 3}), empty({0, std::int64_t(1) << 40, 1, 1}), {.groups = std::int64_t(1) << 40});
  EXPECT_THROW(conv2d(none, w), Error);
  EXPECT_THROW(conv2d(x, none), Error);
}

TEST(Conv2d, IsTheSameForAnyNumberOfThreads) {
  Generator g(5);
  const Tensor<float> x = randn({7, 8, 20, 19}, g), w = randn({12, 8, 3, 3}, g), b = randn({12}, g);
  const Tensor<float> weights = randn({7, 12, 20, 19}, g);
  EXPECT_TRUE(test::same_for_any_threads([&] { return conv2d(x, w, b, {.padding = 1}); }));
  for (int which : {0, 1, 2}) {
    EXPECT_TRUE(test::same_for_any_threads([&] {
      const Tensor<float> leaves[] = {x.clone().requires_grad_(), w.clone().requires_grad_(),
                                      b.clone().requires_grad_()};
      sum(conv2d(leaves[0], leaves[1], leaves[2], {.padding = 1}) * weights).backward();
      return leaves[which].grad();
    })) << which;
  }
}

}  // namespace
}  // namespace tenet
