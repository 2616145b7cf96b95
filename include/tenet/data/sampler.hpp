// Which examples a batch holds.
#pragma once

#include <tenet/core/random.hpp>

#include <algorithm>
#include <span>

namespace tenet::data {
inline namespace TENET_CONFIG {

/// 0, 1, ..., size - 1.
inline Tensor<std::int64_t> sequential_order(std::int64_t size) { return arange<std::int64_t>(size); }

/// The numbers of [0, size) in an order that depends on `seed` and `epoch` only.
inline Tensor<std::int64_t> random_order(std::int64_t size, std::uint64_t seed, std::uint64_t epoch) {
  Generator generator(philox(seed, epoch).word64(0));
  return randperm(size, generator);
}

/// Rank `rank`'s share of an order, for batches of `batch_size` on each of `ranks` workers: batch b of all ranks
/// together is batch b of one worker with batches of batch_size * ranks. The last one is split evenly, or left out with
/// `drop_last` if it is not whole; every rank gets as many batches as the others, and, where the last one has fewer
/// examples than there are ranks, those without one take its first.
inline Tensor<std::int64_t> rank_order(const Tensor<std::int64_t>& order, std::int64_t batch_size, bool drop_last,
                                       std::int64_t rank, std::int64_t ranks) {
  const std::int64_t n = order.numel(), whole = n / batch_size / ranks, left = n - whole * ranks * batch_size;
  const std::int64_t each = left / ranks, begin = n - left + rank * each + std::min(rank, left % ranks);
  const std::int64_t last = drop_last ? 0 : each + (rank < left % ranks);
  const bool repeats = !drop_last && left > 0 && last == 0;
  const Tensor<std::int64_t> out = empty<std::int64_t>({whole * batch_size + last + repeats});
  std::int64_t* to = out.data();
  for (std::int64_t b = 0; b < whole; ++b) {
    to = std::copy_n(order.data() + (b * ranks + rank) * batch_size, batch_size, to);
  }
  std::copy_n(order.data() + (repeats ? n - left : begin), last + repeats, to);
  return out;
}

/// Cuts an order into batches of `batch_size`; the last may be smaller, unless `drop_last`.
class Batches {
 public:
  Batches(Tensor<std::int64_t> order, std::int64_t batch_size, bool drop_last)
      : order_(std::move(order)), batch_size_(batch_size), size_(count(order_.numel(), batch_size, drop_last)) {}

  /// How many batches `examples` make.
  static std::int64_t count(std::int64_t examples, std::int64_t batch_size, bool drop_last) {
    return examples / batch_size + (!drop_last && examples % batch_size != 0);
  }

  std::int64_t size() const { return size_; }
  /// The indices of batch `b`, in [0, size()).
  std::span<const std::int64_t> operator[](std::int64_t b) const {
    const std::int64_t begin = b * batch_size_, left = order_.numel() - begin;
    return {order_.data() + begin, std::size_t(left < batch_size_ ? left : batch_size_)};
  }

 private:
  Tensor<std::int64_t> order_;
  std::int64_t batch_size_, size_;
};

}  // namespace TENET_CONFIG
}  // namespace tenet::data
