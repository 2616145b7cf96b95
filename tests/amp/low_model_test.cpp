// Models whose parameters are of half precision, and float models under autocast, beside the same in float.
#include <tenet/data/data_loader.hpp>
#include <tenet/data/mnist.hpp>
#include <tenet/io/checkpoint.hpp>
#include <tenet/tenet.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <data/files.hpp>
#include <lenet.hpp>

namespace tenet {
namespace {

template <class T>
struct Net : nn::Module<Net<T>> {
  nn::Conv2d<T> conv{1, 8, 3};
  nn::MaxPool2d pool{2, 2};
  nn::Linear<T> fc1{8 * 5 * 5, 32}, fc2{32, 4};
  TENET_MODULE(conv, pool, fc1, fc2)

  Tensor<T> forward(const Tensor<T>& x) { return fc2(relu(fc1(flatten(pool(relu(conv(x))), 1)))); }
};

/// Images of four classes, each a bright quarter in noise.
struct Data {
  Tensor<float> images = randn({64, 1, 12, 12});
  Tensor<std::int64_t> labels = randint(4, {64});
  Data() {
    for (std::int64_t i = 0; i < 64; ++i) {
      images[i][0]
          .slice(0, labels(i) / 2 * 6, labels(i) / 2 * 6 + 6)
          .slice(1, labels(i) % 2 * 6, labels(i) % 2 * 6 + 6) += 1.f;
    }
  }
};

template <class T, class O, class Options>
std::vector<float> losses(const Data& data, const Options& options, int steps) {
  manual_seed(3);
  Net<T> net;
  O optimizer(net.parameters(), options);
  std::vector<float> all;
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    const auto loss = cross_entropy(net(to<T>(data.images)), data.labels);
    loss.backward();
    optimizer.step();
    all.push_back(float(loss.item()));
  }
  return all;
}

template <class O, class Options>
void expect_alike(const Options& options) {
  manual_seed(2);
  const Data data;
  const auto in_float = losses<float, O>(data, options, 60);
  ASSERT_LT(in_float.back(), 0.3f * in_float.front());
  const auto in_half = losses<half, O>(data, options, 60), in_bfloat16 = losses<bfloat16, O>(data, options, 60);
  EXPECT_NEAR(in_half.back(), in_float.back(), 0.1f * in_float.back() + 0.01f);
  EXPECT_NEAR(in_bfloat16.back(), in_float.back(), 0.3f * in_float.back() + 0.03f);
}

TEST(LowModel, LearnsAsInFloat) {
  expect_alike<optim::SGD>(optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
  expect_alike<optim::Adam>(optim::AdamOptions{.lr = 2e-3});
}

TEST(LowModel, TakesStepsTooSmallForItsType) {
  nn::Linear<bfloat16> layer(1, 1, {.bias = false});
  layer.load_state_dict({{"weight", ones<bfloat16>({1, 1})}});
  optim::SGD optimizer(layer.parameters(), {.lr = 1e-3});
  for (int i = 0; i < 64; ++i) {
    optimizer.zero_grad();
    layer(ones<bfloat16>({1, 1})).backward();
    optimizer.step();
  }
  EXPECT_NEAR(float(layer.weight.item()), 1 - 64e-3f, 4e-3f);  // each step alone would round back to 1
}

TEST(LowModel, LayersOfHalfRoundOnce) {
  manual_seed(4);
  nn::Linear<half> linear(300, 8);
  nn::Conv2d<half> conv(16, 4, 3);
  const Tensor<half> x = to<half>(randn({5, 300})), image = to<half>(randn({2, 16, 6, 6}));
  const auto check = [](const Tensor<half>& got, const Tensor<double>& want) {
    const auto a = got.to_vector();
    const auto b = want.to_vector();
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_NEAR(float(a[i]), b[i], std::abs(b[i]) * 0x1p-11 + 2e-6)
          << "element " << i;  // half a step, and sums in float
    }
  };
  const no_grad guard;
  check(linear(x), tenet::linear(to<double>(x), to<double>(linear.weight), to<double>(linear.bias)));
  check(conv(image), conv2d(to<double>(image), to<double>(conv.weight), to<double>(conv.bias)));
}

TEST(LowModel, ResumesWithItsMasters) {
  const TemporaryFolder folder;
  manual_seed(5);
  const Tensor<bfloat16> x = to<bfloat16>(randn({16, 10}));
  const auto train = [&](nn::Linear<bfloat16>& m, optim::Optimizer& o) {
    o.zero_grad();
    const Tensor<bfloat16> y = m(x);
    mean(y * y).backward();
    o.step();
  };
  nn::Linear<bfloat16> a(10, 4), b(10, 4);
  optim::Adam of_a(a.parameters(), {.lr = 1e-4}), of_b(b.parameters(), {.lr = 1e-4});
  for (int i = 0; i < 5; ++i) train(a, of_a);
  save_training(a, of_a, folder.file("training"), {});
  load_training(b, of_b, folder.file("training"));
  for (int i = 0; i < 20; ++i) {
    train(a, of_a);
    train(b, of_b);
  }
  EXPECT_EQ(to<float>(a.weight).to_vector(), to<float>(b.weight).to_vector());
  const nn::StateDict state_a = of_a.state_dict(), state_b = of_b.state_dict();
  const Tensor<float> master(*nn::detail::find(state_a, "state.0.master"));
  EXPECT_EQ(master.to_vector(), Tensor<float>(*nn::detail::find(state_b, "state.0.master")).to_vector());
  EXPECT_EQ(to<float>(to<bfloat16>(master)).to_vector(), to<float>(a.weight).to_vector());
}

TEST(LowModel, FollowsWeightsThatAreSet) {
  nn::Linear<bfloat16> layer(1, 1, {.bias = false});
  optim::SGD optimizer(layer.parameters(), {.lr = 0.25});
  const auto step = [&] {
    optimizer.zero_grad();
    layer(ones<bfloat16>({1, 1})).backward();
    optimizer.step();
    return float(layer.weight.item());
  };
  step();
  layer.load_state_dict({{"weight", full<bfloat16>({1, 1}, bfloat16(8.f))}});
  EXPECT_EQ(step(), 7.75f);
}

template <class T>
void expect_as_float(const Tensor<T>& y, const Tensor<float>& exact) {
  ASSERT_EQ(y.shape(), exact.shape());
  EXPECT_LT(abs(to<float>(y) - exact).max().item(), 0.05f);
}

template <class T>
void check_what_layers_take() {
  const Tensor<T> x = to<T>(randn({2, 3, 8})), rows = flatten(x, 0, 1);
  nn::MultiheadAttention<T> attention(8, 2);
  nn::MultiheadAttention<float> exact(8, 2);
  exact.in_proj_weight = nn::Parameter<>(to<float>(attention.in_proj_weight).detach());
  exact.out_proj.weight = nn::Weight<>(to<float>(attention.out_proj.weight).detach());
  const Tensor<T> y = attention(x, x, x, nn::AttentionMasks{.is_causal = true});
  const Tensor<float> z = to<float>(x);
  expect_as_float(y, exact(z, z, z, nn::AttentionMasks{.is_causal = true}));
  sum(y).backward();
  EXPECT_TRUE(attention.in_proj_weight.grad().defined());

  const Tensor<T> logits = to<T>(randn({6, 8}));
  const Tensor<std::int64_t> labels = randint(8, {6});
  expect_as_float(kl_div(log_softmax(rows, 1), softmax(logits, 1)),
                  kl_div(log_softmax(to<float>(rows), 1), softmax(to<float>(logits), 1)));
  nn::DistillationLoss distillation({.temperature = 2});
  expect_as_float(distillation(rows, logits, labels), distillation(to<float>(rows), to<float>(logits), labels));

  nn::Linear<T> layer(8, 4);
  prune::l1_unstructured(layer, {.amount = 0.5});
  EXPECT_EQ(prune::sparsity(layer), 0.5);
  prune::remove(layer);
  const Tensor<float> before = to<float>(layer(rows)).detach();
  nn::add_lora(layer, {.rank = 2});
  layer(rows).sum().backward();
  expect_as_float(layer(rows), before);
  nn::merge_lora(layer);
  expect_as_float(layer(rows), before);

  nn::BatchNorm1d<T> norm(4);
  norm(layer(rows));
  norm.eval();
  const Tensor<float> normalized = to<float>(norm(layer(rows)));
  quant::fold_batch_norm_(layer, norm);
  expect_as_float(layer(rows), normalized);
}

TEST(LowModel, TakesWhatFloatsTake) {
  manual_seed(4);
  check_what_layers_take<half>();
  check_what_layers_take<bfloat16>();
}

// ---- LeNet, in float and under autocast

using test::LeNet;

struct Result {
  double accuracy, loss;
};

Result train_lenet(bool low, DType dtype = DType::bfloat16) {
  manual_seed(6);
  const data::MNIST digits(TENET_DIGITS_DIR), tests(TENET_DIGITS_DIR, false);
  data::DataLoader loader(digits, {.batch_size = 32, .shuffle = true});
  LeNet<> net;
  optim::Adam optimizer(net.parameters(), {.lr = 2e-3});
  amp::GradScaler scaler({.enabled = low && dtype == DType::float16});
  Result result{};
  int steps = 0;
  for (auto& [images, labels] : loader) {
    optimizer.zero_grad();
    Tensor<float> loss;
    {
      const amp::autocast scope(dtype, low);
      loss = cross_entropy(net(images), labels);
    }
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    result.loss = loss.item();
    if (++steps == 50) break;
  }
  const no_grad guard;
  const amp::autocast scope(dtype, low);
  std::int64_t right = 0, all = 0;
  data::DataLoader test_loader(tests, {.batch_size = 250});
  for (auto& [images, labels] : test_loader) {
    right += sum(to<std::int64_t>(net(images).argmax(1) == labels)).item();
    all += labels.numel();
    if (all == 500) break;
  }
  result.accuracy = double(right) / double(all);
  return result;
}

TEST(LeNetUnderAutocast, IsAsRightAsInFloat) {
  const Result in_float = train_lenet(false), in_bfloat16 = train_lenet(true),
               in_half = train_lenet(true, DType::float16);
  EXPECT_GT(in_float.accuracy, 0.85);
  EXPECT_NEAR(in_bfloat16.accuracy, in_float.accuracy, 0.02);
  EXPECT_NEAR(in_half.accuracy, in_float.accuracy, 0.02);
  EXPECT_NEAR(in_half.loss, in_float.loss, 0.1);
}

}  // namespace
}  // namespace tenet
