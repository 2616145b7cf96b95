// Prefetcher: makes numbered items on worker threads, ahead of the one who takes them in order.
#pragma once

#include <tenet/core/parallel.hpp>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace tenet::data {

/// Calls `make(i)` for i = 0, 1, ..., count - 1 on `workers` threads, never more than `ahead` items before the
/// next one taken. What is taken does not depend on either number.
template <class Make>
class Prefetcher {
 public:
  using Item = std::invoke_result_t<const Make&, std::int64_t>;

  /// Throws Error when the system refuses a thread.
  TENET_TAG TENET_COLD Prefetcher(Make make, std::int64_t count, std::int64_t workers, std::int64_t ahead)
      : make_(std::move(make)), count_(count), slots_(std::size_t(ahead < count ? ahead : count)) {
    const std::int64_t useful = workers < count ? workers : count;
    try {
      for (std::int64_t i = 0; i < useful; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& e) {
      stop();
      throw Error(text({"prefetch: cannot start worker ", threads_.size(), " of ", useful, ": ", e.what()}));
    }
  }
  TENET_TAG ~Prefetcher() { stop(); }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Waits for the next item; what its make() threw is thrown here. At most `count` calls.
  TENET_TAG Item next() {
    Slot slot;
    {
      std::unique_lock lock(mutex_);
      Slot& mine = slot_of(taken_);
      ready_.wait(lock, [&] { return mine.item || mine.error; });
      std::swap(slot, mine);
      ++taken_;
    }
    space_.notify_one();
    if (slot.error) std::rethrow_exception(slot.error);
    return std::move(*slot.item);
  }

 private:
  struct Slot {
    std::optional<Item> item;
    std::exception_ptr error;
  };

  TENET_TAG Slot& slot_of(std::int64_t i) { return slots_[std::size_t(i) % slots_.size()]; }

  TENET_TAG void work() {
    const SerialGuard serial;  // the workers are the threads: no team for each
    for (;;) {
      std::int64_t i = 0;
      {
        std::unique_lock lock(mutex_);
        space_.wait(lock,
                    [&] { return stopping_ || started_ == count_ || started_ - taken_ < std::int64_t(slots_.size()); });
        if (stopping_ || started_ == count_) return;
        i = started_++;
      }
      Slot slot;
      try {
        slot.item.emplace(make_(i));
      } catch (...) {
        slot.error = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex_);
        std::swap(slot_of(i), slot);
      }
      ready_.notify_one();
    }
  }

  TENET_TAG TENET_COLD void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    space_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  const Make make_;
  const std::int64_t count_;
  std::mutex mutex_;
  std::condition_variable ready_, space_;
  std::vector<Slot> slots_;  // a ring: item i waits in slot i modulo their number
  std::int64_t started_ = 0, taken_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tenet::data
