// The communicator of threads of one process:
//   parallel::run_threads(4, [](auto& comm) { ... comm.all_reduce(data, n); ... });
#pragma once

#include <tenet/core/generator.hpp>
#include <tenet/core/parallel.hpp>
#include <tenet/parallel/communicator.hpp>
#include <tenet/parallel/thread_state.hpp>

#include <condition_variable>  // and its clocks: <chrono> would cost every program time to compile
#include <cstddef>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tenet::parallel {

struct ThreadOptions {
  double timeout = 300;  ///< seconds that a rank waits for the others before it gives up
};

/// What the ranks of run_threads() share.
class ThreadWorld {
 public:
  /// One rank's part in an operation. All but the addresses must agree.
  struct Call {
    const char* op;
    std::string_view what;
    std::int64_t count = 0;
    const char* unit = "bytes";
    int root = 0;
    const void* in = nullptr;
    void* out = nullptr;
  };

  TENET_TAG ThreadWorld(int size, const ThreadOptions& options)
      : options_(options), ranks_(std::size_t(size)), inbox_(std::size_t(size)) {}

  TENET_TAG int size() const { return int(ranks_.size()); }
  TENET_TAG const Call& call(int rank) const { return ranks_[std::size_t(rank)].call; }

  /// Waits until every rank has come with its call; throws Error on each if they disagree.
  TENET_TAG void meet(int rank, const Call& call) {
    std::unique_lock lock(mutex_);
    ranks_[std::size_t(rank)].call = call;
    const Waiting waiting{call.op, call.what, rank};
    if (arrive(lock, rank, waiting)) return;
    for (int r = 1; r < size(); ++r) {
      const Call &a = ranks_[0].call, &b = ranks_[std::size_t(r)].call;
      if (std::string_view(a.op) != b.op || a.count != b.count || std::string_view(a.unit) != b.unit ||
          a.root != b.root) {
        set_failure(text({"communicator: the ranks disagree: ", describe(0), ", ", describe(r)}));
      }
    }
    release();
    check();
  }
  /// Waits until every rank is done with the memory of the others: no rank may unwind before.
  TENET_TAG void leave() {
    std::unique_lock lock(mutex_);
    const std::uint64_t round = round_;
    if (++arrived_ == size()) return release();
    changed_.wait(lock, [&] { return round != round_; });
  }

  TENET_TAG void send(int from, int to, const void* data, std::int64_t bytes) {
    Message m{from, std::vector<char>(std::size_t(bytes))};
    if (bytes) std::memcpy(m.data.data(), data, std::size_t(bytes));
    const std::lock_guard lock(mutex_);
    check();
    inbox_[std::size_t(to)].push_back(std::move(m));
    changed_.notify_all();
  }
  TENET_TAG void recv(int from, int to, void* data, std::int64_t bytes, std::string_view what) {
    std::unique_lock lock(mutex_);
    auto& inbox = inbox_[std::size_t(to)];
    std::size_t at = 0;
    const auto there = [&] {
      for (at = 0; at < inbox.size() && inbox[at].from != from;) ++at;
      return at < inbox.size();
    };
    const Waiting waiting{"recv", what, to};
    wait(lock, waiting, there, [&](int r) { return r == from; });
    const Message m = std::move(inbox[at]);
    inbox.erase(inbox.begin() + std::ptrdiff_t(at));
    if (std::int64_t(m.data.size()) != bytes) {
      set_failure(text(
          {"communicator: ", waiting.str(), " expected ", bytes, " bytes from rank ", from, ", got ", m.data.size()}));
      check();
    }
    if (bytes) std::memcpy(data, m.data.data(), m.data.size());
  }

  /// A rank ends by an exception: the others end with an Error that names it.
  TENET_TAG void fail(int rank, const char* why) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) cause_ = rank;
    set_failure(text({"rank ", rank, " failed: ", why}));
  }
  /// A rank ends. What waits for it then gets an Error.
  TENET_TAG void end(int rank) {
    const std::lock_guard lock(mutex_);
    ranks_[std::size_t(rank)].ended = true;
    changed_.notify_all();
  }
  /// The rank whose exception came first; -1 if it is not known.
  TENET_TAG int cause() const { return cause_; }
  /// Why the ranks cannot go on; empty while they can.
  TENET_TAG const std::string& failure() const { return failure_; }

 private:
  struct Rank {
    Call call{};
    bool here = false, ended = false;
  };
  struct Message {
    int from;
    std::vector<char> data;
  };
  struct Waiting {
    const char* op;
    std::string_view what;
    int rank;
    TENET_TAG TENET_COLD std::string str() const {
      return what.empty() ? text({op, ": rank ", rank}) : text({op, " (", what, "): rank ", rank});
    }
  };

  TENET_TAG TENET_COLD std::string describe(int rank) const {
    const Call& c = ranks_[std::size_t(rank)].call;
    std::string s = text({"rank ", rank, " is in ", c.op});
    if (!c.what.empty()) s += text({" (", c.what, ")"});
    if (c.count) s += text({" of ", c.count, " ", c.unit});
    if (std::string_view(c.op) == "broadcast") s += text({" from rank ", c.root});
    return s;
  }
  TENET_TAG void check() const {
    if (!failure_.empty()) throw Error(failure_);
  }
  TENET_TAG void set_failure(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
    changed_.notify_all();
  }
  /// Waits for the others; false for the rank that came last, which then calls release().
  TENET_TAG bool arrive(std::unique_lock<std::mutex>& lock, int rank, const Waiting& waiting) {
    check();
    ranks_[std::size_t(rank)].here = true;
    if (++arrived_ == size()) return false;
    const std::uint64_t round = round_;
    wait(
        lock, waiting, [&] { return round != round_; }, [&](int r) { return !ranks_[std::size_t(r)].here; });
    return true;
  }
  TENET_TAG void release() {
    for (Rank& r : ranks_) r.here = false;
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
  }
  /// Waits until `ready()`; `missing(rank)` tells whom it waits for.
  template <class Ready, class Missing>
  TENET_TAG void wait(std::unique_lock<std::mutex>& lock, const Waiting& waiting, const Ready& ready,
                      const Missing& missing) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(options_.timeout);
    const auto deadline = std::chrono::time_point_cast<std::chrono::steady_clock::duration>(until);
    bool late = false;
    for (;;) {
      check();
      if (ready()) return;
      for (int r = 0; r < size(); ++r) {
        if (!missing(r) || !(late || ranks_[std::size_t(r)].ended)) continue;
        set_failure(late ? text({waiting.str(), " waited ", options_.timeout, " s for rank ", r})
                         : text({waiting.str(), " waits for rank ", r, ", which has ended"}));
        check();
      }
      late = changed_.wait_until(lock, deadline) == std::cv_status::timeout;
    }
  }

  const ThreadOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<Message>> inbox_;
  int arrived_ = 0, cause_ = -1;
  std::uint64_t round_ = 0;
  std::string failure_;
};

/// A rank of run_threads(); see Communicator.
class ThreadCommunicator {
 public:
  TENET_TAG ThreadCommunicator(ThreadWorld& world, int rank) : world_(&world), rank_(rank) {}

  TENET_TAG int rank() const { return rank_; }
  TENET_TAG int size() const { return world_->size(); }

  TENET_TAG void barrier(std::string_view what = "") { world_->meet(rank_, {.op = "barrier", .what = what}); }
  TENET_TAG void broadcast(void* data, std::int64_t bytes, int root = 0, std::string_view what = "") {
    check_rank("broadcast", root);
    world_->meet(rank_, {.op = "broadcast", .what = what, .count = bytes, .root = root, .out = data});
    if (rank_ != root && bytes) std::memcpy(data, world_->call(root).out, std::size_t(bytes));
    world_->leave();
  }
  template <Summable T>
  TENET_TAG void all_reduce(T* data, std::int64_t n, std::string_view what = "") {
    world_->meet(rank_, {.op = "all_reduce", .what = what, .count = n, .unit = name(dtype_of<T>), .out = data});
    // Each rank sums its part of all arrays, and stores the sum to all of them.
    const detail::Range mine = detail::part_of(n, size(), rank_);
    const auto array = [&](int r) { return static_cast<T*>(world_->call(r).out) + mine.begin; };
    detail::sum_in_order<T>(size(), array, size(), array, mine.size);
    world_->leave();
  }
  template <Summable T>
  TENET_TAG void reduce_scatter(const T* in, T* out, std::int64_t n, std::string_view what = "") {
    world_->meet(rank_, {.op = "reduce_scatter", .what = what, .count = n, .unit = name(dtype_of<T>), .in = in});
    detail::sum_in_order<T>(
        size(), [&](int r) { return static_cast<const T*>(world_->call(r).in) + rank_ * n; }, 1,
        [&](int) { return out; }, n);
    world_->leave();
  }
  TENET_TAG void all_gather(const void* in, void* out, std::int64_t bytes, std::string_view what = "") {
    world_->meet(rank_, {.op = "all_gather", .what = what, .count = bytes, .in = in});
    for (int r = 0; r < size(); ++r) {
      void* to = static_cast<char*>(out) + r * bytes;
      if (bytes && to != world_->call(r).in) std::memcpy(to, world_->call(r).in, std::size_t(bytes));
    }
    world_->leave();
  }
  TENET_TAG void send(const void* data, std::int64_t bytes, int to, [[maybe_unused]] std::string_view what = "") {
    check_rank("send", to);
    world_->send(rank_, to, data, bytes);
  }
  TENET_TAG void recv(void* data, std::int64_t bytes, int from, std::string_view what = "") {
    check_rank("recv", from);
    world_->recv(from, rank_, data, bytes, what);
  }

 private:
  TENET_TAG void check_rank(const char* op, int rank) const {
    if (rank < 0 || rank >= size()) throw IndexError(text({op, ": expected a rank in [0, ", size(), "), got ", rank}));
  }
  ThreadWorld* world_;
  int rank_;
};

inline namespace TENET_CONFIG {

/// Calls `f(comm)` on `n` threads at once, each with a rank of one communicator, and waits for all. The threads start
/// with the caller's grad mode, autocast and share of the processor, and each with a copy of its default generator, so
/// that equal seeds give equal numbers on every rank. When a rank throws, the others end at their next operation, and
/// run_threads throws an Error that names the rank, with the exception nested in it. A rank that neither returns nor
/// communicates cannot be ended: the others time out, and run_threads waits for it. Throws Error unless n >= 1.
template <class F>
void run_threads(int n, const F& f, const ThreadOptions& options = {}) {
  if (n < 1 || n > max_threads || !(options.timeout > 0)) {
    throw Error(text(
        {"run_threads: expected 1 to ", max_threads, " threads and a timeout > 0, got ", n, " and ", options.timeout}));
  }
  ThreadWorld world(n, options);
  const ThreadState caller;
  const GeneratorState numbers = default_generator().state();
  const int share = num_threads() / n;
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(n));
  std::vector<std::thread> threads;
  const auto run = [&](int rank) {
    const StateScope scope(caller);
    const ThreadLimit limit(share);
    Generator generator;
    generator.set_state(numbers);
    const GeneratorScope own(generator);
    try {
      ThreadCommunicator comm(world, rank);
      f(comm);
    } catch (const std::exception& e) {
      world.fail(rank, e.what());
      errors[std::size_t(rank)] = std::current_exception();
    } catch (...) {
      world.fail(rank, "an exception of unknown type");
      errors[std::size_t(rank)] = std::current_exception();
    }
    world.end(rank);
  };
  try {
    for (int rank = 0; rank < n; ++rank) threads.emplace_back(run, rank);
  } catch (const std::system_error& e) {
    world.fail(int(threads.size()), e.what());
    errors.back() = std::current_exception();
  }
  for (std::thread& t : threads) t.join();
  std::exception_ptr first;
  for (std::size_t r = errors.size(); r-- > 0;) {
    if (errors[r]) first = errors[r];
  }
  if (!first) return;
  if (world.cause() >= 0 && errors[std::size_t(world.cause())]) first = errors[std::size_t(world.cause())];
  try {
    std::rethrow_exception(first);
  } catch (...) {
    std::throw_with_nested(Error("run_threads: " + world.failure()));
  }
}

}  // namespace TENET_CONFIG
}  // namespace tenet::parallel
