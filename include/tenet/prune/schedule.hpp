// Pruning step by step while a model trains.
#pragma once

#include <tenet/prune/methods.hpp>

#include <algorithm>

namespace tenet::prune {

struct GradualMagnitudeOptions {
  double sparsity;              ///< in the end: the part of the weights that is pruned, in [0, 1]
  std::int64_t end;             ///< the step that reaches it
  std::int64_t begin = 0;       ///< the step that prunes first
  std::int64_t frequency = 1;   ///< steps from one pruning to the next
  double initial_sparsity = 0;  ///< at `begin`
  bool global = false;          ///< all weights taken together, instead of each by itself
};

/// Gradual magnitude pruning: with t the part of the way from `begin` to `end`, the elements of least magnitude go
/// until sparsity + (initial_sparsity - sparsity) (1 - t)^3 of the weights are pruned. The model trains between the
/// steps and may go on after the last:
///   prune::GradualMagnitude pruning(prune::weights(model), {.sparsity = 0.9, .end = 1000, .frequency = 50});
///   for (...) { ...; optimizer.step(); pruning.step(); }
/// The layers have to outlive it. Zhu and Gupta, "To prune, or not to prune", 2017.
template <class T = float>
class GradualMagnitude {
 public:
  /// Throws Error for sparsities outside [0, 1], a frequency < 1, or unless 0 <= begin <= end.
  TENET_TAG GradualMagnitude(std::vector<nn::Weight<T>*> weights, const GradualMagnitudeOptions& options)
      : weights_(std::move(weights)), o_(options) {
    for (const double s : {o_.sparsity, o_.initial_sparsity}) {
      if (!(s >= 0 && s <= 1)) throw Error(text({"GradualMagnitude: expected a sparsity in [0, 1], got ", s}));
    }
    if (o_.frequency < 1) throw Error(text({"GradualMagnitude: expected a frequency >= 1, got ", o_.frequency}));
    if (o_.begin < 0 || o_.end < o_.begin) {
      throw Error(text({"GradualMagnitude: expected 0 <= begin <= end, got ", o_.begin, " and ", o_.end}));
    }
  }

  /// The next step: call it after the optimizer's. Prunes if it is time. Weights that are sparser already stay so.
  TENET_TAG void step() {
    const std::int64_t n = step_++;
    if (n < o_.begin || n > o_.end || ((n - o_.begin) % o_.frequency && n != o_.end)) return;
    if (o_.global) return prune(weights_, target(n));
    for (nn::Weight<T>* weight : weights_) prune(std::vector<nn::Weight<T>*>{weight}, target(n));
  }
  /// Goes to step `n` >= 0, as when training is resumed; the masks are the model's. Throws Error for n < 0.
  TENET_TAG void set_step(std::int64_t n) {
    if (n < 0) throw Error(text({"GradualMagnitude: expected a step >= 0, got ", n}));
    step_ = n;
  }
  TENET_TAG std::int64_t current_step() const { return step_; }
  /// The part of the weights that is to be pruned after step `n`.
  TENET_TAG double target(std::int64_t n) const {
    if (n < o_.begin) return 0;
    if (n >= o_.end) return o_.sparsity;
    const double left = double(o_.end - n) / double(o_.end - o_.begin);
    return o_.sparsity + (o_.initial_sparsity - o_.sparsity) * left * left * left;
  }

 private:
  TENET_TAG static void prune(std::vector<nn::Weight<T>*> weights, double sparsity) {
    std::int64_t all = 0, pruned = 0;
    for (auto at = weights.begin(); at != weights.end(); ++at) {
      const nn::Weight<T>* w = *at;
      const auto tied = [&](const nn::Weight<T>* o) { return o->is(*w); };
      if (std::any_of(weights.begin(), at, tied)) continue;
      all += w->numel();
      const auto* format = dynamic_cast<const Masked<T>*>(w->format());
      if (format) pruned += w->numel() - count_nonzero(format->mask).item();
    }
    const std::int64_t missing = Amount(sparsity).of("GradualMagnitude", all) - pruned;
    if (missing > 0) global_unstructured<T>(weights, {.amount = missing});
  }

  std::vector<nn::Weight<T>*> weights_;
  GradualMagnitudeOptions o_;
  std::int64_t step_ = 0;
};

}  // namespace tenet::prune
