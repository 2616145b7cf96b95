#include <tenet/amp/grad_scaler.hpp>
#include <tenet/core/random.hpp>
#include <tenet/io/checkpoint.hpp>
#include <tenet/nn/linear.hpp>
#include <tenet/ops/inplace.hpp>
#include <tenet/ops/reduce.hpp>
#include <tenet/optim/optim.hpp>

#include <limits>

#include <data/files.hpp>

#include "message.hpp"

namespace tenet {
namespace {

using amp::GradScaler;
using test::message;

constexpr float infinity = std::numeric_limits<float>::infinity();

void give_gradient(const AnyTensor& p, float value) { p.impl()->grad = full(p.shape(), value).ref(); }

Tensor<float> leaf(const Shape& shape = {3}) { return ones(shape).requires_grad_(); }

TEST(GradScaler, FollowsTheSequence) {
  const Tensor<float> p = leaf();
  optim::SGD optimizer({p}, {.lr = 0.1, .momentum = 0.9});
  GradScaler scaler({.growth_interval = 2});
  EXPECT_EQ(scaler.get_scale(), 65536);
  std::vector<double> scales;
  for (const bool found_inf : {false, false, true, false, false, false}) {
    const auto before = p.to_vector();
    optimizer.zero_grad();
    scaler.scale(sum(p) * (found_inf ? infinity : 1)).backward();
    EXPECT_EQ(scaler.step(optimizer), !found_inf);
    EXPECT_EQ(p.to_vector() == before, found_inf);
    EXPECT_EQ(p.grad().to_vector() == std::vector<float>(3, 1.f), !found_inf);
    scaler.update();
    scales.push_back(scaler.get_scale());
  }
  EXPECT_EQ(scales, (std::vector<double>{65536, 131072, 65536, 65536, 131072, 131072}));
}

TEST(GradScaler, AStepLeftOutChangesNothing) {
  const Tensor<float> p = leaf({4}), q = leaf({2});
  optim::Adam optimizer({p, q}, {});
  GradScaler scaler;
  const auto step = [&](float a, float b) {
    give_gradient(p, a);
    give_gradient(q, b);
    const bool taken = scaler.step(optimizer);
    scaler.update();
    return taken;
  };
  EXPECT_TRUE(step(1, 2));
  const auto values_of = [&] {
    std::vector<double> all;
    for (const auto& [name, t] : optimizer.state_dict()) {
      dispatch(t.dtype(), [&, &tensor = t]<class T>(T) {
        for (const T v : Tensor<T>(tensor).to_vector()) all.push_back(double(v));
      });
    }
    for (const Tensor<float>& t : {p, q}) {
      for (const float v : t.to_vector()) all.push_back(v);
    }
    return all;
  };
  const auto before = values_of();
  for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_FALSE(step(1, bad));
    EXPECT_FALSE(step(bad, 1));
    EXPECT_EQ(values_of(), before);
  }
  EXPECT_EQ(scaler.get_scale(), 65536 / 64);
  EXPECT_TRUE(step(1, 2));
}

TEST(GradScaler, FindsOneInfinityAmongMany) {
  const std::int64_t n = 100003;
  const Tensor<float> p = leaf({n});
  optim::SGD optimizer({p}, {});
  for (const std::int64_t at : {std::int64_t(0), std::int64_t(70001), n - 1}) {
    GradScaler scaler;
    give_gradient(p, 2);
    p.grad().data()[at] = infinity;
    EXPECT_FALSE(scaler.step(optimizer));
    EXPECT_EQ(p.grad()(at == 5 ? 6 : 5), 2.f / 65536);
  }
}

TEST(GradScaler, NeverGrowsToInfinity) {
  const Tensor<float> p = leaf();
  optim::SGD optimizer({p}, {});
  GradScaler scaler({.init_scale = 3e38, .growth_interval = 1});
  for (int i = 0; i < 3; ++i) {
    give_gradient(p, 1);
    scaler.step(optimizer);
    scaler.update();
    EXPECT_EQ(scaler.get_scale(), double(3e38f));
  }
}

TEST(GradScaler, TellsCallsInTheWrongOrder) {
  const Tensor<float> p = leaf(), q = leaf();
  optim::SGD a({p}, {}), b({q}, {});
  GradScaler scaler;
  EXPECT_EQ(message([&] { scaler.update(); }), "GradScaler: update() expects step() or unscale_() before");
  EXPECT_EQ(message([&] { scaler.step(a); }), "GradScaler: no parameter of the optimizer has a gradient");
  scaler.update(65536);
  give_gradient(p, 65536);
  give_gradient(q, 65536);
  scaler.unscale_(a);
  EXPECT_EQ(p.grad()(0), 1.f);
  EXPECT_NE(message([&] { scaler.unscale_(a); }).find("unscale_() was called before"), std::string::npos);
  scaler.unscale_(b);  // another optimizer
  EXPECT_TRUE(scaler.step(a));
  EXPECT_EQ(p.grad()(0), 1.f);  // not unscaled again
  EXPECT_NE(message([&] { scaler.unscale_(a); }).find("unscale_() was called after step()"), std::string::npos);
  EXPECT_NE(message([&] { scaler.step(a); }).find("step() was called before"), std::string::npos);
  scaler.update();
  scaler.unscale_(a);
}

TEST(GradScaler, LooksAtEachOptimizerForItself) {
  const Tensor<float> p = leaf(), q = leaf();
  optim::SGD a({p}, {}), b({q}, {});
  GradScaler scaler;
  give_gradient(p, infinity);
  give_gradient(q, 1);
  EXPECT_FALSE(scaler.step(a));
  EXPECT_TRUE(scaler.step(b));
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 32768);
}

TEST(GradScaler, LeavesSharedMemoryAlone) {
  const Tensor<float> p = leaf({2, 3}), q = leaf({2, 3});
  const Tensor<float> g = full({2, 3}, 65536.f);
  p.impl()->grad = detach(g).ref();
  q.impl()->grad = Tensor<float>(full({3, 2}, 65536.f).t()).ref();
  optim::SGD optimizer({p, q}, {});
  GradScaler scaler;
  scaler.unscale_(optimizer);
  EXPECT_EQ(g.to_vector(), std::vector<float>(6, 65536.f));
  EXPECT_EQ(p.grad().to_vector(), std::vector<float>(6, 1.f));
  EXPECT_EQ(q.grad().to_vector(), std::vector<float>(6, 1.f));
}

TEST(GradScaler, TakesGradientsOfAnyTypeButHalf) {
  const Tensor<double> d = ones<double>({2}).requires_grad_();
  const Tensor<bfloat16> b = ones<bfloat16>({2}).requires_grad_();
  const Tensor<half> h = ones<half>({2}).requires_grad_();
  d.impl()->grad = full<double>({2}, 1e300).ref();
  b.impl()->grad = full<bfloat16>({2}, bfloat16(3 * 65536.f)).ref();
  optim::SGD optimizer({d, b}, {}), halves({h}, {});
  GradScaler scaler;
  scaler.unscale_(optimizer);
  EXPECT_EQ(d.grad()(1), 1e300 / 65536);
  EXPECT_EQ(float(b.grad()(1)), 3.f);
  EXPECT_TRUE(scaler.step(optimizer));
  h.impl()->grad = ones<half>({2}).ref();
  EXPECT_NE(message<DTypeError>([&] { scaler.step(halves); }).find("got float16"), std::string::npos);
}

TEST(GradScaler, CanBeDisabled) {
  const Tensor<float> p = leaf();
  optim::SGD optimizer({p}, {.lr = 1});
  GradScaler scaler({.enabled = false});
  scaler.scale(sum(p)).backward();
  scaler.unscale_(optimizer);
  scaler.unscale_(optimizer);
  EXPECT_TRUE(scaler.step(optimizer));
  scaler.update();
  EXPECT_EQ(p(0), 0.f);
  EXPECT_EQ(scaler.get_scale(), 1);
  EXPECT_TRUE(scaler.state_dict().empty());
}

TEST(GradScaler, RefusesOptionsOutOfRange) {
  EXPECT_THROW(GradScaler({.init_scale = 0}), Error);
  EXPECT_THROW(GradScaler({.init_scale = 1e39}), Error);
  EXPECT_THROW(GradScaler({.growth_factor = 1}), Error);
  EXPECT_THROW(GradScaler({.backoff_factor = 1}), Error);
  EXPECT_THROW(GradScaler({.backoff_factor = 0}), Error);
  EXPECT_THROW(GradScaler({.growth_interval = 0}), Error);
  GradScaler scaler;
  EXPECT_THROW(scaler.update(-1.0), Error);
  EXPECT_THROW(scaler.update(std::nan("")), Error);
}

TEST(GradScaler, SavesItsState) {
  const Tensor<float> p = leaf();
  optim::SGD optimizer({p}, {});
  const auto good_update = [&](GradScaler& scaler) {
    give_gradient(p, 1);
    scaler.step(optimizer);
    scaler.update();
  };
  GradScaler a({.init_scale = 1024, .growth_factor = 4, .growth_interval = 3}), b;
  good_update(a);
  good_update(a);
  b.load_state_dict(a.state_dict());
  EXPECT_EQ(b.get_scale(), 1024);
  good_update(b);
  EXPECT_EQ(b.get_scale(), 4096);

  nn::StateDict state = a.state_dict();
  state.pop_back();
  EXPECT_EQ(message([&] { b.load_state_dict(state); }), "GradScaler: the state has no scaler.growth_tracker");
  state = a.state_dict();
  state[0].second = scalar(-1.f);
  EXPECT_THROW(b.load_state_dict(state), Error);
  state[0].second = scalar(std::int64_t{5});
  EXPECT_THROW(b.load_state_dict(state), DTypeError);
  EXPECT_EQ(b.get_scale(), 4096);
}

TEST(GradScaler, IsInTheCheckpoint) {
  const TemporaryFolder folder;
  manual_seed(1);
  nn::Linear<> model(4, 2);
  optim::Adam optimizer(model.parameters(), {});
  GradScaler scaler({.growth_interval = 2});
  const Tensor<float> x = randn({8, 4});
  const auto train = [&](auto& m, auto& o, GradScaler& s, float factor = 1) {
    o.zero_grad();
    s.scale(sum(m(x)) * factor).backward();
    s.step(o);
    s.update();
  };
  train(model, optimizer, scaler);
  train(model, optimizer, scaler);
  train(model, optimizer, scaler);
  save_training(model, optimizer, folder.file("a"), {.epoch = 3, .extra = scaler.state_dict()});
  EXPECT_EQ(scaler.get_scale(), 131072);

  nn::Linear<> model2(4, 2);
  optim::Adam optimizer2(model2.parameters(), {});
  GradScaler scaler2;
  scaler2.load_state_dict(load_training(model2, optimizer2, folder.file("a")).extra);
  for (const float factor : {1.f, infinity, 1.f}) {
    train(model, optimizer, scaler, factor);
    train(model2, optimizer2, scaler2, factor);
    EXPECT_EQ(scaler2.get_scale(), scaler.get_scale());
    EXPECT_EQ(model2.weight.to_vector(), model.weight.to_vector());
  }
  EXPECT_EQ(scaler.get_scale(), 131072);  // doubled by the fourth update, halved by the fifth
}

}  // namespace
}  // namespace tenet
