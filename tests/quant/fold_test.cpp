#include <tenet/nn/activation.hpp>
#include <tenet/nn/flatten.hpp>
#include <tenet/ops/compare.hpp>
#include <tenet/prune/methods.hpp>
#include <tenet/quant/compare.hpp>
#include <tenet/quant/fold.hpp>
#include <tenet/quant/qat.hpp>
#include <tenet/quant/static.hpp>

#include <gtest/gtest.h>

#include "message.hpp"

namespace tenet {
namespace {

using test::message;

Tensor<float> batch() {
  Generator generator(1);
  return randn({6, 2, 5, 5}, generator);
}

/// Gives a normalization weights and statistics unlike those of a new one.
template <class Norm>
void disturb(Norm& norm) {
  Generator generator(5);
  const auto numbers = [&] { return rand({norm.num_features}, generator); };
  if (norm.weight) {
    norm.weight = nn::Parameter<>(numbers() + 0.5f);
    norm.bias = nn::Parameter<>(numbers() - 0.5f);
  }
  norm.running_mean = nn::Buffer<>(numbers() * 2);
  norm.running_var = nn::Buffer<>(numbers() + 0.1f);
}

auto network() {
  manual_seed(3);
  nn::Sequential net{nn::Conv2d<>(2, 4, 3, {.bias = false}),
                     nn::BatchNorm2d<>(4),
                     nn::ReLU(),
                     nn::Sequential{nn::Conv2d<>(4, 4, 1, {.groups = 2}), nn::BatchNorm2d<>(4, {.affine = false})},
                     nn::Flatten(),
                     nn::Linear<>(4 * 3 * 3, 5),
                     nn::BatchNorm1d<>(5),
                     nn::BatchNorm1d<>(5)};
  net.apply([](auto& m) {
    if constexpr (nn::IsBatchNorm<std::remove_reference_t<decltype(m)>>) disturb(m);
  });
  net.eval();
  return net;
}

TEST(FoldBatchNorm, GivesTheSameWithLess) {
  auto net = network();
  const auto x = batch(), before = net(x);
  EXPECT_EQ(quant::fold_batch_norm_(net), 3);
  EXPECT_TRUE(allclose(net(x), before, 1e-4, 1e-5));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : net.state_dict()) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"0.weight", "0.bias", "3.0.weight", "3.0.bias", "5.weight", "5.bias", "7.weight",
                                      "7.bias", "7.running_mean", "7.running_var", "7.num_batches_tracked"}));
  for (const AnyTensor& p : net.parameters()) EXPECT_TRUE(p.requires_grad());
  EXPECT_EQ(quant::fold_batch_norm_(net), 0);
  auto fresh = network();  // a folded state goes into a folded network
  quant::fold_batch_norm_(fresh);
  fresh.load_state_dict(net.state_dict());
  EXPECT_EQ(fresh(x).to_vector(), net(x).to_vector());
  nn::Sequential none;
  EXPECT_EQ(quant::fold_batch_norm_(none), 0);
}

TEST(FoldBatchNorm, TakesLayersThatAreNamed) {
  struct Net : nn::Module<Net> {
    nn::Conv2d<> conv{2, 3, 3};
    nn::BatchNorm2d<> norm{3};
    TENET_MODULE(conv, norm)
    Tensor<float> forward(const Tensor<float>& x) { return relu(norm(conv(x))); }
  } net;
  disturb(net.norm);
  net.conv.requires_grad_(false);
  net.eval();
  const auto x = batch(), before = net(x);
  EXPECT_EQ(quant::fold_batch_norm_(net), 0);
  quant::fold_batch_norm_(net.conv, net.norm);
  EXPECT_TRUE(net.norm.is_folded());
  EXPECT_FALSE(net.conv.weight.requires_grad());
  EXPECT_TRUE(allclose(net(x), before, 1e-4, 1e-5));
}

TEST(FoldBatchNorm, ComesBeforeQuantization) {
  auto net = network();
  const auto x = batch();
  quant::fold_batch_norm_(net);
  auto int8 = quant::quantize_static<nn::Conv2d, nn::Linear>(net, std::vector{x});
  EXPECT_EQ(int8.get<0>().weight.format_name(), "int8");
  EXPECT_GT(quant::compare(net, int8, std::vector{x}).total.sqnr, 20);
  quant::prepare_qat_<nn::Conv2d, nn::Linear>(net);
  net.train();
  net(x).sum().backward();
  EXPECT_TRUE(net.get<0>().bias.grad());
}

TEST(FoldBatchNorm, RefusesWhatWouldChangeTheAnswer) {
  const auto refusal = [](auto change) {
    nn::Sequential net{nn::Conv2d<>(2, 4, 3), nn::BatchNorm2d<>(4), nn::Conv2d<>(4, 4, 1), nn::BatchNorm2d<>(4)};
    net.eval();
    change(net);
    const std::string text = message([&] { quant::fold_batch_norm_(net); });
    EXPECT_FALSE(net.template get<1>().is_folded());  // all or none
    return text;
  };
  EXPECT_EQ(refusal([](auto& net) { net.template get<3>().train(); }),
            "fold_batch_norm: expected evaluation mode: call eval() first");
  EXPECT_EQ(refusal([](auto& net) { prune::l1_unstructured(net.template get<2>(), {.amount = 0.5}); }),
            "fold_batch_norm: expected a dense weight, got one of format masked");
  EXPECT_EQ(refusal([](auto& net) {
              net.template get<3>() = nn::BatchNorm2d<>(5);
              net.eval();
            }),
            "fold_batch_norm: expected a normalization of the 4 outputs of a weight [4, 4, 1, 1], got one of 5");
  EXPECT_EQ(refusal([](auto& net) {
              net.template get<3>() = nn::BatchNorm2d<>(4, {.track_running_stats = false});
              net.eval();
            }),
            "fold_batch_norm: expected a normalization with running statistics");
  nn::Linear<> layer(2, 3);
  nn::BatchNorm1d<> norm(3);
  norm.eval();
  quant::fold_batch_norm_(layer, norm);
  EXPECT_EQ(message([&] { quant::fold_batch_norm_(layer, norm); }),
            "fold_batch_norm: the normalization is folded already");
}

}  // namespace
}  // namespace tenet
