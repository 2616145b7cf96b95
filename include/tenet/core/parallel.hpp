// parallel_for: the one place where work is spread over threads.
//
// Work is cut into pieces by its size, never by the number of threads, so that every result is
// bit-identical for any number of threads. Pieces run serially without OpenMP, inside another parallel
// region, in a thread that asked for it (SerialGuard), and in a forked child, whose team does not exist.
#pragma once

#include <tenet/core/error.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <utility>

#if TENET_OPENMP
#include <omp.h>
#include <pthread.h>
#endif

namespace tenet {

namespace state {
inline constinit std::atomic<int> thread_count{0};  // 0: what OpenMP would take
inline constinit std::atomic<bool> forked{false};
inline constinit thread_local bool serial = false;
inline constinit thread_local int thread_limit = 0;  // 0: none
inline constinit thread_local bool team_awake = false;
}  // namespace state

inline namespace TENET_CONFIG {

/// The most threads operations may use: OpenMP ends the process when the system refuses one.
inline constexpr int max_threads = 1024;

/// Number of threads operations may use; throws Error unless in [1, max_threads]. Results do not depend on it.
inline void set_num_threads(int n) {
  if (n < 1 || n > max_threads) {
    throw Error(text({"set_num_threads: expected 1 to ", max_threads, " threads, got ", n}));
  }
  state::thread_count = n;
}

/// The number of threads operations of this thread may use (1 without OpenMP).
inline int num_threads() {
#if TENET_OPENMP
  const int set = state::thread_count.load(std::memory_order_relaxed), n = set ? set : omp_get_max_threads();
  return state::thread_limit && state::thread_limit < n ? state::thread_limit : n;
#else
  return 1;
#endif
}

/// While it lives, operations of this thread run on this thread alone.
class SerialGuard {
 public:
  SerialGuard() : old_(std::exchange(state::serial, true)) {}
  ~SerialGuard() { state::serial = old_; }
  SerialGuard(const SerialGuard&) = delete;
  SerialGuard& operator=(const SerialGuard&) = delete;

 private:
  bool old_;
};

/// While it lives, operations of this thread use at most `n` threads, 1 if `n` is less: its share, where several
/// threads divide the processor.
class ThreadLimit {
 public:
  explicit ThreadLimit(int n) : old_(std::exchange(state::thread_limit, n < 1 ? 1 : n)) {}
  ~ThreadLimit() { state::thread_limit = old_; }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int old_;
};

namespace detail {

#if TENET_OPENMP
inline bool may_fork_team() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { state::forked = true; });
  return registered == 0 && !state::forked.load(std::memory_order_relaxed) && !state::serial && !omp_in_parallel();
}

// Keeps the first exception of a region: none may leave a thread of the team.
class FirstException {
 public:
  void capture() noexcept {
    if (!taken_.exchange(true)) error_ = std::current_exception();
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<bool> taken_{false};
  std::exception_ptr error_;
};
#endif

/// Whether work of this thread may be spread over a team now.
inline bool has_team() {
#if TENET_OPENMP
  return num_threads() > 1 && may_fork_team();
#else
  return false;
#endif
}

using PieceFunction = void (*)(const void* body, std::int64_t begin, std::int64_t end);

// parallel_for without the type of its body, which is called through a pointer only, and so compiled once.
TENET_NOINLINE inline void run_pieces(std::int64_t n, std::int64_t grain, PieceFunction run, const void* body) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  if (n <= grain) return run(body, 0, n);
  const auto piece = [=](std::int64_t begin) { run(body, begin, n - begin < grain ? n : begin + grain); };
  const std::int64_t pieces = (n - 1) / grain + 1;
#if TENET_OPENMP
  // All of the team, even for fewer pieces: libgomp ends threads that one region does without, and starts them for the
  // next.
  if (has_team()) {
    FirstException first;
    state::team_awake = true;
#pragma omp parallel for schedule(static) num_threads(num_threads())
    for (std::int64_t i = 0; i < pieces; ++i) {
      try {
        piece(i * grain);
      } catch (...) {
        first.capture();
      }
    }
    first.rethrow();
    return;
  }
#endif
  for (std::int64_t i = 0; i < pieces; ++i) piece(i * grain);
}

/// Ends the threads of this thread's team, if it has worked since: they would wait for the next operation by spinning,
/// on cores that other threads are about to use. The next operation starts them anew.
inline void rest_team() {
#if TENET_OPENMP
  if (std::exchange(state::team_awake, false) && may_fork_team()) omp_pause_resource_all(omp_pause_soft);
#endif
}

}  // namespace detail

/// Runs `body(begin, end)` over [0, n) in pieces of `grain` (the last may be shorter), in any order and
/// on any thread. The pieces depend on n and grain only. An exception of a piece is rethrown here.
template <class Body>
void parallel_for(std::int64_t n, std::int64_t grain, const Body& body) {
  detail::run_pieces(
      n, grain, [](const void* p, std::int64_t begin, std::int64_t end) { (*static_cast<const Body*>(p))(begin, end); },
      &body);
}

/// A grain for n units of work, `least` of which are worth a thread's while: of many more, it makes a multiple of 8
/// pieces or little less, which 2, 4 or 8 threads share about equally.
inline std::int64_t even_grain(std::int64_t n, std::int64_t least) {
  if (n <= least) return least;
  const std::int64_t pieces = ((n - 1) / least / 8 + 1) * 8;
  return (n - 1) / pieces + 1;
}

}  // namespace TENET_CONFIG
}  // namespace tenet
