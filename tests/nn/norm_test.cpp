#include <tenet/nn/container.hpp>
#include <tenet/nn/norm.hpp>
#include <tenet/ops/compare.hpp>

#include <gtest/gtest.h>

#include "message.hpp"
#include "ops/reference.hpp"

namespace tenet {
namespace {

using test::message;

std::vector<std::string> names(const nn::StateDict& state) {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : state) out.push_back(name);
  return out;
}

/// Three batches of PyTorch's case, and the answer to the first one in evaluation.
template <class Layer>
void expect_running_statistics(const char* name, std::optional<double> momentum) {
  SCOPED_TRACE(name);
  const test::Reference r = test::read_reference("norm.txt", name);
  const Tensor<double>& batches = r.inputs[0];
  Layer layer(batches.size(2), {.momentum = momentum});
  for (const auto& x : batches) layer(x);
  EXPECT_EQ(layer.num_batches_tracked.item(), 3);
  layer.eval();
  std::vector<double> got = layer.running_mean.to_vector();
  for (const auto& t : {layer.running_var.to_vector(), layer(batches[0]).to_vector()}) {
    got.insert(got.end(), t.begin(), t.end());
  }
  ASSERT_EQ(std::int64_t(got.size()), r.output.numel());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], r.output.data()[i], 1e-12) << i;
  EXPECT_EQ(layer.num_batches_tracked.item(), 3);
}

TEST(BatchNormLayer, KeepsRunningStatisticsAsPyTorch) {
  expect_running_statistics<nn::BatchNorm1d<double>>("running_1d", 0.1);
  expect_running_statistics<nn::BatchNorm2d<double>>("running_2d", 0.3);
  expect_running_statistics<nn::BatchNorm1d<double>>("running_average", std::nullopt);
}

TEST(BatchNormLayer, HasPyTorchsState) {
  nn::BatchNorm2d<> full(3), plain(3, {.affine = false, .track_running_stats = false});
  EXPECT_EQ(names(full.state_dict()),
            (std::vector<std::string>{"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}));
  EXPECT_EQ(names(full.named_parameters()), (std::vector<std::string>{"weight", "bias"}));
  EXPECT_TRUE(plain.state_dict().empty());
  const auto x = randn({4, 3, 2, 2});
  const auto y = plain(x);
  plain.eval();
  EXPECT_EQ(plain(x).to_vector(), y.to_vector());  // by the batch's own statistics
  const auto trained = full(x);
  nn::BatchNorm2d<> copy = full.clone(), loaded(3);
  loaded.load_state_dict(full.state_dict());
  for (auto* layer : {&full, &copy, &loaded}) layer->eval();
  EXPECT_FALSE(full.running_mean.is(copy.running_mean));
  EXPECT_EQ(copy(x).to_vector(), full(x).to_vector());
  EXPECT_EQ(loaded(x).to_vector(), full(x).to_vector());
  EXPECT_NE(full(x).to_vector(), trained.to_vector());
}

TEST(BatchNormLayer, AnEmptyBatchDoesNotCount) {
  nn::BatchNorm1d<> layer(2, {.momentum = std::nullopt});
  layer(ones({0, 2}));
  EXPECT_EQ(layer.num_batches_tracked.item(), 0);
  EXPECT_EQ(layer.running_var.to_vector(), (std::vector<float>{1, 1}));
}

TEST(BatchNormLayer, FoldedIsTheIdentityWithoutState) {
  nn::Sequential net{nn::BatchNorm1d<>(2), nn::BatchNorm1d<>(2)};
  const auto x = randn({3, 2});
  net(x);
  EXPECT_FALSE(net.get<0>().is_folded());
  net.get<0>().fold();
  net.get<1>().fold();
  EXPECT_TRUE(net.clone().get<0>().is_folded());
  EXPECT_TRUE(net.state_dict().empty());
  EXPECT_EQ(net(x).to_vector(), x.to_vector());
}

TEST(BatchNormLayer, RefusesWhatDoesNotFit) {
  EXPECT_EQ(message<ShapeError>([] {
              nn::BatchNorm2d<>(3)(ones({2, 3}));
            }),
            "BatchNorm2d: expected an input of 4 dimensions, got [2, 3]");
  EXPECT_EQ(message<ShapeError>([] {
              nn::BatchNorm1d<>(3)(ones({2, 3, 1, 1}));
            }),
            "BatchNorm1d: expected an input of 2 or 3 dimensions, got [2, 3, 1, 1]");
  EXPECT_EQ(message<ShapeError>([] {
              nn::BatchNorm1d<>(3)(ones({2, 4}));
            }),
            "BatchNorm: expected 3 channels, got input [2, 4]");
}

TEST(LayerNormLayer, IsItsFunction) {
  nn::LayerNorm<> layer(4), image({3, 4}, {.eps = 0.1}), plain(4, {.elementwise_affine = false});
  const auto x = randn({2, 3, 4});
  layer.weight.data()[1] = 5;
  layer.bias.data()[2] = 3;
  EXPECT_EQ(layer(x).to_vector(), layer_norm(x, {4}, layer.weight, layer.bias).to_vector());
  EXPECT_EQ(image(x).to_vector(), layer_norm(x, {3, 4}, {}, {}, 0.1).to_vector());
  EXPECT_EQ(plain(x).to_vector(), layer_norm(x, {4}).to_vector());
  EXPECT_EQ(names(image.state_dict()), (std::vector<std::string>{"weight", "bias"}));
  EXPECT_EQ(image.weight.shape(), (Shape{3, 4}));
  EXPECT_TRUE(plain.parameters().empty());
}

}  // namespace
}  // namespace tenet
