#include "measure.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <stdexcept>

namespace bench {

namespace {

constexpr double warm_seconds = 0.02, sample_seconds = 0.005;

double median(std::vector<double> v) {
  const auto middle = v.begin() + std::ptrdiff_t(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return v.size() % 2 ? *middle : (*middle + *std::max_element(v.begin(), middle)) / 2;
}

double now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// One side of a pair.
class Side {
 public:
  Side(const Run& run, clockid_t clock) : run_(run), clock_(clock) {
    result_ = run_();
    result_ += run_();
    long runs = 0;
    double spent = 0;
    do {
      const long more = std::max(runs, 1L);
      spent += seconds(more);
      runs += more;
    } while (spent < warm_seconds);
    runs_ = std::max(1L, std::lround(sample_seconds * double(runs) / spent));
  }

  /// The numbers of the first two runs, added: the second sees what a step of training changed.
  double result() const { return result_; }
  const std::vector<double>& samples() const { return samples_; }

  /// Notes the seconds of a run. Short runs find what the other side left in the caches, so one goes ahead untimed.
  void sample() {
    if (runs_ > 1) run_();
    samples_.push_back(seconds(runs_) / double(runs_));
  }

 private:
  double seconds(long runs) const {
    const double begin = now(clock_);
    double sum = 0;
    for (long i = 0; i < runs; ++i) sum += run_();
    sink = sum;
    return now(clock_) - begin;
  }

  static inline volatile double sink;
  const Run& run_;
  clockid_t clock_;
  double result_;
  long runs_;
  std::vector<double> samples_;
};

void compare(const Work& work, double tenet, double peer) {
  if (std::abs(tenet - peer) <= work.tolerance * (1 + std::abs(peer))) return;
  throw std::runtime_error(work.name + ": tenet gives " + std::to_string(tenet) + ", the peer " + std::to_string(peer));
}

/// Rates end in "/s"; else the unit is a microsecond.
double in_unit(const Work& work, double seconds) {
  const bool rate = work.unit.size() > 2 && work.unit.compare(work.unit.size() - 2, 2, "/s") == 0;
  return rate ? work.amount / seconds : 1e6 * seconds / work.amount;
}

}  // namespace

Measured measure(const Work& work, const Run& tenet, const Run& peer, int pairs, int threads) {
  const clockid_t clock = threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
  Side a(tenet, clock), b(peer, clock);
  compare(work, a.result(), b.result());
  std::vector<double> ratios;
  for (int i = 0; i < pairs; ++i) {
    Side& early = i % 2 ? b : a;
    Side& late = i % 2 ? a : b;
    early.sample();
    late.sample();
    ratios.push_back(b.samples().back() / a.samples().back());
  }
  return {in_unit(work, median(a.samples())), in_unit(work, median(b.samples())), median(ratios)};
}

}  // namespace bench
