// Pruned layers: what they compute, how they train, and what copies and states make of them.
#include <gtest/gtest.h>
#include <tenet/io/checkpoint.hpp>
#include <tenet/tenet.hpp>

#include "message.hpp"

namespace {

using namespace tenet;

struct Net : nn::Module<Net> {
  nn::Conv2d<> conv{1, 2, 3};
  nn::Linear<> fc{8, 3};
  TENET_MODULE(conv, fc)
  Tensor<float> forward(const Tensor<float>& x) { return fc(flatten(relu(conv(x)), 1)); }
};

Net pruned_net() {
  Net net;
  prune::l1_unstructured(net.fc, {.amount = 0.5});
  prune::ln_structured(net.conv, {.amount = 1});
  return net;
}

template <class Layer>
Tensor<bool> mask(const Layer& layer) {
  return static_cast<prune::Masked<>*>(layer.weight.format())->mask;
}
/// The number of elements of `x` that are not 0 where the layer is pruned.
template <class Layer>
std::int64_t pruned_elements(const Layer& layer, const Tensor<float>& x) {
  return count_nonzero(masked_select(x, !mask(layer))).item();
}

TEST(Mask, LayersComputeWithWhatIsLeft) {
  Net net = pruned_net();
  EXPECT_EQ(net.fc.weight.format_name(), "masked");
  const auto x = randn({5, 8});
  const auto w = net.fc.weight * to<float>(mask(net.fc));
  EXPECT_EQ(net.fc(x).to_vector(), linear(x, w, net.fc.bias).to_vector());
  EXPECT_EQ(prune::sparsity(net.fc), 0.5);
  EXPECT_EQ(prune::sparsity(net), double(12 + 9) / (24 + 18));
  EXPECT_TRUE(prune::is_pruned(net));
  EXPECT_TRUE(prune::is_pruned(net.fc.weight));
}

TEST(Mask, ANonFiniteElementCanBePruned) {
  nn::Linear<> fc(2, 1);
  fc.weight(0, 0) = std::numeric_limits<float>::infinity();
  prune::custom_from_mask(fc, from_vector<bool>({false, true}, {1, 2}));
  EXPECT_TRUE(std::isfinite(fc(ones<float>({1, 2})).item()));
}

TEST(Mask, SurvivesTrainingAndWeightDecay) {
  Net net = pruned_net();
  optim::SGD optimizer(net.parameters(), {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
  const auto x = randn({4, 1, 4, 4});
  const auto before = net.fc.weight.dense().to_vector();
  for (int i = 0; i < 5; ++i) {
    optimizer.zero_grad();
    net(x).sum().backward();
    EXPECT_EQ(pruned_elements(net.fc, net.fc.weight.grad()), 0);
    optimizer.step();
  }
  EXPECT_NE(net.fc.weight.dense().to_vector(), before);
  EXPECT_EQ(pruned_elements(net.fc, net.fc.weight.dense()), 0);
  EXPECT_EQ(pruned_elements(net.conv, net.conv.weight.dense()), 0);
}

TEST(Mask, RemovalKeepsTheParameterAndTheAnswer) {
  Net net = pruned_net();
  const auto x = randn({4, 1, 4, 4});
  const auto before = net(x).to_vector();
  const TensorImpl* identity = net.fc.weight.impl();
  prune::remove(net.fc);
  EXPECT_EQ(net.fc.weight.impl(), identity);
  EXPECT_TRUE(net.fc.weight.requires_grad());
  EXPECT_TRUE(net.fc.weight.is_leaf());
  EXPECT_EQ(prune::sparsity(net.fc), 0.5);
  EXPECT_FALSE(prune::is_pruned(net.fc));
  EXPECT_TRUE(prune::is_pruned(net));
  prune::remove(net);
  EXPECT_EQ(net(x).to_vector(), before);
  EXPECT_EQ(net.state_dict().size(), 4u);
  EXPECT_THROW(prune::remove(net), Error);
}

TEST(Mask, CopiesHaveTheirOwn) {
  Net net = pruned_net();
  Net copy = net;
  prune::l1_unstructured(copy.fc, {.amount = 1.0});
  EXPECT_EQ(prune::sparsity(net.fc), 0.5);
  EXPECT_EQ(prune::sparsity(copy.fc), 1);
}

TEST(Mask, TiedWeightsArePrunedTogether) {
  struct Tied : nn::Module<Tied> {
    nn::Linear<> a{4, 4}, b{4, 4};
    TENET_MODULE(a, b)
  } net;
  net.b.weight.tie(net.a.weight);
  prune::global_unstructured(net, {.amount = 4});
  EXPECT_EQ(prune::sparsity(net.a), 0.25);
  EXPECT_EQ(mask(net.a).to_vector(), mask(net.b).to_vector());
  prune::random_unstructured(net, {.amount = 4});
  EXPECT_EQ(prune::sparsity(net.a), 0.5);
  EXPECT_EQ(mask(net.a).to_vector(), mask(net.b).to_vector());
}

TEST(Mask, CheckpointsHoldIt) {
  const std::string path = testing::TempDir() + "pruned.safetensors";
  Net net = pruned_net(), loaded, dense;
  save(net, path);
  load(loaded, path, {.formats = prune::formats()});
  const auto x = randn({4, 1, 4, 4});
  EXPECT_EQ(loaded(x).to_vector(), net(x).to_vector());
  EXPECT_EQ(mask(loaded.fc).to_vector(), mask(net.fc).to_vector());
  EXPECT_THROW(load(dense, path), Error);
  auto dict = net.state_dict();
  for (auto& [name, tensor] : dict) {
    if (name == "fc.weight.masked.mask") tensor = ones<bool>({8, 3});
  }
  EXPECT_THROW(dense.load_state_dict(dict, {.formats = prune::formats()}), Error);
  EXPECT_FALSE(prune::is_pruned(dense));
}

struct Foreign final : nn::WeightFormat<float> {
  std::string_view name() const override { return "foreign"; }
  Shape shape() const override { return {3, 8}; }
  Tensor<float> dense(const Tensor<float>&) const override { return zeros<float>({3, 8}); }
  std::shared_ptr<nn::WeightFormat<float>> clone() const override { return std::make_shared<Foreign>(*this); }
  void collect(const std::string&, std::vector<nn::StateSlot>&) override {}
};

TEST(Mask, OtherFormatsAreRefused) {
  Net net;
  net.fc.weight.set_format(std::make_shared<Foreign>());
  EXPECT_EQ(test::message([&] { prune::l1_unstructured(net, {.amount = 0.5}); }),
            "l1_unstructured: expected a dense or a pruned weight, but fc.weight is kept as foreign");
  EXPECT_FALSE(prune::is_pruned(net));
  EXPECT_EQ(prune::sparsity(net.fc), 1);
}

}  // namespace
