#include <tenet/nn/nn.hpp>
#include <tenet/ops/join.hpp>
#include <tenet/optim/optim.hpp>

#include <gtest/gtest.h>

#include "lenet.hpp"
#include "ops/reduced.hpp"
#include "optim/count_allocations.hpp"

namespace tenet {
namespace {

using test::LeNet;

struct Mlp : nn::Module<Mlp> {
  nn::Linear<> fc1{56, 444}, fc2{444, 10};
  nn::Dropout dropout{0.2};
  TENET_MODULE(fc1, fc2, dropout)

  Tensor<float> forward(const Tensor<float>& x) { return fc2(dropout(relu(fc1(x)))); }
};

template <class Net>
float step(Net& net, optim::Optimizer& optimizer, const Tensor<float>& x, const Tensor<std::int64_t>& labels) {
  nn::CrossEntropyLoss criterion;
  net.zero_grad();
  optimizer.zero_grad();
  const Tensor<float> loss = criterion(net(x), labels);
  loss.backward();
  optim::clip_grad_norm_(optimizer.parameters(), 10);
  optimizer.step();
  return loss.item();
}

template <class O>
void expect_no_allocation(int threads) {
  const int before = num_threads();
  set_num_threads(threads);
  manual_seed(1);
  LeNet<> net;
  O optimizer(net.parameters(), {.lr = 1e-3});
  optim::CosineAnnealingLR schedule(optimizer, {.T_max = 100});
  const Tensor<float> x = randn({16, 1, 28, 28});
  const Tensor<std::int64_t> labels = randint(10, {16});
  const auto train = [&] {
    const float loss = step(net, optimizer, x, labels);
    schedule.step();
    return loss;
  };
  for (int i = 0; i < 10; ++i) train();
  const std::int64_t requests = memory::stats().system_requests;
  test::AllocationCount count;
  for (int i = 10; i <= 20; ++i) train();
  EXPECT_EQ(count.stop(), 0) << threads << " threads";
  EXPECT_EQ(memory::stats().system_requests, requests);
  set_num_threads(before);
}

TEST(Training, AllocationsAreCounted) {
  if (!test::counts_allocations) GTEST_SKIP() << "a sanitizer owns malloc";
  test::AllocationCount count;
  ::operator delete(::operator new(100));
  void* volatile p = std::malloc(1);
  std::free(p);
  EXPECT_EQ(count.stop(), 2);
}

TEST(Training, AsksTheSystemForNothing) {
  if (!test::counts_allocations) GTEST_SKIP() << "a sanitizer owns malloc";
  for (const int threads : {1, 2}) {
    expect_no_allocation<optim::SGD>(threads);
    expect_no_allocation<optim::AdamW>(threads);
  }
}

TEST(Training, IsTheSameForAnyNumberOfThreads) {
  EXPECT_TRUE(test::same_for_any_threads([] {
    manual_seed(2);
    Mlp net;
    optim::SGD optimizer(net.parameters(), {.lr = 0.05, .momentum = 0.9});
    std::vector<Tensor<float>> all;
    for (int i = 0; i < 20; ++i) {
      const Tensor<float> x = randn({100, 56});
      all.push_back(full({1}, step(net, optimizer, x, randint(10, {100}))));
    }
    for (const AnyTensor& p : net.parameters()) {
      all.push_back(Tensor<float>(p).detach().flatten());
      all.push_back(Tensor<float>(p).grad().flatten());
    }
    return cat(all, 0);
  }));
  EXPECT_TRUE(test::same_for_any_threads([] {
    manual_seed(3);
    LeNet<> net;
    optim::Adam optimizer(net.parameters(), {.lr = 1e-3});
    std::vector<Tensor<float>> all;
    for (int i = 0; i < 3; ++i) step(net, optimizer, randn({17, 1, 28, 28}), randint(10, {17}));
    for (const AnyTensor& p : net.parameters()) all.push_back(Tensor<float>(p).detach().flatten());
    return cat(all, 0);
  }));
}

TEST(Training, AnEmptyBatchTeachesNothing) {
  for (const Reduction reduction : {Reduction::sum, Reduction::mean}) {
    LeNet<> net;
    const Tensor<float> y = net(zeros({0, 1, 28, 28}));
    EXPECT_EQ(y.shape(), (Shape{0, 10}));
    const Tensor<float> loss = cross_entropy(y, zeros<std::int64_t>({0}), {.reduction = reduction});
    if (reduction == Reduction::sum) EXPECT_EQ(loss.item(), 0);
    else EXPECT_TRUE(std::isnan(loss.item()));
    loss.backward();
    for (const auto& [name, p] : net.named_parameters()) {
      EXPECT_EQ(p.grad_any().shape(), p.shape());
      const std::vector<float> g = Tensor<float>(p.grad_any()).to_vector();
      EXPECT_EQ(g, std::vector<float>(g.size(), 0.f)) << name;
    }
  }
}

TEST(Training, LearnsAnEasyTask) {
  manual_seed(4);
  Mlp net;
  optim::Adam optimizer(net.parameters(), {.lr = 1e-3});
  const Tensor<float> x = randn({64, 56});
  const Tensor<std::int64_t> labels = randint(10, {64});
  const float first = step(net, optimizer, x, labels);
  float last = first;
  for (int i = 0; i < 60; ++i) last = step(net, optimizer, x, labels);
  EXPECT_GT(first, 2);
  EXPECT_LT(last, 0.3f);
}

}  // namespace
}  // namespace tenet
