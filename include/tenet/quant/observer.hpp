// Observers: they watch the values of a layer's input, and tell what to quantize them by.
#pragma once

#include <tenet/quant/affine.hpp>

#include <algorithm>
#include <vector>

namespace tenet::quant {

/// How the bounds of the quantized values follow from those that were seen.
enum class Calibration {
  min_max,         ///< the least and the greatest
  moving_average,  ///< exponential averages of each batch's least and greatest
  histogram,       ///< the bounds of least squared error, searched from the outside in
  entropy,         ///< the bounds of least information lost, by the Kullback-Leibler divergence
  percentile       ///< the bounds of most of the values
};

struct ObserverOptions {
  Calibration method = Calibration::histogram;
  double averaging_constant = 0.01;  ///< moving_average: the part of a new batch
  int bins = 2048;                   ///< of the histogram
  double percentile = 99.99;         ///< of the values lie within the bounds
};

inline namespace TENET_CONFIG {

/// Counts of values in bins of one width. The bounds grow with the values; earlier counts are then spread evenly.
template <class T = float>
class Histogram {
  static_assert(std::is_same_v<T, float>);

 public:
  explicit Histogram(int bins) : counts_(std::size_t(bins)) {}

  T low() const { return low_; }
  T high() const { return high_; }
  const std::vector<double>& counts() const { return counts_; }
  double width() const { return (double(high_) - double(low_)) / double(counts_.size()); }

  /// Values within [low, high].
  void add(const T* x, std::int64_t n, T low, T high) {
    if (empty_) low_ = low, high_ = high, empty_ = false;
    else if (low < low_ || high > high_) grow(std::min(low, low_), std::max(high, high_));
    const double scale = high_ > low_ ? double(counts_.size()) / (double(high_) - double(low_)) : 0;
    const std::size_t last = counts_.size() - 1;
    for (std::int64_t i = 0; i < n; ++i) {
      ++counts_[std::min(std::size_t((double(x[i]) - double(low_)) * scale), last)];
    }
  }

 private:
  void grow(T low, T high) {
    std::vector<double> old(counts_.size());
    old.swap(counts_);
    const double old_width = (double(high_) - double(low_)) / double(old.size()), old_low = low_;
    low_ = low, high_ = high;
    const double bin = width();
    for (std::size_t i = 0; i < old.size(); ++i) {
      const double begin = (old_low + old_width * double(i) - low) / bin, end = begin + old_width / bin;
      auto b = std::min(std::size_t(begin), counts_.size() - 1);
      if (old_width == 0) counts_[b] += old[i];
      for (; b < counts_.size() && double(b) < end && old_width > 0; ++b) {
        const double part = std::min(end, double(b + 1)) - std::max(begin, double(b));
        if (part > 0) counts_[b] += old[i] * part / (end - begin);
      }
    }
  }

  std::vector<double> counts_;
  T low_ = 0, high_ = 0;
  bool empty_ = true;
};

namespace detail {

/// Bins [begin, end) of a histogram.
struct BinRange {
  std::size_t begin, end;
};

/// Squared error of values that lie evenly in their bins when bins [r.begin, r.end) are cut into `levels` steps.
template <class T>
double squared_error(const std::vector<T>& counts, BinRange r, int levels) {
  const double step = double(r.end - r.begin) / levels;
  const auto integral = [](double a, double b) { return (b * b * b - a * a * a) / 3; };
  const auto level = [&](double x) { return std::min(std::max(std::floor(x / step), 0.0), double(levels - 1)); };
  double error = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double begin = double(i) - double(r.begin), end = begin + 1, first = level(begin), last = level(end);
    error += counts[i] *
             (integral(begin - (first + 0.5) * step, step / 2) + (last - first - 1) * integral(-step / 2, step / 2) +
              integral(-step / 2, end - (last + 0.5) * step));
  }
  return error;
}

/// The bins of least squared error: the side that leaves more bins without values is cut first, as long as it pays.
/// See torch.ao.quantization.observer.HistogramObserver.
template <class T>
BinRange least_error(const std::vector<T>& counts, int levels) {
  std::vector<T> sums(counts);
  for (std::size_t i = 1; i < sums.size(); ++i) sums[i] += sums[i - 1];
  const double total = sums.back(), step = 1e-5;
  double alpha = 0, beta = 1, least = std::numeric_limits<double>::infinity();
  std::size_t first = 0, last = counts.size() - 1;
  while (alpha < beta) {
    std::size_t left = first, right = last;
    while (left < last && sums[left] < (alpha + step) * total) ++left;
    while (right > first && sums[right] > (beta - step) * total) --right;
    BinRange next{first, last};
    if (left - first > last - right) next.begin = left, alpha += step;
    else next.end = right, beta -= step;
    if (next.begin == first && next.end == last) continue;
    const double error = squared_error(counts, {next.begin, next.end + 1}, levels);
    if (error > least) break;
    least = error, first = next.begin, last = next.end;
  }
  return {first, last + 1};
}

/// The information lost when bins [r.begin, r.end), which the values outside are moved to, are merged to `levels`.
template <class T>
double divergence(const std::vector<T>& counts, BinRange r, int levels) {
  const std::size_t n = r.end - r.begin;
  std::vector<T> p(counts.begin() + std::ptrdiff_t(r.begin), counts.begin() + std::ptrdiff_t(r.end));
  const std::vector<T> inside = p;
  for (std::size_t i = 0; i < r.begin; ++i) p.front() += counts[i];
  for (std::size_t i = r.end; i < counts.size(); ++i) p.back() += counts[i];
  double total = 0, total_inside = 0;
  for (std::size_t i = 0; i < n; ++i) total += p[i], total_inside += inside[i];
  if (total_inside == 0) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (int level = 0; level < levels; ++level) {
    const std::size_t begin = n * std::size_t(level) / std::size_t(levels);
    const std::size_t end = n * std::size_t(level + 1) / std::size_t(levels);
    double merged = 0, used = 0;
    for (std::size_t i = begin; i < end; ++i) merged += inside[i], used += p[i] > 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (p[i] == 0) continue;
      const double q = std::max(merged / used / total_inside, 1e-12);
      sum += p[i] / total * std::log(p[i] / total / q);
    }
  }
  return sum;
}

/// Bins whose ends lie at most `reach` bins from `zero`, which has a place among them or at their ends.
inline BinRange around(std::size_t bins, double zero, double reach) {
  const double begin = std::max(0.0, std::floor(zero - reach)), end = std::min(double(bins), std::ceil(zero + reach));
  return {std::size_t(begin), std::max(std::size_t(begin) + 1, std::size_t(end))};
}

/// The bins around 0 that lose least information. 0 is exact within any bounds: how often it comes does not count.
template <class T>
BinRange least_divergence(std::vector<T> counts, double zero, int levels) {
  const std::size_t bins = counts.size(), at = std::min(std::size_t(zero), bins - 1);
  counts[at] = std::min(counts[at], counts[at + 1 < bins ? at + 1 : at - 1]);
  const double most = std::max(zero, double(bins) - zero);
  BinRange best{0, bins};
  double least = divergence(counts, best, levels);
  for (double reach = most * 0.995; reach > most / 16; reach -= most / 200) {
    const BinRange r = around(bins, zero, reach);
    if (r.end - r.begin < std::size_t(levels)) break;
    const double d = divergence(counts, r, levels);
    if (d < least) least = d, best = r;
  }
  return best;
}

/// The bins that hold `part` of the values, as many missing below as above.
template <class T>
BinRange middle(const std::vector<T>& counts, double part) {
  double total = 0;
  for (double c : counts) total += c;
  const double cut = total * (1 - part) / 2;
  BinRange r{0, counts.size()};
  for (double sum = counts[r.begin]; sum <= cut && r.begin + 1 < r.end; sum += counts[r.begin]) ++r.begin;
  for (double sum = counts[r.end - 1]; sum <= cut && r.begin + 1 < r.end; sum += counts[r.end - 1]) --r.end;
  return r;
}

}  // namespace detail

/// Watches batches of values by one of the methods. See torch.ao.quantization.observer.
template <class T = float>
class Observer {
  static_assert(std::is_same_v<T, float>, "observers watch tensors of float");

 public:
  /// Throws Error for options out of range.
  explicit Observer(const ObserverOptions& options = {}) : options_(options), histogram_(checked(options)) {}

  /// Takes up the values of a batch; an empty one is nothing. Throws Error if a value is not finite.
  void observe(const Tensor<T>& x) {
    if (x.numel() == 0) return;
    const Tensor<T> from = packed(x);
    const cpu::Bounds b = detail::bounds("observe", from);
    if (!seen_) {
      low_ = b.low, high_ = b.high;
    } else if (options_.method == Calibration::moving_average) {
      const T part = T(options_.averaging_constant);
      low_ += part * (b.low - low_), high_ += part * (b.high - high_);
    } else {
      low_ = std::min(low_, b.low), high_ = std::max(high_, b.high);
    }
    seen_ = true;
    if (has_histogram(options_)) histogram_.add(from.data(), from.numel(), b.low, b.high);
  }

  bool seen() const { return seen_; }
  T low() const { return low_; }    ///< of the values seen
  T high() const { return high_; }  ///< of the values seen

  /// The bounds to quantize within. Throws Error if no value was seen.
  cpu::Bounds bounds(int levels = 256) const {
    if (!seen_) throw Error("observer: has seen no values: run the model on some data first");
    if (!has_histogram(options_) || !(low_ < high_)) return {low_, high_, true};
    const std::vector<double>& counts = histogram_.counts();
    detail::BinRange r{};
    switch (options_.method) {
      case Calibration::histogram: r = detail::least_error(counts, levels); break;
      case Calibration::entropy:
        r = detail::least_divergence(
            counts, std::min(std::max(-double(low_) / histogram_.width(), 0.0), double(counts.size())), levels - 1);
        break;
      default: r = detail::middle(counts, options_.percentile / 100);
    }
    const double width = histogram_.width();
    return {T(double(low_) + width * double(r.begin)), T(double(low_) + width * double(r.end)), true};
  }
  QuantParams params(Levels levels = uint8_levels, bool symmetric = false) const {
    detail::check_levels("observer", levels);
    const cpu::Bounds b = bounds(levels.high - levels.low + 1);
    return choose_qparams(b.low, b.high, levels, symmetric);
  }

 private:
  static bool has_histogram(const ObserverOptions& o) {
    return o.method != Calibration::min_max && o.method != Calibration::moving_average;
  }
  static int checked(const ObserverOptions& o) {
    if (o.bins < 256 || o.bins > (1 << 20)) throw Error(text({"observer: expected 256 to 2^20 bins, got ", o.bins}));
    if (!(o.averaging_constant > 0 && o.averaging_constant <= 1)) {
      throw Error(text({"observer: expected an averaging constant in (0, 1], got ", o.averaging_constant}));
    }
    if (!(o.percentile > 0 && o.percentile <= 100)) {
      throw Error(text({"observer: expected a percentile in (0, 100], got ", o.percentile}));
    }
    return has_histogram(o) ? o.bins : 0;
  }

  ObserverOptions options_;
  Histogram<T> histogram_;
  T low_ = 0, high_ = 0;
  bool seen_ = false;
};

}  // namespace TENET_CONFIG
}  // namespace tenet::quant
