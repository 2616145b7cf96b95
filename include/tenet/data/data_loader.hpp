// DataLoader: an epoch's batches, one after the other.
//
//   DataLoader loader(dataset, {.batch_size = 64, .shuffle = true, .workers = 2});
//   for (auto& [inputs, labels] : loader) ...
#pragma once

#include <tenet/data/dataset.hpp>
#include <tenet/data/prefetch.hpp>
#include <tenet/data/sampler.hpp>

#include <cstddef>
#include <iterator>
#include <memory>

namespace tenet::data {

struct DataLoaderOptions {
  std::int64_t batch_size = 1;
  bool shuffle = false;    ///< another order every epoch
  std::uint64_t seed = 0;  ///< with the epoch, all that the order depends on
  int workers = 0;         ///< threads that load; 0: the one that asks does
  int prefetch = 2;        ///< batches each worker may be ahead
  bool drop_last = false;  ///< leave out a last batch of fewer examples
  int rank = 0;  ///< of `ranks` workers with a loader each, which read parts of the same batches: see rank_order
  int ranks = 1;
};

/// The batches of a data set. Each begin() starts an epoch; the batches are the same for any number of workers.
/// A batch is what get_batch() of the data set makes, by default tensors of the examples (see collate). An
/// exception of the data set arrives, as it is, where its batch would have; the next epoch starts afresh.
/// The loader must not be moved or destroyed while an epoch is read.
template <class D>
class DataLoader {
 public:
  using Batch = batch_t<D>;

  /// Throws Error unless batch_size and prefetch are positive and workers is in [0, max_threads].
  TENET_TAG TENET_COLD explicit DataLoader(D dataset, const DataLoaderOptions& options = {})
      : dataset_(std::move(dataset)), options_(options) {
    if (options.batch_size < 1 || options.prefetch < 1 || options.workers < 0 || options.workers > max_threads) {
      throw Error(text({"data_loader: expected batch_size >= 1, prefetch >= 1 and 0 to ", max_threads, " workers, got ",
                        options.batch_size, ", ", options.prefetch, " and ", options.workers}));
    }
    if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks) {
      throw Error(text({"data_loader: expected a rank in [0, ", options.ranks, "), got ", options.rank}));
    }
  }

  /// The number of batches in an epoch.
  TENET_TAG std::int64_t size() const {
    const std::int64_t batches = Batches::count(dataset_.size(), options_.batch_size, options_.drop_last);
    return Batches::count(batches, options_.ranks, options_.drop_last);
  }
  TENET_TAG const D& dataset() const { return dataset_; }
  TENET_TAG const DataLoaderOptions& options() const { return options_; }

  /// The epoch that the next begin() starts; counts up from 0.
  TENET_TAG std::uint64_t epoch() const { return epoch_; }
  /// Goes on as if `epoch` epochs and `batches` of the next had been read: for resuming a training. Throws Error for a
  /// negative number of batches.
  TENET_TAG void set_epoch(std::uint64_t epoch, std::int64_t batches = 0) {
    if (batches < 0) throw Error(text({"data_loader: expected a number of batches >= 0, got ", batches}));
    epoch_ = epoch;
    skipped_ = batches;
  }

 private:
  // Loads batch `i` of an epoch.
  struct Load {
    const D* dataset;
    const Batches* batches;
    TENET_TAG Batch operator()(std::int64_t i) const { return data::get_batch(*dataset, (*batches)[i]); }
  };

  // One reading of the data set. On the heap, so that an iterator can be moved while workers load.
  class Epoch {
   public:
    TENET_TAG Epoch(const D& dataset, Tensor<std::int64_t> order, const DataLoaderOptions& options)
        : batches_(std::move(order), options.batch_size, options.drop_last), load_{&dataset, &batches_} {
      const std::int64_t ahead = std::int64_t(options.workers) * options.prefetch;
      if (options.workers > 0 && batches_.size() > 0) prefetch_.emplace(load_, batches_.size(), options.workers, ahead);
    }

    /// Goes to the next batch; false if there is none.
    TENET_TAG bool advance() {
      current_.reset();  // its memory serves the next one
      if (next_ == batches_.size()) return false;
      current_.emplace(prefetch_ ? prefetch_->next() : load_(next_));
      ++next_;
      return true;
    }
    TENET_TAG Batch& current() { return *current_; }

   private:
    Batches batches_;
    Load load_;
    std::int64_t next_ = 0;
    std::optional<Batch> current_;
    std::optional<Prefetcher<Load>> prefetch_;  // the last member: it goes first
  };

 public:
  /// Where a loop over an epoch stands. The batch stays until the next step; what is kept of it, longer.
  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;

    TENET_TAG explicit Iterator(std::unique_ptr<Epoch> epoch) : epoch_(std::move(epoch)) { ++*this; }

    TENET_TAG Batch& operator*() const { return epoch_->current(); }
    TENET_TAG Iterator& operator++() {
      std::unique_ptr<Epoch> epoch = std::move(epoch_);  // an exception ends the epoch
      if (epoch->advance()) epoch_ = std::move(epoch);
      return *this;
    }
    TENET_TAG void operator++(int) { ++*this; }
    TENET_TAG friend bool operator==(const Iterator& i, std::default_sentinel_t) { return !i.epoch_; }

   private:
    std::unique_ptr<Epoch> epoch_;
  };

  TENET_TAG TENET_COLD Iterator begin() {
    const std::uint64_t epoch = epoch_++;
    const std::int64_t n = dataset_.size();
    Tensor<std::int64_t> order = options_.shuffle ? random_order(n, options_.seed, epoch) : sequential_order(n);
    if (options_.ranks > 1) {
      order = rank_order(order, options_.batch_size, options_.drop_last, options_.rank, options_.ranks);
    }
    const std::int64_t skipped = std::exchange(skipped_, 0), all = order.numel();
    const std::int64_t read = skipped <= all / options_.batch_size ? skipped * options_.batch_size : all;
    order = Tensor<std::int64_t>(make_alias(*order.impl(), {all - read}, {1}, read));
    return Iterator(std::make_unique<Epoch>(dataset_, std::move(order), options_));
  }
  TENET_TAG std::default_sentinel_t end() const { return {}; }

 private:
  D dataset_;
  DataLoaderOptions options_;
  std::uint64_t epoch_ = 0;
  std::int64_t skipped_ = 0;  // batches of the next epoch
};

}  // namespace tenet::data
