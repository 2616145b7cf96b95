// Weights as products of two factors.
#include <gtest/gtest.h>
#include <tenet/tenet.hpp>

#include "kernels/isas.hpp"
#include "message.hpp"

namespace {

using namespace tenet;

double difference(const Tensor<double>& a, const Tensor<double>& b) { return abs(a - b).max().item(); }

TEST(LowRank, SingularValuesAreThoseOfAKnownMatrix) {
  // [[3, 0], [4, 5]] has the singular values 3 sqrt(5) and sqrt(5).
  for_each_isa([] {
    auto a = from_vector<double>({3, 0, 4, 5}, {2, 2});
    const auto u = empty<double>({2, 2}), rows = a.clone();
    cpu::orthogonal_rows(2, 2, rows.data(), u.data());
    EXPECT_NEAR(norm(rows[0]).item(), 3 * std::sqrt(5.0), 1e-13);
    EXPECT_NEAR(norm(rows[1]).item(), std::sqrt(5.0), 1e-13);
    EXPECT_LT(difference(matmul(t(u), rows), a), 1e-13);
  });
}

TEST(LowRank, RotationsKeepTheMatrix) {
  for_each_isa([] {
    const auto a = randn<double>({13, 29});
    const auto rows = a.clone(), u = empty<double>({13, 13});
    cpu::orthogonal_rows(13, 29, rows.data(), u.data());
    EXPECT_LT(difference(matmul(t(u), rows), a), 1e-12);
    EXPECT_LT(difference(matmul(u, t(u)), eye<double>(13, 13)), 1e-12);
    const auto products = matmul(rows, t(rows));
    for (int i = 0; i < 13; ++i) {
      for (int j = 0; j < 13; ++j) {
        if (i != j) {
          EXPECT_NEAR(products(i, j), 0, 1e-12);
        } else if (i > 0) {
          EXPECT_LE(products(i, i), products(i - 1, i - 1));
        }
      }
    }
  });
}

TEST(LowRank, ReproducesAMatrixOfThatRank) {
  for (const auto& [out, in] : {std::pair{12, 7}, {7, 12}}) {
    nn::Linear<double> layer(in, out);
    layer.weight = nn::Weight<double>(matmul(randn<double>({out, 3}), randn<double>({3, in})));
    const auto before = layer.weight.dense().clone();
    auto by_energy = layer;
    prune::low_rank(layer, {.rank = 3});
    EXPECT_EQ(layer.weight.format_name(), "low_rank");
    EXPECT_EQ(layer.num_parameters(), 3 * (out + in) + out);
    EXPECT_LT(difference(layer.weight.dense(), before), 1e-12);
    const auto x = randn<double>({2, 5, in});
    EXPECT_LT(difference(layer(x), linear(x, before, layer.bias)), 1e-12);
    prune::low_rank(by_energy, {.energy = 1 - 1e-9});
    EXPECT_EQ(by_energy.num_parameters(), layer.num_parameters());
  }
}

TEST(LowRank, IsTheBestOfItsRank) {
  nn::Linear<double> layer(10, 6);
  const auto w = layer.weight.dense().clone();
  const auto rows = w.clone(), u = empty<double>({6, 6});
  cpu::orthogonal_rows(6, 10, rows.data(), u.data());
  double rest = 0;  // Eckart and Young: what is lost are the least singular values
  for (int i = 2; i < 6; ++i) rest += square(rows[i]).sum().item();
  prune::low_rank(layer, {.rank = 2});
  EXPECT_NEAR(square(layer.weight.dense() - w).sum().item(), rest, 1e-12);
}

TEST(LowRank, ConvolutionsAreTwo) {
  nn::Conv2d<double> conv(3, 8, 3, {.stride = 2, .padding = 1}), grouped(4, 4, 3, {.groups = 2});
  for (auto* layer : {&conv, &grouped}) {
    prune::low_rank(*layer, {.rank = 2});
    const auto x = randn<double>({2, layer == &conv ? 3 : 4, 7, 6});
    const Conv2dOptions o{
        .stride = layer->options.stride, .padding = layer->options.padding, .groups = layer->options.groups};
    EXPECT_LT(difference((*layer)(x), conv2d(x, layer->weight.dense(), layer->bias, o)), 1e-12);
  }
}

struct Net : nn::Module<Net> {
  nn::Conv2d<> conv{1, 2, 3};
  nn::Linear<> fc{8, 3};
  TENET_MODULE(conv, fc)
  Tensor<float> forward(const Tensor<float>& x) { return fc(flatten(relu(conv(x)), 1)); }
};

TEST(LowRank, TrainsCopiesAndLoads) {
  Net net, same, other;
  prune::low_rank(net, {.rank = 2});
  prune::low_rank(same, {.rank = 2});
  prune::low_rank(other, {.rank = 1});
  const auto x = randn({2, 1, 4, 4});
  net(x).sum().backward();
  EXPECT_EQ(net.parameters().size(), 6u);
  for (const auto& [name, p] : net.named_parameters()) EXPECT_TRUE(bool(p.grad_any())) << name;
  const auto before = net(x).to_vector();
  EXPECT_EQ(Net(net)(x).to_vector(), before);
  Net dense;
  const AnyTensor kept = same.parameters()[0];  // an optimizer may hold it
  for (Net* n : {&dense, &same, &other}) {
    n->load_state_dict(net.state_dict(), {.formats = prune::formats()});
    EXPECT_EQ((*n)(x).to_vector(), before);
  }
  EXPECT_TRUE(same.parameters()[0].is(kept));
  auto dict = net.state_dict();
  for (auto& [name, tensor] : dict) {
    if (name == "fc.weight.low_rank.down") tensor = zeros<float>({2, 9});
  }
  EXPECT_THROW(Net().load_state_dict(dict, {.formats = prune::formats()}), Error);
}

TEST(LowRank, TiedWeightsHaveTheSameFactors) {
  struct Tied : nn::Module<Tied> {
    nn::Linear<> a{4, 4}, b{4, 4};
    TENET_MODULE(a, b)
  } model, halved;
  model.b.weight.tie(model.a.weight);
  prune::low_rank(model, {.rank = 2});
  EXPECT_EQ(model.a.weight.format(), model.b.weight.format());
  EXPECT_EQ(model.num_parameters(), 16 + 4 + 4);
  halved.b.weight.tie(halved.a.weight);
  prune::l1_unstructured(halved.a, {.amount = 0.5});  // only this one is pruned
  prune::low_rank(halved, {.rank = 2});
  EXPECT_NE(halved.a.weight.format(), halved.b.weight.format());
}

TEST(LowRank, RefusesWrongRanks) {
  Net net;
  EXPECT_NE(test::message([&] { prune::low_rank(net, {.rank = 3}); }).find("expected a rank of 1 to 2"),
            std::string::npos);
  for (const prune::LowRankOptions& o :
       {prune::LowRankOptions{}, {.rank = -1}, {.rank = 1, .energy = 0.5}, {.energy = 1.5}, {.energy = -0.5}}) {
    EXPECT_THROW(prune::low_rank(net, o), Error);
  }
  EXPECT_EQ(net.fc.weight.format_name(), "dense");
  EXPECT_THROW(prune::LowRank<>(zeros<float>({2, 3}), zeros<float>({2, 3})), ShapeError);
}

TEST(LowRank, AMatrixOfZerosHasRankOne) {
  nn::Linear<> layer(4, 3);
  prune::l1_unstructured(layer, {.amount = 1.0});
  prune::low_rank(layer, {.energy = 0.9});
  EXPECT_EQ(prune::sparsity(layer), 1);
}

}  // namespace
