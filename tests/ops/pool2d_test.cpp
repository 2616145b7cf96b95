#include <tenet/ops/arithmetic.hpp>
#include <tenet/ops/pool2d.hpp>

#include "message.hpp"
#include "ops/op_cases.hpp"
#include "ops/reduced.hpp"

namespace tenet {
namespace {

using test::check;
using test::message;

using Floats = std::vector<float>;
constexpr float infinity = std::numeric_limits<float>::infinity();
const float nan = std::nanf("");

struct PoolCase {
  const char* name;
  MaxPool2dOptions options;
};

TEST(MaxPool2d, CasesAgainstPyTorch) {
  for (const PoolCase& c : {PoolCase{"2x2", {.kernel_size = 2}},
                            {"remainder", {.kernel_size = 2}},
                            {"stride", {.kernel_size = 3, .stride = 2}},
                            {"stride_over_kernel", {.kernel_size = 2, .stride = 3}},
                            {"rectangle", {.kernel_size = {3, 2}, .stride = {1, 2}}},
                            {"padding", {.kernel_size = 3, .stride = 1, .padding = 1}},
                            {"paddings", {.kernel_size = {2, 4}, .stride = {2, 1}, .padding = {1, 2}}},
                            {"dilation", {.kernel_size = 2, .stride = 1, .dilation = {2, 3}}},
                            {"dilation_padding", {.kernel_size = 3, .stride = 2, .padding = 1, .dilation = 2}},
                            {"ceil", {.kernel_size = 3, .stride = 2, .ceil_mode = true}},
                            {"ceil_padding", {.kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true}},
                            {"ceil_outside", {.kernel_size = 1, .stride = 2, .ceil_mode = true}},
                            {"ceil_dilation", {.kernel_size = 2, .stride = 3, .dilation = 2, .ceil_mode = true}},
                            {"column", {.kernel_size = {3, 1}, .stride = 1}},
                            {"one", {.kernel_size = 1}},
                            {"whole_image", {.kernel_size = {3, 4}}},
                            {"unbatched", {.kernel_size = 2}}}) {
    check({.name = std::string("max_pool2d_") + c.name,
           .f = [o = c.options](const auto& x) { return max_pool2d(x[0], o); },
           .file = "layers.txt",
           .expands = false});  // equal elements have no one gradient
  }
}

// More than 256 taps, which a byte does not number; and empty inputs.
TEST(MaxPool2d, CasesOfManyTapsAndOfNone) {
  const auto reference = [](const test::Tensors& x) {
    const std::int64_t planes = x[0].numel() ? x[0].size(0) * x[0].size(1) : 0;
    Tensor<double> y = empty<double>({x[0].size(0), x[0].size(1), 2, 1});
    for (std::int64_t i = 0; i < 2 * planes; ++i) {
      double most = -1e300;
      for (std::int64_t t = 0; t < 17 * 17; ++t) {
        most = std::max(most,
                        x[0].select(0, i / 2 / x[0].size(1)).select(0, i / 2 % x[0].size(1))(i % 2 + t / 17, t % 17));
      }
      y.data()[i] = most;
    }
    return y;
  };
  check({.name = "17 x 17",
         .f = [](const auto& x) { return max_pool2d(x[0], {.kernel_size = 17, .stride = 1}); },
         .inputs = {{{1, 1, 18, 17}}},
         .reference = reference,
         .shapes = {{{0, 2, 18, 17}}, {{2, 0, 18, 17}}},
         .expands = false});
}

struct Pooled {
  Tensor<float> y, dx;
  Pooled(const Tensor<float>& x, const MaxPool2dOptions& o) {
    const Tensor<float> leaf = x.clone().requires_grad_();
    y = max_pool2d(leaf, o);
    sum(y).backward();
    dx = leaf.grad();
  }
};

TEST(MaxPool2d, LetsNaNWin) {
  const Pooled one(tensor<float>({1, nan, 5, 6}).view({1, 1, 2, 2}), {.kernel_size = 2});
  EXPECT_TRUE(std::isnan(one.y.item()));
  EXPECT_EQ(one.dx.to_vector(), (Floats{0, 1, 0, 0}));
  const Pooled all(full({1, 1, 2, 2}, nan), {.kernel_size = 2});
  EXPECT_TRUE(std::isnan(all.y.item()));
  EXPECT_EQ(sum(all.dx).item(), 1);
}

TEST(MaxPool2d, TakesTheFirstOfMinusInfinities) {
  const Pooled p(full({1, 1, 2, 2}, -infinity), {.kernel_size = 2});
  EXPECT_EQ(p.y.item(), -infinity);
  EXPECT_EQ(p.dx.to_vector(), (Floats{1, 0, 0, 0}));
}

TEST(MaxPool2d, ACeilingWindowStartsInside) {
  const MaxPool2dOptions o{.kernel_size = 1, .stride = 2, .ceil_mode = true};
  const Tensor<float> y = max_pool2d(arange(42).view({1, 1, 6, 7}), o);
  EXPECT_EQ(y.shape(), (Shape{1, 1, 3, 4}));
  EXPECT_EQ(y.to_vector(), (Floats{0, 2, 4, 6, 14, 16, 18, 20, 28, 30, 32, 34}));
  // Every output of every geometry is an element of the input.
  const Tensor<float> x = arange(30).view({1, 1, 5, 6});
  for (const std::int64_t kernel : {1, 2, 3, 4})
    for (const std::int64_t stride : {1, 2, 3, 7})
      for (std::int64_t padding = 0; padding <= kernel / 2; ++padding)
        for (const std::int64_t dilation : {1, 2, 3}) {
          const MaxPool2dOptions any{kernel, stride, padding, dilation, true};
          if (dilation * (kernel - 1) + 1 > 5 + 2 * padding) continue;
          for (const float v : max_pool2d(x, any).to_vector()) EXPECT_TRUE(v >= 0 && v < 30) << v;
        }
}

TEST(MaxPool2d, PadsWithNothing) {
  const MaxPool2dOptions o{.kernel_size = 3, .stride = 1, .padding = 1};
  for (const float v : {-1.f, 1.f, -infinity}) {
    EXPECT_EQ(max_pool2d(full({1, 1, 3, 3}, v), o).to_vector(), Floats(9, v));
  }
}

TEST(MaxPool2d, SendsTheGradientToTheFirstOfEqualMaxima) {
  const Pooled p(tensor<float>({{3, 0, 0, 2, 3}, {0, 0, 0, 0, 1}, {0, 0, 0, 1, 3}, {0, 0, 0, 0, 0}, {1, 1, 3, 8, 6}})
                     .view({1, 1, 5, 5}),
                 {.kernel_size = 2});
  EXPECT_EQ(p.y.to_vector(), (Floats{3, 2, 0, 1}));
  Floats dx(25, 0.f);
  dx[0] = dx[3] = dx[10] = dx[13] = 1;
  EXPECT_EQ(p.dx.to_vector(), dx);
}

TEST(MaxPool2d, TakesSizesThatAreNoMultipleOfTheWindow) {
  EXPECT_EQ(max_pool2d(ones({1, 1, 49, 49}), {.kernel_size = 3, .stride = 2}).shape(), (Shape{1, 1, 24, 24}));
  EXPECT_EQ(max_pool2d(ones({1, 1, 20, 1}), {.kernel_size = {3, 1}, .stride = 1}).shape(), (Shape{1, 1, 18, 1}));
}

TEST(MaxPool2d, OverlappingWindowsAddTheirGradients) {
  const Pooled p(tensor<float>({0, 9, 0, 0, 0, 0, 0, 0, 0}).view({1, 1, 3, 3}), {.kernel_size = 2, .stride = 1});
  EXPECT_EQ(p.dx.to_vector(), (Floats{0, 2, 0, 1, 1, 0, 0, 0, 0}));
}

TEST(MaxPool2d, AWindowOfPaddingAloneIsAnError) {
  const MaxPool2dOptions o{.kernel_size = 2, .stride = 1, .padding = 1, .dilation = 2};
  EXPECT_THROW(max_pool2d(ones({1, 1, 1, 4}), o), ShapeError);  // rows -1 and 1
  EXPECT_THROW(max_pool2d(ones({1, 1, 4, 1}), o), ShapeError);
  EXPECT_EQ(max_pool2d(ones({1, 1, 2, 2}), o).to_vector(), Floats(4, 1.f));
  EXPECT_THROW(max_pool2d(ones({1, 1, 0, 4}), {.kernel_size = 2, .padding = 1}), ShapeError);
  EXPECT_THROW(max_pool2d(ones({1, 1, 4, 0}), {.kernel_size = 2, .padding = 1}), ShapeError);
}

TEST(MaxPool2d, OfOtherTypes) {
  const auto x = tensor<std::int32_t>({{-5, -3}, {-4, -9}}).view({1, 1, 2, 2});
  EXPECT_EQ(max_pool2d(x, {.kernel_size = 2}).item(), -3);
  const Tensor<half> h = to<half>(arange(16)).view({1, 1, 4, 4}).clone().requires_grad_();
  const Tensor<half> y = max_pool2d(h, {.kernel_size = 2});
  EXPECT_EQ(float(y(0, 0, 1, 1)), 15.f);
  sum(y).backward();
  EXPECT_EQ(float(h.grad()(0, 0, 1, 1)), 1.f);
  EXPECT_EQ(float(h.grad()(0, 0, 0, 0)), 0.f);
}

TEST(MaxPool2d, ErrorsNameTheArguments) {
  const auto expect_throws = [](const Tensor<float>& x, const MaxPool2dOptions& o) {
    EXPECT_THROW(max_pool2d(x, o), ShapeError);
  };
  const Tensor<float> x = ones({1, 1, 5, 5});
  EXPECT_EQ(message<ShapeError>([&] { max_pool2d(x, {.kernel_size = 3, .padding = 2}); }),
            "max_pool2d: expected a padding of at most half the kernel [3, 3], got [2, 2]");
  expect_throws(x, {.kernel_size = 6});
  expect_throws(x, {.kernel_size = 0});
  expect_throws(x, {.kernel_size = -2});
  expect_throws(x, {.kernel_size = 2, .stride = -1});
  expect_throws(x, {.kernel_size = 2, .stride = {1, 0}});
  expect_throws(x, {.kernel_size = 2, .padding = -1});
  expect_throws(x, {.kernel_size = 2, .dilation = 0});
  expect_throws(x, {.kernel_size = 2, .dilation = std::int64_t(1) << 62});
  expect_throws(x, {.kernel_size = std::int64_t(1) << 62, .padding = std::int64_t(1) << 61});
  EXPECT_EQ(message<ShapeError>([&] { max_pool2d(x, {.kernel_size = 65536, .padding = 32768}); }),
            "max_pool2d: expected a kernel of fewer than 2^31 elements, got [65536, 65536]");
  expect_throws(x, {.kernel_size = std::int64_t(1) << 36, .padding = std::int64_t(1) << 35});
  expect_throws(ones({5, 5}), {.kernel_size = 2});
  expect_throws(ones({1, 1, 1, 5, 5}), {.kernel_size = 2});
  EXPECT_THROW(max_pool2d(Tensor<float>(), {.kernel_size = 2}), Error);
}

TEST(MaxPool2d, IsTheSameForAnyNumberOfThreads) {
  Generator g(9);
  const Tensor<float> x = randn({16, 20, 24, 25}, g);
  for (const MaxPool2dOptions& o :
       {MaxPool2dOptions{.kernel_size = 2}, {.kernel_size = 3, .stride = 1, .padding = 1}, {.kernel_size = 17}}) {
    EXPECT_TRUE(test::same_for_any_threads([&] { return max_pool2d(x, o); }));
    EXPECT_TRUE(test::same_for_any_threads([&] { return Pooled(x, o).dx; }));
  }
}

}  // namespace
}  // namespace tenet
