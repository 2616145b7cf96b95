// Threads that wait for jobs.
#pragma once

#include <tenet/core/parallel.hpp>
#include <tenet/parallel/thread_state.hpp>

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <unistd.h>

namespace tenet::parallel {

/// A fixed number of threads, each with its share of the processor.
class Workers {
 public:
  /// Throws Error when the system refuses a thread.
  TENET_TAG explicit Workers(int count) : process_(getpid()), all_(new Threads) {
    try {
      for (int i = 0; i < count; ++i) all_->threads.emplace_back([this, i] { work(i); });
    } catch (const std::system_error& e) {
      stop();
      throw Error(text({"workers: cannot start thread ", all_->threads.size(), " of ", count, ": ", e.what()}));
    }
  }
  TENET_TAG ~Workers() { stop(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  TENET_TAG int size() const { return int(all_->threads.size()); }

  /// Calls job(i) for i = 0, ..., jobs - 1 <= size() - 1 at once, each on a thread and in the caller's grad mode,
  /// anomaly mode and autocast: on the team that operations share where each thread gets as many jobs, else on a thread
  /// of its own, whose operations share the rest. Throws the exception of the lowest i that has one, after all are
  /// done. The calls come one after the other on the calling thread if it may use no other (SerialGuard), if the
  /// workers are busy with the jobs of another thread or of this one, and in a forked child, which has none.
  template <class Job>
  TENET_TAG void run(int jobs, const Job& job) {
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(jobs));
    struct Context {
      const Job& job;
      std::vector<std::exception_ptr>& errors;
    } context{job, errors};
    start(jobs, &context, [](void* p, int i) {
      auto& c = *static_cast<Context*>(p);
      try {
        c.job(i);
      } catch (...) {
        c.errors[std::size_t(i)] = std::current_exception();
      }
    });
    for (const std::exception_ptr& e : errors) {
      if (e) std::rethrow_exception(e);
    }
  }

 private:
  using Function = void (*)(void* context, int i);
  struct Threads {
    std::mutex mutex;
    std::condition_variable begin, done;
    std::vector<std::thread> threads;
    Function function = nullptr;
    void* context = nullptr;
    ThreadState state;
    int share = 1, jobs = 0, running = 0;
    std::uint64_t round = 0;
    bool stopping = false;
  };

  TENET_TAG void start(int jobs, void* context, Function function) {
    if (state::serial || process_ != getpid() || busy_.exchange(true)) {
      for (int i = 0; i < jobs; ++i) function(context, i);
      return;
    }
    // The team's threads would spin beside ours, and to end and start them takes longer than the jobs gain.
    if (tenet::detail::has_team() && jobs % num_threads() == 0) {
      const ThreadState caller;
      parallel_for(jobs, 1, [&](std::int64_t begin, std::int64_t end) {
        const StateScope scope(caller);
        for (std::int64_t i = begin; i < end; ++i) function(context, int(i));
      });
      busy_ = false;
      return;
    }
    Threads& all = *all_;
    tenet::detail::rest_team();
    {
      std::unique_lock lock(all.mutex);
      all.function = function;
      all.context = context;
      all.state = ThreadState();
      all.share = num_threads() / jobs;
      all.jobs = all.running = jobs;
      ++all.round;
      all.begin.notify_all();
      all.done.wait(lock, [&] { return all.running == 0; });
    }
    busy_ = false;
  }

  TENET_TAG void work(int i) {
    Threads& all = *all_;
    std::unique_lock lock(all.mutex);
    for (std::uint64_t seen = 0;;) {
      all.begin.wait(lock, [&] { return all.stopping || all.round != seen; });
      if (all.stopping) return;
      seen = all.round;
      if (i >= all.jobs) continue;
      lock.unlock();
      {
        const StateScope scope(all.state);
        const ThreadLimit limit(all.share);
        all.function(all.context, i);
      }
      lock.lock();
      if (--all.running == 0) all.done.notify_one();
    }
  }

  TENET_TAG void stop() {
    if (process_ != getpid()) return;  // a forked child: the threads and who held the lock are not here
    {
      const std::lock_guard lock(all_->mutex);
      all_->stopping = true;
    }
    all_->begin.notify_all();
    for (std::thread& t : all_->threads) t.join();
    delete all_;
  }

  const pid_t process_;
  std::atomic<bool> busy_{false};
  Threads* all_;
};

}  // namespace tenet::parallel
