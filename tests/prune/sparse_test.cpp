// Sparse Linear layers: their answers, gradients, copies and states.
#include <gtest/gtest.h>
#include <tenet/tenet.hpp>

#include "kernels/isas.hpp"
#include "message.hpp"

namespace {

using namespace tenet;

template <class T>
nn::Linear<T> pruned(std::int64_t in, std::int64_t out, double amount) {
  nn::Linear<T> layer(in, out);
  prune::l1_unstructured(layer, {.amount = amount});
  return layer;
}

template <class T>
double largest_difference(const Tensor<T>& a, const Tensor<T>& b) {
  EXPECT_EQ(a.shape(), b.shape());
  return a.numel() ? double(abs(sub(a, b)).max().item()) : 0;
}

TEST(Sparse, AnswersAsDense) {
  for_each_isa([] {
    for (const double amount : {0.0, 0.7, 0.95, 1.0}) {
      for (const Shape& shape : {Shape{37}, {1, 37}, {3, 37}, {4, 37}, {35, 37}, {2, 3, 37}, {0, 37}}) {
        auto dense = pruned<double>(37, 29, amount);
        auto sparse = dense;
        prune::to_sparse(sparse);
        const auto x = randn<double>(shape);
        EXPECT_LT(largest_difference(sparse(x), dense(x)), 1e-12) << amount << " " << shape.str();
      }
    }
  });
}

TEST(Sparse, FloatsAnswerAsDense) {
  for_each_isa([] {
    auto dense = pruned<float>(300, 200, 0.9);
    auto sparse = dense;
    prune::to_sparse(sparse);
    for (const std::int64_t n : {1, 7, 40}) {
      const auto x = randn({n, 300});
      EXPECT_LT(largest_difference(sparse(x), dense(x)), 1e-5) << n;
    }
  });
}

TEST(Sparse, PassesGradientsToTheInputAndTheBias) {
  for_each_isa([] {
    for (const std::int64_t n : {1, 6, 20}) {
      auto layer = pruned<double>(5, 4, 0.6);
      prune::to_sparse(layer);
      const auto f = [&](const std::vector<Tensor<double>>& in) { return layer.weight.linear(in[0], in[1]); };
      const std::vector<Tensor<double>> inputs{randn<double>({n, 5}).requires_grad_(),
                                               randn<double>({4}).requires_grad_()};
      EXPECT_TRUE(autograd::gradcheck(f, inputs));
      EXPECT_TRUE(autograd::gradgradcheck(f, inputs));
    }
  });
}

TEST(Sparse, AnswersDoNotDependOnThreads) {
  nn::Linear<> layer(1000, 2500);
  prune::to_sparse(layer);
  const int threads = num_threads();
  for (const std::int64_t n : {1, 40}) {
    std::vector<std::vector<float>> seen;
    const auto x = randn({n, 1000}).requires_grad_();
    for (const int t : {1, 3}) {
      set_num_threads(t);
      x.zero_grad();
      const auto y = layer(x);
      y.sum().backward();
      seen.push_back(y.to_vector());
      seen.push_back(x.grad().to_vector());
    }
    EXPECT_EQ(seen[0], seen[2]);
    EXPECT_EQ(seen[1], seen[3]);
  }
  set_num_threads(threads);
}

struct Net : nn::Module<Net> {
  nn::Conv2d<> conv{1, 2, 3};
  nn::Linear<> fc{8, 3};
  TENET_MODULE(conv, fc)
  Tensor<float> forward(const Tensor<float>& x) { return fc(flatten(relu(conv(x)), 1)); }
};

Net sparse_net(double amount) {
  Net net;
  prune::l1_unstructured(net, {.amount = amount});
  prune::to_sparse(net);
  return net;
}

TEST(Sparse, TakesLinearLayersOnly) {
  Net net = sparse_net(0.5);
  EXPECT_EQ(net.conv.weight.format_name(), "masked");
  EXPECT_EQ(net.fc.weight.format_name(), "sparse");
  EXPECT_EQ(prune::sparsity(net.fc), 0.5);
  EXPECT_THROW(prune::to_sparse(net.conv), Error);
  EXPECT_THROW(prune::to_sparse(net), Error);  // it is
  const auto x = randn({2, 1, 4, 4});
  const auto before = net(x);
  Net copy = net;
  EXPECT_EQ(copy(x).to_vector(), before.to_vector());
  prune::to_dense(net);
  EXPECT_EQ(net.fc.weight.format_name(), "dense");
  EXPECT_TRUE(net.fc.weight.requires_grad());
  EXPECT_LT(largest_difference(net(x), before), 1e-6);
  EXPECT_EQ(test::message<ShapeError>([&] {
              copy.fc(randn({2, 7}));
            }),
            "linear: expected 8 input features, got input [2, 7]");
}

TEST(Sparse, StatesOfAnySparsityLoad) {
  const auto x = randn({2, 1, 4, 4});
  Net stored = sparse_net(0.5), dense, sparser = sparse_net(0.75);
  for (Net* net : {&dense, &sparser}) {
    net->load_state_dict(stored.state_dict(), {.formats = prune::formats()});
    EXPECT_EQ((*net)(x).to_vector(), stored(x).to_vector());
  }
}

TEST(Sparse, DamagedStatesAreRefused) {
  Net stored = sparse_net(0.5), net = sparse_net(0.5);
  const auto before = net(ones<float>({1, 1, 4, 4})).to_vector();
  const auto load = [&](const std::string& key, const AnyTensor& wrong) {
    auto dict = stored.state_dict();
    for (auto& [name, tensor] : dict) {
      if (name == "fc.weight.sparse." + key) tensor = wrong;
    }
    net.load_state_dict(dict, {.formats = prune::formats()});
  };
  using Columns = std::vector<std::int32_t>;
  EXPECT_THROW(load("columns", from_vector(Columns(12, 8))), Error);
  EXPECT_THROW(load("columns", from_vector(Columns(12, -1))), Error);
  EXPECT_THROW(load("columns", from_vector(Columns(11, 0))), Error);
  EXPECT_THROW(load("columns", from_vector<std::int32_t>({0, 1, 2, 2, 0, 1, 2, 3, 0, 1, 2, 3})), Error);
  EXPECT_THROW(load("columns", from_vector<std::int32_t>({0, 1, 3, 2, 0, 1, 2, 3, 0, 1, 2, 3})), Error);
  EXPECT_THROW(load("columns", zeros<float>({12})), Error);
  EXPECT_THROW(load("starts", from_vector<std::int64_t>({0, 4, 8, 13})), Error);
  EXPECT_THROW(load("starts", from_vector<std::int64_t>({1, 4, 8, 12})), Error);
  EXPECT_THROW(load("starts", from_vector<std::int64_t>({0, 9, 8, 12})), Error);
  EXPECT_THROW(load("starts", from_vector<std::int64_t>({0, 4, 12})), Error);
  EXPECT_THROW(load("values", zeros<float>({12, 1})), Error);
  EXPECT_EQ(net(ones<float>({1, 1, 4, 4})).to_vector(), before);
}

}  // namespace
