#include <tenet/nn/activation.hpp>
#include <tenet/nn/container.hpp>
#include <tenet/nn/conv.hpp>
#include <tenet/nn/dropout.hpp>
#include <tenet/nn/embedding.hpp>
#include <tenet/nn/flatten.hpp>
#include <tenet/nn/linear.hpp>
#include <tenet/nn/pooling.hpp>
#include <tenet/ops/compare.hpp>

#include <thread>

#include "message.hpp"

namespace tenet {
namespace {

Tensor<float> input(const Shape& shape) {
  Generator g(3);
  return randn(shape, g) * 3;
}

void expect_same(const Tensor<float>& a, const Tensor<float>& b) {
  EXPECT_EQ(a.shape(), b.shape());
  EXPECT_EQ(a.to_vector(), b.to_vector());
}

TEST(Layers, ActivationsAreTheirFunctions) {
  const Tensor<float> x = input({4, 25});
  expect_same(nn::ReLU()(x), relu(x));
  expect_same(nn::ReLU6()(x), relu6(x));
  expect_same(nn::LeakyReLU()(x), leaky_relu(x, 0.01));
  expect_same(nn::LeakyReLU(0.3)(x), leaky_relu(x, 0.3));
  expect_same(nn::ELU(2)(x), elu(x, 2));
  expect_same(nn::SELU()(x), selu(x));
  expect_same(nn::GELU()(x), gelu(x));
  expect_same(nn::GELU(GeluApproximate::tanh)(x), gelu(x, GeluApproximate::tanh));
  expect_same(nn::SiLU()(x), silu(x));
  expect_same(nn::Sigmoid()(x), sigmoid(x));
  expect_same(nn::Tanh()(x), tanh(x));
  expect_same(nn::Hardtanh(-2, 0.5)(x), hardtanh(x, -2, 0.5));
  expect_same(nn::Hardswish()(x), hardswish(x));
  expect_same(nn::Mish()(x), mish(x));
  expect_same(nn::Softplus(2, 4)(x), softplus(x, 2, 4));
  expect_same(nn::Softmax(1)(x), softmax(x, 1));
  expect_same(nn::LogSoftmax(0)(x), log_softmax(x, 0));
  EXPECT_TRUE(nn::ReLU().parameters().empty());
}

TEST(Layers, ActivationsOfATemporaryReuseIt) {
  Tensor<float> x = input({100});
  const Tensor<float> want = relu(x);
  const void* memory = x.data_ptr();
  nn::ReLU layer;
  const Tensor<float> y = layer(std::move(x));
  EXPECT_EQ(y.data_ptr(), memory);
  expect_same(y, want);
}

TEST(Layers, SequentialMayPoolBeforeRelu) {
  nn::Sequential net{nn::ReLU{}, nn::MaxPool2d{2}, nn::ReLU{}};
  auto x = randn<float>({2, 3, 4, 6});
  x(1, 2, 3, 4) = std::numeric_limits<float>::quiet_NaN();
  auto same = x.clone();
  x.requires_grad_();
  same.requires_grad_();
  const auto y = net(x), want = relu(max_pool2d(relu(same), {2}));
  const auto g = randn<float>(y.shape());
  y.backward(g);
  want.backward(g);
  for (const auto& [got, expected] : {std::pair(y, want), std::pair(x.grad(), same.grad())}) {
    EXPECT_TRUE(allclose(got, expected, 0, 0, true));
  }
}

TEST(Layers, LinearAndConvolutionUseTheirParameters) {
  nn::Linear<> fc(5, 3), no_bias(5, 3, {.bias = false});
  const Tensor<float> rows = input({2, 4, 5}), images = input({2, 4, 9, 8});
  expect_same(fc(rows), linear(rows, fc.weight, fc.bias));
  expect_same(no_bias(rows), linear(rows, no_bias.weight));
  EXPECT_FALSE(no_bias.bias.defined());
  nn::Conv2d<> conv(4, 6, {3, 2}, {.stride = {2, 1}, .padding = {0, 1}, .dilation = {1, 2}, .groups = 2});
  expect_same(conv(images), conv2d(images, conv.weight, conv.bias,
                                   {.stride = {2, 1}, .padding = {0, 1}, .dilation = {1, 2}, .groups = 2}));
  EXPECT_EQ(conv.weight.shape(), (Shape{6, 2, 3, 2}));
  nn::Conv2d<> bare(4, 6, 3, {.bias = false});
  expect_same(bare(images), conv2d(images, bare.weight));
  bare(images).backward(ones({2, 6, 7, 6}));
  EXPECT_EQ(bare.weight.grad().shape(), bare.weight.shape());
  EXPECT_EQ(bare.parameters().size(), 1u);
  nn::Linear<double> wide(2, 2);
  EXPECT_EQ(wide(ones<double>({1, 2})).dtype(), DType::float64);
}

TEST(Layers, MaxPoolingTakesItsOptions) {
  const Tensor<float> x = input({2, 3, 9, 8});
  expect_same(nn::MaxPool2d(2)(x), max_pool2d(x, {.kernel_size = 2}));
  expect_same(nn::MaxPool2d(3, 2, 1)(x), max_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1}));
  expect_same(nn::MaxPool2d({3, 2}, {1, 2})(x), max_pool2d(x, {.kernel_size = {3, 2}, .stride = {1, 2}}));
  expect_same(nn::MaxPool2d({.kernel_size = 2, .dilation = 2, .ceil_mode = true})(x),
              max_pool2d(x, {.kernel_size = 2, .dilation = 2, .ceil_mode = true}));
}

TEST(Layers, FlattenAndIdentity) {
  const Tensor<float> x = input({2, 3, 4, 5});
  EXPECT_EQ(nn::Flatten()(x).shape(), (Shape{2, 60}));
  EXPECT_EQ(nn::Flatten(0, 1)(x).shape(), (Shape{6, 4, 5}));
  EXPECT_TRUE(nn::Identity()(x).is(x));
}

TEST(Layers, DropoutDropsInTrainingOnly) {
  nn::Dropout layer(0.25);
  const Tensor<float> x = ones({4000});
  const std::vector<float> y = layer(x).to_vector();
  std::int64_t dropped = 0;
  for (const float v : y) {
    EXPECT_TRUE(v == 0 || v == 1 / 0.75f) << v;
    dropped += v == 0;
  }
  EXPECT_NEAR(double(dropped) / 4000, 0.25, 0.04);
  layer.eval();
  expect_same(layer(x), x);
  expect_same(nn::Dropout(0)(x), x);
  expect_same(nn::Dropout(1)(x), zeros({4000}));
  EXPECT_EQ(test::message([] { nn::Dropout(1.5); }), "Dropout: expected a probability in [0, 1], got 1.5");
  EXPECT_THROW(nn::Dropout(-0.1), Error);
  EXPECT_THROW(nn::Dropout(std::nan("")), Error);
}

TEST(Layers, EmbeddingLooksUpRows) {
  nn::Embedding<> table(4, 3, {.padding_idx = -2});
  EXPECT_EQ(table.weight[2].to_vector(), std::vector<float>(3, 0.f));
  EXPECT_TRUE(table.weight.is_leaf() && table.weight.requires_grad());
  const auto index = tensor<std::int64_t>({{3, 2}, {0, 3}});
  const Tensor<float> y = table(index);
  EXPECT_EQ(y.shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(y[1][1].to_vector(), table.weight[3].to_vector());
  y.backward(ones(y.shape()));
  EXPECT_EQ(table.weight.grad().to_vector(), (std::vector<float>{1, 1, 1, 0, 0, 0, 0, 0, 0, 2, 2, 2}));
  EXPECT_THROW(table(tensor<std::int64_t>({4})), IndexError);
}

struct Net : nn::Module<Net> {
  nn::Conv2d<> conv{1, 4, 3};
  nn::MaxPool2d pool{2};
  nn::Dropout dropout{0.5};
  nn::Sequential<nn::Flatten, nn::Linear<>, nn::ReLU, nn::Linear<>> head{nn::Flatten(), nn::Linear<>(4 * 36, 200),
                                                                         nn::ReLU(), nn::Linear<>(200, 10)};
  TENET_MODULE(conv, pool, dropout, head)

  Tensor<float> forward(Tensor<float> x) { return head(dropout(pool(relu(conv(x))))); }
};

TEST(Layers, ManyThreadsShareAModelInEvaluation) {
  Net net;
  net.eval();
  const Tensor<float> x = input({16, 1, 14, 14});
  const std::vector<float> alone = [&] {
    const no_grad guard;
    return net(x).to_vector();
  }();
  std::vector<int> right(8);
  std::vector<std::thread> threads;
  for (int& r : right) {
    threads.emplace_back([&] {
      const no_grad guard;
      for (int i = 0; i < 10; ++i) r += net(x).to_vector() == alone;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, std::vector<int>(8, 10));
}

TEST(Layers, ManyThreadsAddGradientsToASharedModel) {
  Net net;
  net.eval();
  const Tensor<float> x = input({4, 1, 14, 14});
  net(x).backward(ones({4, 10}));
  const std::vector<float> once = net.head.get<3>().bias.grad().to_vector();
  net.zero_grad();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { net(x).backward(ones({4, 10})); });
  for (std::thread& t : threads) t.join();
  const std::vector<float> all = net.head.get<3>().bias.grad().to_vector();
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], 8 * once[i]);
}

}  // namespace
}  // namespace tenet
