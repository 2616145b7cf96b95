// Low-rank adapters.
#include <gtest/gtest.h>
#include <tenet/tenet.hpp>

#include "message.hpp"

namespace {

using namespace tenet;

struct Net : nn::Module<Net> {
  nn::Conv2d<> conv{1, 4, 3, {.padding = 1}};
  nn::Linear<> fc{64, 3};
  TENET_MODULE(conv, fc)
  Tensor<float> forward(const Tensor<float>& x) { return fc(flatten(relu(conv(x)), 1)); }
};

/// A net whose adapters have learned something.
Net adapted(const Tensor<float>& x, std::int64_t rank = 2) {
  Net net;
  nn::add_lora(net, {.rank = rank, .alpha = 4});
  optim::SGD optimizer(net.parameters(), {.lr = 0.1});
  for (int i = 0; i < 3; ++i) {
    optimizer.zero_grad();
    net(x).sum().backward();
    optimizer.step();
  }
  return net;
}

double difference(const Tensor<float>& a, const Tensor<float>& b) { return double(abs(a - b).max().item()); }

TEST(Lora, ChangesNothingAtFirst) {
  Net net;
  const auto x = randn({2, 1, 4, 4});
  const auto before = net(x).to_vector();
  nn::add_lora(net, {.rank = 2});
  EXPECT_EQ(net.fc.weight.format_name(), "lora");
  EXPECT_EQ(net(x).to_vector(), before);
}

TEST(Lora, TrainsTheAdaptersAndBiasesAlone) {
  Net net;
  const auto conv = net.conv.weight.to_vector(), fc = net.fc.weight.to_vector();
  nn::add_lora(net, {.rank = 2});
  optim::SGD optimizer(net.parameters(), {.lr = 0.1, .weight_decay = 0.1});
  const auto x = randn({2, 1, 4, 4});
  const auto before = net(x).to_vector();
  for (int i = 0; i < 2; ++i) {
    optimizer.zero_grad();
    net(x).sum().backward();
    optimizer.step();
  }
  EXPECT_EQ(net.conv.weight.to_vector(), conv);
  EXPECT_EQ(net.fc.weight.to_vector(), fc);
  EXPECT_NE(net(x).to_vector(), before);
  for (const auto& [name, p] : net.named_parameters()) {
    EXPECT_EQ(bool(p.grad_any()), !name.ends_with(".weight")) << name;
  }
}

TEST(Lora, AnswersAsItsDenseWeightAndMerges) {
  manual_seed(1);
  const auto x = randn({2, 1, 4, 4});
  Net net = adapted(x);
  const auto before = net(x);
  const auto hidden = relu(conv2d(x, net.conv.weight.dense(), net.conv.bias, {.padding = 1}));
  EXPECT_LT(difference(linear(flatten(hidden, 1), net.fc.weight.dense(), net.fc.bias), before), 1e-5);
  const TensorImpl* identity = net.fc.weight.impl();
  nn::merge_lora(net);
  EXPECT_EQ(net.fc.weight.format_name(), "dense");
  EXPECT_EQ(net.fc.weight.impl(), identity);
  EXPECT_LT(difference(net(x), before), 1e-5);
  net(x).sum().backward();
  EXPECT_TRUE(bool(net.fc.weight.grad()));
}

TEST(Lora, TiedWeightsHaveOne) {
  manual_seed(2);
  struct Tied : nn::Module<Tied> {
    nn::Linear<> a{4, 4}, b{4, 4};
    TENET_MODULE(a, b)
    Tensor<float> forward(const Tensor<float>& x) { return b(relu(a(x))); }
  } model;
  model.b.weight.tie(model.a.weight);
  nn::add_lora(model, {.rank = 2, .alpha = 4});
  EXPECT_EQ(model.a.weight.format(), model.b.weight.format());
  const auto x = randn({3, 4});
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  for (int i = 0; i < 2; ++i) {
    optimizer.zero_grad();
    square(model(x) - 1.0f).mean().backward();
    optimizer.step();
  }
  Tied copy = model.clone(), loaded;
  loaded.b.weight.tie(loaded.a.weight);
  loaded.load_state_dict(model.state_dict(), {.formats = prune::formats()});
  EXPECT_EQ(loaded.a.weight.format(), loaded.b.weight.format());
  const auto before = model(x);
  for (Tied* m : {&model, &copy, &loaded}) {
    nn::merge_lora(*m);
    EXPECT_TRUE(m->a.weight.is(m->b.weight));
    EXPECT_LT(difference((*m)(x), before), 1e-5);
  }
}

TEST(Lora, GroupedConvolutionsToo) {
  nn::Conv2d<> conv(4, 4, 3, {.groups = 2});
  nn::add_lora(conv, {.rank = 2});
  auto* format = static_cast<nn::Lora<>*>(conv.weight.format());
  format->b = nn::Parameter<>(randn({4, 2}));
  const auto x = randn({1, 4, 5, 5});
  EXPECT_LT(difference(conv(x), conv2d(x, conv.weight.dense(), conv.bias, {.groups = 2})), 1e-5);
}

TEST(Lora, StatesHoldIt) {
  const auto x = randn({2, 1, 4, 4});
  Net net = adapted(x), plain, smaller = adapted(x, 1);
  for (Net* n : {&plain, &smaller}) {
    n->load_state_dict(net.state_dict(), {.formats = prune::formats()});
    EXPECT_EQ((*n)(x).to_vector(), net(x).to_vector());
  }
  auto dict = net.state_dict();
  for (auto& [name, tensor] : dict) {
    if (name == "fc.weight.lora.b") tensor = zeros<float>({3, 5});
  }
  EXPECT_THROW(Net().load_state_dict(dict, {.formats = prune::formats()}), Error);
  Net copy = net;
  nn::merge_lora(copy);
  EXPECT_EQ(net.fc.weight.format_name(), "lora");
}

TEST(Lora, RefusesWrongRanksAndOtherFormats) {
  Net net;
  EXPECT_THROW(nn::add_lora(net, {.rank = 0}), Error);
  nn::add_lora(net.fc, {.rank = 2});
  EXPECT_EQ(test::message([&] { nn::add_lora(net, {.rank = 2}); }),
            "add_lora: expected a rank >= 1 and dense weights, got rank 2 and fc.weight kept as lora");
  EXPECT_EQ(net.conv.weight.format_name(), "dense");
}

}  // namespace
