#include <tenet/nn/module.hpp>
#include <tenet/ops/reduce.hpp>
#include <tenet/ops/view.hpp>
#include <tenet/optim/adam.hpp>
#include <tenet/optim/sgd.hpp>

#include "message.hpp"

namespace tenet {
namespace {

using namespace optim;
using test::message;

using Floats = std::vector<float>;

Tensor<float> leaf(const Shape& shape, float value = 1) { return full(shape, value).requires_grad_(); }

void give_gradient(const AnyTensor& p, float value) { p.impl()->grad = full(p.shape(), value).ref(); }

TEST(Optimizer, GroupsHaveTheirOptions) {
  const Tensor<float> a = leaf({2}), b = leaf({3}), c = leaf({1});
  SGD optimizer({a, b}, {.lr = 0.5});
  optimizer.add_param_group({c}, {.lr = 0.25, .weight_decay = 1});
  EXPECT_EQ(optimizer.num_groups(), 2u);
  EXPECT_EQ(optimizer.parameters().size(), 3u);
  for (const AnyTensor& p : optimizer.parameters()) give_gradient(p, 1);
  optimizer.step();
  EXPECT_EQ(a.to_vector(), Floats(2, 0.5f));
  EXPECT_EQ(b.to_vector(), Floats(3, 0.5f));
  EXPECT_EQ(c.item(), 0.5f);  // 1 - 0.25 (1 + 1)
  optimizer.set_lr(0, 0);
  optimizer.options(1).weight_decay = 0;
  optimizer.step();
  EXPECT_EQ(a.to_vector(), Floats(2, 0.5f));
  EXPECT_EQ(c.item(), 0.25f);
  EXPECT_EQ(optimizer.lr(1), 0.25);
  EXPECT_EQ(message<IndexError>([&] { optimizer.lr(2); }), "SGD: group 2 of 2");
  EXPECT_THROW(optimizer.set_lr(1, 2), IndexError);
}

TEST(Optimizer, ParametersWithoutAGradientStay) {
  const Tensor<float> a = leaf({1}), b = leaf({1});
  SGD optimizer({a, b}, {.lr = 0.5, .weight_decay = 1});
  give_gradient(a, 1);
  optimizer.step();
  EXPECT_EQ(a.item(), 0);
  EXPECT_EQ(b.item(), 1);
  optimizer.zero_grad();
  EXPECT_FALSE(a.grad().defined());
  optimizer.step();
  EXPECT_EQ(a.item(), 0);
}

TEST(Optimizer, TakesFrozenParametersThatMayThaw) {
  const Tensor<float> a = leaf({2});
  Tensor<float> frozen = ones({1});
  SGD optimizer({a, frozen}, {.lr = 1, .weight_decay = 0.5});
  give_gradient(a, 1);
  optimizer.step();
  EXPECT_EQ(frozen.item(), 1);
  frozen.requires_grad_();
  give_gradient(frozen, 1);
  optimizer.step();
  EXPECT_EQ(frozen.item(), -0.5f);
}

TEST(Optimizer, RatesAreNumbersFromZero) {
  SGD optimizer({leaf({2})}, {.lr = 0.5});
  for (const double bad : {-1.0, std::nan("")}) {
    EXPECT_THROW(optimizer.set_lr(bad), Error);
    EXPECT_THROW(SGD({leaf({2})}, {.lr = bad}), Error);
  }
  EXPECT_EQ(optimizer.lr(), 0.5);
}

TEST(Optimizer, ReadsGradientsOfAnyStrides) {
  const Tensor<float> p = leaf({2, 3}, 0), q = leaf({3}, 0);
  p.impl()->grad = Tensor<float>(arange(6).view({3, 2}).t()).ref();
  q.impl()->grad = Tensor<float>(ones({1}).expand({3})).ref();
  SGD optimizer({p, q}, {.lr = 1});
  optimizer.step();
  EXPECT_EQ(p.to_vector(), (Floats{0, -2, -4, -1, -3, -5}));
  EXPECT_EQ(q.to_vector(), Floats(3, -1.f));
}

TEST(Optimizer, MixesElementTypes) {
  const Tensor<double> d = ones<double>({1}).requires_grad_();
  const Tensor<half> h = ones<half>({1}).requires_grad_();
  const Tensor<bfloat16> b = ones<bfloat16>({1}).requires_grad_();
  d.impl()->grad = full<double>({1}, 0.5).ref();
  h.impl()->grad = full<half>({1}, half(0.5f)).ref();
  b.impl()->grad = full<bfloat16>({1}, bfloat16(0.5f)).ref();
  SGD optimizer({d, h, b}, {.lr = 1, .momentum = 0.5});
  optimizer.step();
  optimizer.step();
  EXPECT_EQ(d.item(), -0.25);
  EXPECT_EQ(float(h.item()), -0.25f);
  EXPECT_EQ(float(b.item()), -0.25f);
  const nn::StateDict state = optimizer.state_dict();
  EXPECT_EQ(state.size(), 9u);           // group.0.lr, step, buffer, step, buffer, master, step, buffer, master
  for (const auto& [name, t] : state) {  // what is remembered of halves is in float
    if (name == "state.1.momentum_buffer" || name == "state.2.master") {
      EXPECT_EQ(t.dtype(), DType::float32);
    }
  }
}

TEST(Optimizer, RefusesWhatDoesNotTrain) {
  const Tensor<float> a = leaf({2}), b = leaf({3});
  EXPECT_NE(message([&] { SGD({a, b, a}); }).find("a parameter of shape [2] was given twice"), std::string::npos);
  EXPECT_THROW(SGD({a + a}), Error);
  EXPECT_THROW(SGD({ones<std::int64_t>({2})}), Error);
  EXPECT_THROW(SGD({AnyTensor()}), Error);
  const Tensor<float> strided = ones({2, 3}).t().requires_grad_();
  EXPECT_THROW(SGD({strided}), Error);
  // Nothing is left of a group that was refused.
  SGD optimizer({a});
  EXPECT_THROW(optimizer.add_param_group({b, a}, {}), Error);
  EXPECT_EQ(optimizer.parameters().size(), 1u);
  optimizer.add_param_group({b}, {.lr = 1});
  give_gradient(b, 1);
  optimizer.step();
  EXPECT_EQ(b.to_vector(), Floats(3, 0.f));
  EXPECT_EQ(a.to_vector(), Floats(2, 1.f));
}

TEST(Optimizer, AStepIsSeenByBackward) {
  const Tensor<float> p = leaf({2});
  const Tensor<float> y = sum(p * p);
  SGD optimizer({p});
  give_gradient(p, 1);
  optimizer.step();
  EXPECT_THROW(y.backward(), Error);  // p is no longer what y was made of
}

template <class O, class Options>
void expect_nothing_recorded(const Options& options) {
  const Tensor<float> p = leaf({50});
  O optimizer({p}, options);
  std::int64_t in_use = 0;
  for (int i = 0; i < 1000; ++i) {
    optimizer.zero_grad();
    sum(p * p).backward();
    optimizer.step();
    if (i == 10) in_use = memory::stats().in_use;
    ASSERT_TRUE(p.is_leaf());
    ASSERT_TRUE(p.requires_grad());
  }
  EXPECT_EQ(memory::stats().in_use, in_use);
}

TEST(Optimizer, StepsAreNotRecorded) {
  expect_nothing_recorded<SGD>(SGDOptions{.lr = 1e-3, .momentum = 0.9, .weight_decay = 0.1});
  expect_nothing_recorded<Adam>(AdamOptions{.weight_decay = 0.1, .amsgrad = true});
  expect_nothing_recorded<AdamW>(AdamWOptions{});
}

// ---- state

/// Two groups; the last parameter never gets a gradient.
template <class O, class Options>
struct Training {
  std::vector<Tensor<float>> p{leaf({3}), leaf({2, 2}), leaf({1})};
  O optimizer;
  explicit Training(const Options& options) : optimizer({p[0]}, options) {
    optimizer.add_param_group({p[1], p[2]}, options);
  }
  void step(int i) {
    give_gradient(p[0], std::sin(float(i)));
    give_gradient(p[1], std::cos(float(3 * i)));
    optimizer.step();
  }
  Floats all() const {
    Floats out;
    for (const auto& t : p)
      for (const float x : t.to_vector()) out.push_back(x);
    return out;
  }
};

template <class O, class Options>
void expect_resumes(const Options& options, const std::vector<std::string>& names) {
  Training<O, Options> straight(options), again(options);
  for (int i = 0; i < 3; ++i) straight.step(i);
  straight.optimizer.set_lr(0.02, 1);
  const nn::StateDict state = straight.optimizer.state_dict();
  std::vector<std::string> seen;
  for (const auto& entry : state) seen.push_back(entry.first);
  EXPECT_EQ(seen, names);
  for (std::size_t i = 0; i < again.p.size(); ++i) {
    std::memcpy(again.p[i].data(), straight.p[i].data(), std::size_t(again.p[i].numel()) * sizeof(float));
  }
  again.optimizer.load_state_dict(state);
  for (int i = 3; i < 6; ++i) {
    straight.step(i);  // must not reach the copies that `again` has
    again.step(i);
  }
  EXPECT_EQ(again.optimizer.lr(1), 0.02);
  EXPECT_EQ(again.all(), straight.all());
}

TEST(OptimizerState, ResumesWhereItWas) {
  const std::vector<std::string> sgd{"group.0.lr", "group.1.lr", "state.0.step", "state.1.step"};
  expect_resumes<SGD>(SGDOptions{.lr = 0.1}, sgd);
  expect_resumes<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.3},
                      {"group.0.lr", "group.1.lr", "state.0.step", "state.0.momentum_buffer", "state.1.step",
                       "state.1.momentum_buffer"});
  const std::vector<std::string> adam{"group.0.lr",         "group.1.lr",   "state.0.step",    "state.0.exp_avg",
                                      "state.0.exp_avg_sq", "state.1.step", "state.1.exp_avg", "state.1.exp_avg_sq"};
  expect_resumes<Adam>(AdamOptions{.lr = 0.1}, adam);
  expect_resumes<AdamW>(AdamWOptions{.lr = 0.1}, adam);
  expect_resumes<Adam>(
      AdamOptions{.lr = 0.1, .amsgrad = true},
      {"group.0.lr", "group.1.lr", "state.0.step", "state.0.exp_avg", "state.0.exp_avg_sq", "state.0.max_exp_avg_sq",
       "state.1.step", "state.1.exp_avg", "state.1.exp_avg_sq", "state.1.max_exp_avg_sq"});
}

TEST(OptimizerState, WhatDoesNotFitChangesNothing) {
  Training<Adam, AdamOptions> t(AdamOptions{.lr = 0.1});
  t.step(0);
  const nn::StateDict good = t.optimizer.state_dict();
  const auto refused = [&](auto change, const char* why) {
    nn::StateDict state;
    for (const auto& [name, tensor] : good) state.emplace_back(name, tensor);
    state[0].second = scalar(7.0);  // a rate that must not arrive
    change(state);
    const std::string text = message([&] { t.optimizer.load_state_dict(state); });
    EXPECT_NE(text.find(why), text.npos) << text;
    EXPECT_EQ(t.optimizer.lr(), 0.1);
    EXPECT_TRUE(t.optimizer.state_dict()[3].second.is(good[3].second));
  };
  refused([](nn::StateDict& s) { s.erase(s.begin() + 1); }, "has no group.1.lr");
  refused([](nn::StateDict& s) { s.emplace_back("group.2.lr", scalar(1.0)); }, "9 entries, of which 8 are known");
  refused([](nn::StateDict& s) { s[3].second = ones({4}); }, "state.0.exp_avg: expected [3] of float32, got [4]");
  refused([](nn::StateDict& s) { s[3].second = ones<double>({3}); }, "got [3] of float64");
  refused([](nn::StateDict& s) { s.erase(s.begin() + 4); }, "has no state.0.exp_avg_sq");
  refused([](nn::StateDict& s) { s[2].second = scalar(std::int64_t(-3)); }, "expected state.0.step >= 1, got -3");
  refused([](nn::StateDict& s) { s[2].second = scalar(1.f); }, "int64");
  refused([](nn::StateDict& s) { s[3].first = "state.0.momentum_buffer"; }, "has no state.0.exp_avg");
  refused([](nn::StateDict& s) { s.clear(); }, "has no group.0.lr");
  refused([](nn::StateDict& s) { s[1].second = scalar(-1.0); }, "expected lr >= 0, got -1");
}

}  // namespace
}  // namespace tenet
