// The communicator of threads of one process:
//   parallel::run_threads(4, [](auto& comm) { ... comm.all_reduce(data, n); ... });
#pragma once

#include <tenet/core/generator.hpp>
#include <tenet/core/parallel.hpp>
#include <tenet/parallel/communicator.hpp>
#include <tenet/parallel/thread_group.hpp>
#include <tenet/parallel/thread_state.hpp>

#include <memory>
#include <system_error>
#include <thread>

namespace tenet::parallel {

/// A rank of run_threads(); see Communicator.
class ThreadCommunicator {
 public:
  TENET_TAG ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank) : group_(std::move(group)), rank_(rank) {}

  TENET_TAG int rank() const { return rank_; }
  TENET_TAG int size() const { return group_->size(); }
  TENET_TAG int world_rank(int rank) const {
    detail::check_rank("world_rank", rank, *this);
    return group_->world_rank(rank);
  }

  TENET_TAG void barrier(std::string_view what = "") { group_->meet(rank_, {.op = "barrier", .what = what}); }
  TENET_TAG void broadcast(void* data, std::int64_t bytes, int root = 0, std::string_view what = "") {
    detail::check_rank("broadcast", root, *this);
    group_->meet(rank_, {.op = "broadcast", .what = what, .count = bytes, .root = root, .out = data});
    if (rank_ != root && bytes) std::memcpy(data, group_->call(root).out, std::size_t(bytes));
    group_->leave();
  }
  template <Summable T>
  TENET_TAG void all_reduce(T* data, std::int64_t n, std::string_view what = "") {
    group_->meet(rank_, {.op = "all_reduce", .what = what, .count = n, .unit = name(dtype_of<T>), .out = data});
    // Each rank sums its part of all arrays, and stores the sum to all of them.
    const detail::Range mine = detail::part_of(n, size(), rank_);
    const auto array = [&](int r) { return static_cast<T*>(group_->call(r).out) + mine.begin; };
    detail::sum_in_order<T>(size(), array, size(), array, mine.size);
    group_->leave();
  }
  template <Summable T>
  TENET_TAG void reduce_scatter(const T* in, T* out, std::int64_t n, std::string_view what = "") {
    group_->meet(rank_, {.op = "reduce_scatter", .what = what, .count = n, .unit = name(dtype_of<T>), .in = in});
    detail::sum_in_order<T>(
        size(), [&](int r) { return static_cast<const T*>(group_->call(r).in) + rank_ * n; }, 1,
        [&](int) { return out; }, n);
    group_->leave();
  }
  TENET_TAG void all_gather(const void* in, void* out, std::int64_t bytes, std::string_view what = "") {
    group_->meet(rank_, {.op = "all_gather", .what = what, .count = bytes, .in = in});
    for (int r = 0; r < size(); ++r) {
      void* to = static_cast<char*>(out) + r * bytes;
      if (bytes && to != group_->call(r).in) std::memcpy(to, group_->call(r).in, std::size_t(bytes));
    }
    group_->leave();
  }
  TENET_TAG void send(const void* data, std::int64_t bytes, int to, [[maybe_unused]] std::string_view what = "") {
    detail::check_rank("send", to, *this);
    group_->send(rank_, to, data, bytes);
  }
  TENET_TAG void recv(void* data, std::int64_t bytes, int from, std::string_view what = "") {
    detail::check_rank("recv", from, *this);
    group_->recv(from, rank_, data, bytes, what);
  }
  TENET_TAG ThreadCommunicator split(int color, int key = 0, std::string_view what = "") {
    const std::vector<int> members = detail::members_of(*this, color, key, what);
    std::shared_ptr<ThreadGroup> group;  // the first member's is everybody's
    if (members[0] == rank_) {
      std::vector<int> in_world;
      for (const int r : members) in_world.push_back(world_rank(r));
      group = std::make_shared<ThreadGroup>(group_->world(), std::move(in_world));
    }
    group_->meet(rank_, {.op = "split", .what = what, .in = &group});
    if (members[0] != rank_) group = *static_cast<const std::shared_ptr<ThreadGroup>*>(group_->call(members[0]).in);
    group_->leave();
    return {std::move(group), int(std::find(members.begin(), members.end(), rank_) - members.begin())};
  }

 private:
  std::shared_ptr<ThreadGroup> group_;
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
  std::vector<int> all;
  for (int rank = 0; rank < n; ++rank) all.push_back(rank);
  const auto group = std::make_shared<ThreadGroup>(world, std::move(all));
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
      ThreadCommunicator comm(group, rank);
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
