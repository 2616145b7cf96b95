// Learning rates over time. Each schedule is a closed form of the step count and of the rates that the optimizer had
// when the schedule was made, so that it can be resumed at any step: make it, then load the optimizer's state, then
// call set_step(). `warmup` steps raise the rate linearly from `warmup_start` times what it will be; the schedule
// begins after them. See torch.optim.lr_scheduler.
#pragma once

#include <tenet/optim/optimizer.hpp>

#include <cmath>
#include <numbers>

namespace tenet::optim {

/// Base of schedules: sets the optimizer's learning rates when made and at every step().
class LRScheduler {
 public:
  TENET_TAG virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  /// The next step: call it after the optimizer's. Throws Error where the schedule asks for a rate that is negative or
  /// NaN.
  TENET_TAG void step() { set_step(step_ + 1); }
  /// Goes to step `n` >= 0, as when training is resumed.
  TENET_TAG void set_step(std::int64_t n) {
    if (n < 0) throw Error(text({"LRScheduler: expected a step >= 0, got ", n}));
    for (std::size_t g = 0; g < base_.size(); ++g) optimizer_.set_lr(at(n, base_[g]), g);
    step_ = n;
  }
  TENET_TAG std::int64_t current_step() const { return step_; }
  TENET_TAG double lr(std::size_t group = 0) const { return optimizer_.lr(group); }

 protected:
  TENET_TAG LRScheduler(Optimizer& optimizer, std::int64_t warmup, double warmup_start)
      : optimizer_(optimizer), warmup_(warmup), warmup_start_(warmup_start) {
    if (warmup < 0) throw Error(text({"LRScheduler: expected warmup >= 0, got ", warmup}));
    for (std::size_t g = 0; g < optimizer.num_groups(); ++g) base_.push_back(optimizer.lr(g));
  }
  /// The rate at step `t` of the schedule itself, for a group that began with `base`.
  virtual double rate(std::int64_t t, double base) const = 0;

 private:
  TENET_TAG double at(std::int64_t n, double base) const {
    if (n >= warmup_) return rate(n - warmup_, base);
    return rate(0, base) * (warmup_start_ + (1 - warmup_start_) * double(n) / double(warmup_));
  }

  Optimizer& optimizer_;
  std::vector<double> base_;
  std::int64_t warmup_, step_ = 0;
  double warmup_start_;
};

struct StepLROptions {
  std::int64_t step_size;  ///< steps between two falls
  double gamma = 0.1;
  std::int64_t warmup = 0;
  double warmup_start = 1.0 / 3;
};

/// lr = base * gamma ^ floor(t / step_size). Throws Error for step_size < 1.
class StepLR final : public LRScheduler {
 public:
  TENET_TAG StepLR(Optimizer& optimizer, const StepLROptions& options)
      : LRScheduler(optimizer, options.warmup, options.warmup_start), o_(options) {
    if (o_.step_size < 1) throw Error(text({"StepLR: expected step_size >= 1, got ", o_.step_size}));
    set_step(0);
  }

 private:
  TENET_TAG double rate(std::int64_t t, double base) const override {
    return base * std::pow(o_.gamma, double(t / o_.step_size));
  }
  StepLROptions o_;
};

struct MultiStepLROptions {
  std::vector<std::int64_t> milestones;  ///< steps at which the rate falls, in any order
  double gamma = 0.1;
  std::int64_t warmup = 0;
  double warmup_start = 1.0 / 3;
};

/// lr = base * gamma ^ (the number of milestones <= t).
class MultiStepLR final : public LRScheduler {
 public:
  TENET_TAG MultiStepLR(Optimizer& optimizer, MultiStepLROptions options)
      : LRScheduler(optimizer, options.warmup, options.warmup_start), o_(std::move(options)) {
    set_step(0);
  }

 private:
  TENET_TAG double rate(std::int64_t t, double base) const override {
    int passed = 0;
    for (const std::int64_t m : o_.milestones) passed += m <= t;
    return base * std::pow(o_.gamma, passed);
  }
  MultiStepLROptions o_;
};

struct ExponentialLROptions {
  double gamma;
  std::int64_t warmup = 0;
  double warmup_start = 1.0 / 3;
};

/// lr = base * gamma ^ t.
class ExponentialLR final : public LRScheduler {
 public:
  TENET_TAG ExponentialLR(Optimizer& optimizer, const ExponentialLROptions& options)
      : LRScheduler(optimizer, options.warmup, options.warmup_start), o_(options) {
    set_step(0);
  }

 private:
  TENET_TAG double rate(std::int64_t t, double base) const override { return base * std::pow(o_.gamma, double(t)); }
  ExponentialLROptions o_;
};

struct CosineAnnealingLROptions {
  std::int64_t T_max;  ///< steps from the base rate to eta_min
  double eta_min = 0;
  std::int64_t warmup = 0;
  double warmup_start = 1.0 / 3;
};

/// lr = eta_min + (base - eta_min) (1 + cos(pi t / T_max)) / 2. Loshchilov and Hutter, "SGDR", 2017. Throws Error
/// for T_max < 1.
class CosineAnnealingLR final : public LRScheduler {
 public:
  TENET_TAG CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options)
      : LRScheduler(optimizer, options.warmup, options.warmup_start), o_(options) {
    if (o_.T_max < 1) throw Error(text({"CosineAnnealingLR: expected T_max >= 1, got ", o_.T_max}));
    set_step(0);
  }

 private:
  TENET_TAG double rate(std::int64_t t, double base) const override {
    return o_.eta_min + (base - o_.eta_min) * (1 + std::cos(std::numbers::pi * double(t) / double(o_.T_max))) / 2;
  }
  CosineAnnealingLROptions o_;
};

struct CosineAnnealingWarmRestartsOptions {
  std::int64_t T_0;         ///< steps of the first fall
  std::int64_t T_mult = 1;  ///< each further one takes so many times longer
  double eta_min = 0;
  std::int64_t warmup = 0;
  double warmup_start = 1.0 / 3;
};

/// Cosine falls from the base rate to eta_min, again and again. Loshchilov and Hutter, "SGDR", 2017. Throws Error
/// for T_0 or T_mult < 1.
class CosineAnnealingWarmRestarts final : public LRScheduler {
 public:
  TENET_TAG CosineAnnealingWarmRestarts(Optimizer& optimizer, const CosineAnnealingWarmRestartsOptions& options)
      : LRScheduler(optimizer, options.warmup, options.warmup_start), o_(options) {
    if (o_.T_0 < 1 || o_.T_mult < 1) {
      throw Error(
          text({"CosineAnnealingWarmRestarts: expected T_0 and T_mult >= 1, got ", o_.T_0, " and ", o_.T_mult}));
    }
    set_step(0);
  }

 private:
  TENET_TAG double rate(std::int64_t t, double base) const override {
    std::int64_t length = o_.T_0;
    if (o_.T_mult == 1) t %= length;
    else
      for (; t >= length; length *= o_.T_mult) t -= length;
    return o_.eta_min + (base - o_.eta_min) * (1 + std::cos(std::numbers::pi * double(t) / double(length))) / 2;
  }
  CosineAnnealingWarmRestartsOptions o_;
};

struct OneCycleLROptions {
  double max_lr;
  std::int64_t total_steps;
  double pct_start = 0.3;         ///< the part of the steps in which the rate rises
  double div_factor = 25;         ///< it starts at max_lr / div_factor
  double final_div_factor = 1e4;  ///< and ends at that over final_div_factor
};

/// Rises to max_lr and falls to almost nothing, both along a cosine; one step a batch, `total_steps` in all. One more
/// throws Error. The momentum stays as it is. Smith and Topin, "Super-convergence", 2018.
class OneCycleLR final : public LRScheduler {
 public:
  TENET_TAG OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options)
      : LRScheduler(optimizer, 0, 1), o_(options) {
    if (o_.total_steps < 1 || !(o_.pct_start >= 0 && o_.pct_start <= 1)) {
      throw Error(text({"OneCycleLR: expected total_steps >= 1 and pct_start in [0, 1], got ", o_.total_steps, " and ",
                        o_.pct_start}));
    }
    set_step(0);
  }

 private:
  TENET_TAG double rate(std::int64_t t, double) const override {
    if (t > o_.total_steps) {
      throw Error(text({"OneCycleLR: step ", t, " is past the ", o_.total_steps, " steps it was made for"}));
    }
    const double first = o_.max_lr / o_.div_factor, last = first / o_.final_div_factor;
    const double peak = o_.pct_start * double(o_.total_steps) - 1, end = double(o_.total_steps) - 1, now = double(t);
    if (now <= peak) return peak > 0 ? between(first, o_.max_lr, now / peak) : o_.max_lr;
    return now < end ? between(o_.max_lr, last, (now - peak) / (end - peak)) : last;
  }
  TENET_TAG static double between(double from, double to, double part) {
    return to + (from - to) * (1 + std::cos(std::numbers::pi * part)) / 2;
  }
  OneCycleLROptions o_;
};

}  // namespace tenet::optim
