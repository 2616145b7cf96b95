// Shrunk networks answer as the masked ones.
#include <gtest/gtest.h>
#include <tenet/tenet.hpp>

#include "message.hpp"

namespace {

using namespace tenet;

struct Net : nn::Module<Net> {
  nn::Conv2d<double> conv1{1, 6, 3}, conv2{6, 8, 3};
  nn::MaxPool2d pool{2};
  nn::Linear<double> fc1{8 * 2 * 2, 10}, fc2{10, 3};
  TENET_MODULE(conv1, conv2, pool, fc1, fc2)
  Tensor<double> forward(Tensor<double> x) {
    x = relu(conv1(x));
    x = pool(relu(conv2(x)));
    return fc2(tenet::tanh(fc1(flatten(x, 1))));
  }
};

template <class M>
Tensor<double> answer(M& model) {
  Generator generator(1);
  return model(randn<double>({3, 1, 8, 8}, generator));
}
double difference(const Tensor<double>& a, const Tensor<double>& b) { return abs(a - b).max().item(); }

Net pruned_net() {
  Net net;
  prune::ln_structured(net.conv1, {.amount = 0.5});
  prune::ln_structured(net.conv2, {.amount = 0.25});
  prune::ln_structured(net.fc1, {.amount = 4});
  return net;
}

TEST(Shrink, RemovesPrunedChannelsAndFoldsTheirBiases) {
  Net net = pruned_net();
  const auto before = answer(net);
  EXPECT_EQ(prune::shrink(net.conv1, net.conv2, nn::ReLU()), 3);
  EXPECT_EQ(prune::shrink(net.conv2, net.fc1, nn::ReLU()), 2);
  EXPECT_EQ(prune::shrink(net.fc1, net.fc2, nn::Tanh()), 4);
  EXPECT_EQ(net.conv1.weight.shape(), (Shape{3, 1, 3, 3}));
  EXPECT_EQ(net.conv2.weight.shape(), (Shape{6, 3, 3, 3}));
  EXPECT_EQ(net.fc1.weight.shape(), (Shape{6, 6 * 2 * 2}));
  EXPECT_EQ(net.fc2.weight.shape(), (Shape{3, 6}));
  EXPECT_FALSE(prune::is_pruned(net));
  EXPECT_LT(difference(answer(net), before), 1e-12);
  for (const auto& [name, p] : net.named_parameters()) EXPECT_TRUE(p.requires_grad()) << name;
}

TEST(Shrink, KeepsMasksOfWhatIsLeft) {
  Net net = pruned_net();
  prune::l1_unstructured(net.conv2, {.amount = 0.5});
  const auto before = answer(net);
  prune::shrink(net.conv1, net.conv2, nn::ReLU());
  EXPECT_EQ(net.conv1.weight.format_name(), "dense");
  EXPECT_EQ(net.conv2.weight.format_name(), "masked");
  EXPECT_LT(difference(answer(net), before), 1e-12);
}

TEST(Shrink, WithoutTheActivationOnlyBiasesOfZeroGo) {
  Net net = pruned_net();
  prune::remove(net);
  const auto dead = !any(net.conv1.weight, {1, 2, 3});
  std::int64_t one = 0;
  while (!dead.data()[one]) ++one;
  net.conv1.bias.data()[one] = 0;
  const auto before = answer(net);
  EXPECT_EQ(prune::shrink(net.conv1, net.conv2), 1);
  EXPECT_LT(difference(answer(net), before), 1e-12);
}

TEST(Shrink, RemovesChannelsThatNobodyReads) {
  Net net;
  prune::ln_structured(net.conv2, {.amount = 2, .dim = 1});
  const auto before = answer(net);
  EXPECT_EQ(prune::shrink(net.conv1, net.conv2), 2);
  EXPECT_EQ(net.conv1.weight.size(0), 4);
  EXPECT_LT(difference(answer(net), before), 1e-12);
}

TEST(Shrink, ConstantChannelsStayInFrontOfPadding) {
  struct Padded : nn::Module<Padded> {
    nn::Conv2d<double> a{1, 4, 3}, b{4, 2, 3, {.padding = 1}};
    TENET_MODULE(a, b)
    Tensor<double> forward(const Tensor<double>& x) { return b(relu(a(x))); }
  } net;
  prune::ln_structured(net.a, {.amount = 1.0});
  net.a.bias = nn::Parameter<double>(from_vector<double>({-1, 1, -2, 0}));
  const auto before = answer(net);
  EXPECT_EQ(prune::shrink(net.a, net.b, nn::ReLU()), 3);  // relu leaves one that is not 0
  EXPECT_LT(difference(answer(net), before), 1e-12);
  EXPECT_EQ(prune::shrink(net.a, net.b, nn::ReLU()), 0);
}

TEST(Shrink, OneChannelStays) {
  Net net;
  prune::ln_structured(net.conv1, {.amount = 1.0});
  const auto before = answer(net);
  EXPECT_EQ(prune::shrink(net.conv1, net.conv2, nn::ReLU()), 5);
  EXPECT_LT(difference(answer(net), before), 1e-12);
}

TEST(Shrink, WalksSequentials) {
  nn::Sequential net{nn::Conv2d<double>(1, 6, 3),
                     nn::Sigmoid(),
                     nn::MaxPool2d(2),
                     nn::Conv2d<double>(6, 4, 2),
                     nn::ReLU(),
                     nn::Flatten(),
                     nn::Dropout(),
                     nn::Linear<double>(16, 8),
                     nn::Softmax(1),
                     nn::Linear<double>(8, 5),
                     nn::GELU(),
                     nn::Linear<double>(5, 2)};
  net.eval();
  prune::ln_structured(net, {.amount = 0.5});
  const auto before = answer(net);
  EXPECT_EQ(prune::shrink(net), 3 + 2 + 2);  // nothing in front of the softmax
  EXPECT_EQ(net.get<0>().weight.size(0), 3);
  EXPECT_EQ(net.get<3>().weight.shape(), (Shape{2, 3, 2, 2}));
  EXPECT_EQ(net.get<7>().weight.shape(), (Shape{8, 8}));
  EXPECT_EQ(net.get<9>().weight.shape(), (Shape{3, 8}));
  EXPECT_LT(difference(answer(net), before), 1e-12);
  nn::Sequential single{nn::Linear<>(2, 2)};
  EXPECT_EQ(prune::shrink(single), 0);
}

/// Gives a batch normalization weights and statistics unlike those of a new one; channel 0 is scaled by 0.
template <class Norm>
void disturb(Norm& norm) {
  Generator generator(5);
  const auto numbers = [&] { return rand<double>({norm.num_features}, generator); };
  norm.weight = nn::Parameter<double>(numbers() + 0.5);
  norm.weight.data()[0] = 0;
  norm.bias = nn::Parameter<double>(numbers() - 0.5);
  norm.running_mean = nn::Buffer<double>(numbers() * 2);
  norm.running_var = nn::Buffer<double>(numbers() + 0.1);
}

TEST(Shrink, BatchNormalizationsLoseChannelsToo) {
  nn::Sequential net{nn::Conv2d<double>(1, 6, 3), nn::BatchNorm2d<double>(6), nn::ReLU(),    nn::MaxPool2d(2),
                     nn::Conv2d<double>(6, 4, 2), nn::BatchNorm2d<double>(4), nn::Flatten(), nn::Linear<double>(16, 8),
                     nn::BatchNorm1d<double>(8),  nn::Linear<double>(8, 2)};
  disturb(net.get<1>());
  disturb(net.get<8>());
  net.get<5>().fold();
  net.eval();
  std::fill_n(net.get<0>().weight.data() + 9, 9, 0.0);  // channel 1
  std::fill_n(net.get<4>().weight.data() + 24, 24, 0.0);
  const auto before = answer(net);
  EXPECT_EQ(prune::shrink(net), 2 + 1 + 1);
  EXPECT_EQ(net.get<1>().num_features, 4);
  EXPECT_EQ(net.get<1>().running_var.shape(), (Shape{4}));
  EXPECT_TRUE(net.get<1>().weight.requires_grad());
  EXPECT_EQ(net.get<8>().bias.shape(), (Shape{7}));
  EXPECT_LT(difference(answer(net), before), 1e-12);
  net.train();
  answer(net);  // still trains
}

TEST(Shrink, ChannelsStayBeforeStatisticsOfABatchOrOfFeatures) {
  nn::Sequential batch{nn::Linear<double>(4, 3), nn::BatchNorm1d<double>(3, {.track_running_stats = false}),
                       nn::Linear<double>(3, 2)};
  nn::Sequential features{nn::Conv2d<double>(1, 3, 2), nn::Flatten(), nn::BatchNorm1d<double>(12),
                          nn::Linear<double>(12, 2)};
  prune::ln_structured(batch.get<0>(), {.amount = 2});
  prune::ln_structured(features.get<0>(), {.amount = 2});
  EXPECT_EQ(prune::shrink(batch), 0);
  EXPECT_EQ(prune::shrink(features), 0);
  EXPECT_THROW(prune::shrink(batch.get<0>(), batch.get<2>(), batch.get<1>()), Error);
}

TEST(Shrink, ChannelsStayWhereOthersTakeThemInAnotherOrder) {
  nn::Sequential tokens{nn::Linear<double>(4, 8), nn::ReLU(), nn::Flatten(), nn::Linear<double>(40, 3)};
  nn::Sequential rows{nn::Conv2d<double>(1, 8, 1), nn::Flatten(1, 2), nn::Linear<double>(16, 3)};
  nn::Sequential widths{nn::Conv2d<double>(1, 8, 1), nn::ReLU(), nn::Linear<double>(16, 3)};
  prune::ln_structured(tokens.get<0>(), {.amount = 2});
  prune::ln_structured(rows.get<0>(), {.amount = 2});
  prune::ln_structured(widths.get<0>(), {.amount = 2});
  EXPECT_EQ(prune::shrink(tokens), 0);
  EXPECT_EQ(prune::shrink(rows), 0);
  EXPECT_EQ(prune::shrink(widths), 0);
  EXPECT_THROW(prune::shrink(tokens.get<0>(), tokens.get<3>(), nn::ReLU()), ShapeError);
}

TEST(Shrink, TakesABatchNormalizationThatIsNamed) {
  struct Normed : nn::Module<Normed> {
    nn::Conv2d<double> a{1, 4, 3}, b{4, 2, 3};
    nn::BatchNorm2d<double> norm{4};
    TENET_MODULE(a, norm, b)
    Tensor<double> forward(const Tensor<double>& x) { return b(relu(norm(a(x)))); }
  } net;
  disturb(net.norm);
  net.eval();
  const auto before = answer(net);
  EXPECT_EQ(prune::shrink(net.a, net.b, net.norm, nn::ReLU()), 1);
  EXPECT_EQ(net.norm.num_features, 3);
  EXPECT_LT(difference(answer(net), before), 1e-12);
}

TEST(Shrink, RefusesWhatDoesNotFit) {
  Net net = pruned_net();
  EXPECT_EQ(test::message<ShapeError>([&] { prune::shrink(net.conv1, net.fc2); }),
            "shrink: the inputs of a weight [3, 10] are not those that come from a weight [6, 1, 3, 3]");
  nn::Conv2d<double> grouped(6, 6, 1, {.groups = 2});
  EXPECT_THROW(prune::shrink(net.conv1, grouped), Error);
  EXPECT_THROW(prune::shrink(grouped, net.conv2), Error);
  EXPECT_EQ(net.conv1.weight.size(0), 6);
}

}  // namespace
