#include <tenet/optim/schedule.hpp>
#include <tenet/optim/sgd.hpp>

#include "message.hpp"
#include "optim/paths.hpp"

namespace tenet {
namespace {

using namespace optim;

SGD make_optimizer(double lr = 0.1) { return SGD({ones({1}).requires_grad_()}, {.lr = lr}); }

/// The rates of `n` steps, from the one that the schedule begins with.
std::vector<double> rates(LRScheduler& schedule, int n) {
  std::vector<double> all;
  for (int i = 0; i < n; ++i) {
    if (i) schedule.step();
    all.push_back(schedule.lr());
  }
  return all;
}

template <class S, class Options>
void expect_reference(const char* name, const Options& options) {
  SCOPED_TRACE(name);
  const std::vector<double> want = test::read_reference("optim.txt", name).output.to_vector();
  SGD optimizer = make_optimizer();
  S schedule(optimizer, options);
  test::expect_near(rates(schedule, int(want.size())), want, 1e-12);
  // Any step can be gone to.
  SGD other = make_optimizer();
  S resumed(other, options);
  for (const std::int64_t n : {5, 11, 0, 3}) {
    resumed.set_step(n);
    EXPECT_EQ(resumed.current_step(), n);
    EXPECT_NEAR(other.lr(), want[std::size_t(n)], 1e-12);
  }
  resumed.step();
  EXPECT_NEAR(other.lr(), want[4], 1e-12);
}

TEST(Schedules, FollowPyTorch) {
  expect_reference<StepLR>("step", StepLROptions{.step_size = 3, .gamma = 0.5});
  expect_reference<MultiStepLR>("multi_step", MultiStepLROptions{.milestones = {5, 2, 6}, .gamma = 0.3});
  expect_reference<ExponentialLR>("exponential", ExponentialLROptions{.gamma = 0.9});
  expect_reference<CosineAnnealingLR>("cosine", CosineAnnealingLROptions{.T_max = 7, .eta_min = 0.01});
  expect_reference<CosineAnnealingWarmRestarts>(
      "restarts", CosineAnnealingWarmRestartsOptions{.T_0 = 2, .T_mult = 2, .eta_min = 0.01});
  expect_reference<CosineAnnealingWarmRestarts>("restarts_equal", CosineAnnealingWarmRestartsOptions{.T_0 = 3});
  expect_reference<OneCycleLR>("one_cycle", OneCycleLROptions{.max_lr = 0.3, .total_steps = 12});
  expect_reference<OneCycleLR>(
      "one_cycle_options",
      OneCycleLROptions{.max_lr = 0.3, .total_steps = 12, .pct_start = 0.6, .div_factor = 10, .final_div_factor = 100});
}

TEST(Schedules, BeginWithTheirFirstRate) {
  SGD a = make_optimizer(0.5);
  CosineAnnealingWarmRestarts restarts(a, {.T_0 = 1, .T_mult = 2});
  test::expect_near(rates(restarts, 8), {.5, .5, .25, .5, .426777, .25, .073223, .5}, 1e-6);
  SGD b = make_optimizer();
  ExponentialLR exponential(b, {.gamma = 0.5});
  test::expect_near(rates(exponential, 3), {.1, .05, .025}, 1e-12);
  SGD c = make_optimizer();
  CosineAnnealingLR cosine(c, {.T_max = 4});
  test::expect_near(rates(cosine, 5), {.1, .085355, .05, .014645, 0}, 1e-6);
}

TEST(Schedules, OneCycleEnds) {
  SGD optimizer = make_optimizer();
  OneCycleLR schedule(optimizer, {.max_lr = 0.1, .total_steps = 10});
  const std::vector<double> all = rates(schedule, 10);
  test::expect_near({all.begin(), all.begin() + 4}, {.004, .052, .1, .095048}, 1e-6);
  EXPECT_NEAR(all[9], 4e-7, 1e-15);
  schedule.step();  // that of the last batch, as loops are written
  EXPECT_NEAR(schedule.lr(), 4e-7, 1e-15);
  EXPECT_EQ(test::message([&] { schedule.step(); }), "OneCycleLR: step 11 is past the 10 steps it was made for");
  EXPECT_NEAR(schedule.lr(), 4e-7, 1e-15);
  EXPECT_EQ(schedule.current_step(), 10);
}

TEST(Schedules, OneCycleOfAnyProportions) {
  for (const double part : {0., 0.1, 0.25, 0.5, 1.}) {
    for (const std::int64_t steps : {1, 2, 4, 10}) {
      SGD optimizer = make_optimizer();
      OneCycleLR schedule(optimizer, {.max_lr = 0.1, .total_steps = steps, .pct_start = part});
      for (const double lr : rates(schedule, int(steps) + 1)) EXPECT_TRUE(lr > 0 && lr <= 0.1) << part << " " << lr;
    }
  }
}

TEST(Schedules, WarmUpIsAStraightLine) {
  SGD optimizer = make_optimizer(1);
  StepLR schedule(optimizer, {.step_size = 2, .gamma = 0.5, .warmup = 4, .warmup_start = 0.2});
  test::expect_near(rates(schedule, 9), {0.2, 0.4, 0.6, 0.8, 1, 1, 0.5, 0.5, 0.25}, 1e-12);
  schedule.set_step(2);
  EXPECT_NEAR(optimizer.lr(), 0.6, 1e-12);
  SGD other = make_optimizer(1);
  CosineAnnealingLR cosine(other, {.T_max = 2, .warmup = 2, .warmup_start = 0});
  test::expect_near(rates(cosine, 5), {0, 0.5, 1, 0.5, 0}, 1e-12);
}

TEST(Schedules, EachGroupHasItsRate) {
  SGD optimizer = make_optimizer(1);
  optimizer.add_param_group({ones({2}).requires_grad_()}, {.lr = 0.2});
  ExponentialLR schedule(optimizer, {.gamma = 0.5});
  schedule.step();
  EXPECT_DOUBLE_EQ(optimizer.lr(0), 0.5);
  EXPECT_DOUBLE_EQ(optimizer.lr(1), 0.1);
  EXPECT_DOUBLE_EQ(schedule.lr(1), 0.1);
}

TEST(Schedules, GoOnAfterALoadedState) {
  SGD before = make_optimizer(1);
  ExponentialLR first(before, {.gamma = 0.5});
  first.set_step(3);
  SGD after = make_optimizer(1);
  ExponentialLR second(after, {.gamma = 0.5});
  after.load_state_dict(before.state_dict());
  EXPECT_EQ(after.lr(), 0.125);
  second.set_step(3);
  EXPECT_EQ(after.lr(), 0.125);
  second.step();
  EXPECT_EQ(after.lr(), 0.0625);
}

TEST(Schedules, WrongOptionsAreErrors) {
  SGD o = make_optimizer();
  EXPECT_EQ(test::message([&] { StepLR(o, {.step_size = 0}); }), "StepLR: expected step_size >= 1, got 0");
  EXPECT_THROW(StepLR(o, {.step_size = 1, .warmup = -1}), Error);
  EXPECT_THROW(CosineAnnealingLR(o, {.T_max = 0}), Error);
  EXPECT_THROW(CosineAnnealingWarmRestarts(o, {.T_0 = 0}), Error);
  EXPECT_THROW(CosineAnnealingWarmRestarts(o, {.T_0 = 1, .T_mult = 0}), Error);
  EXPECT_THROW(OneCycleLR(o, {.max_lr = 1, .total_steps = 0}), Error);
  EXPECT_THROW(OneCycleLR(o, {.max_lr = 1, .total_steps = 5, .pct_start = 1.5}), Error);
  StepLR schedule(o, {.step_size = 1});
  EXPECT_THROW(schedule.set_step(-1), Error);
  EXPECT_EQ(o.lr(), 0.1);
}

}  // namespace
}  // namespace tenet
