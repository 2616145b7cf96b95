// What the threads of run_threads() share: the fate of all of them, and the places where groups of them meet.
#pragma once

#include <tenet/core/error.hpp>

#include <condition_variable>  // and its clocks: <chrono> would cost every program time to compile
#include <cstddef>
#include <cstring>
#include <mutex>
#include <vector>

namespace tenet::parallel {

struct ThreadOptions {
  double timeout = 300;  ///< seconds that a rank waits for the others before it gives up
};

/// The fate of all ranks: when one of them cannot go on, none can, in whichever group it waits.
class ThreadWorld {
 public:
  TENET_TAG ThreadWorld(int size, const ThreadOptions& options)
      : options_(options), ended_(std::size_t(size)), waits_(std::size_t(size)) {}

  /// A rank ends by an exception: the others end with an Error that names it.
  TENET_TAG void fail(int rank, const char* why) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) cause_ = rank;
    set_failure(text({"rank ", rank, " failed: ", why}));
  }
  /// A rank ends. What waits for it then gets an Error.
  TENET_TAG void end(int rank) {
    const std::lock_guard lock(mutex_);
    ended_[std::size_t(rank)] = true;
    changed_.notify_all();
  }
  /// The rank whose exception came first; -1 if it is not known.
  TENET_TAG int cause() const { return cause_; }
  /// Why the ranks cannot go on; empty while they can.
  TENET_TAG const std::string& failure() const { return failure_; }

 private:
  friend class ThreadGroup;

  TENET_TAG void check() const {
    if (!failure_.empty()) throw Error(failure_);
  }
  TENET_TAG void set_failure(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
    changed_.notify_all();
  }

  const ThreadOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> ended_, waits_;
  int cause_ = -1;
  std::string failure_;
};

/// Ranks that communicate with each other: all of a world, or some. Errors name ranks of the world.
class ThreadGroup {
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

  /// `members[r]` is the rank in the world of rank r.
  TENET_TAG ThreadGroup(ThreadWorld& world, std::vector<int> members)
      : world_(world), members_(std::move(members)), ranks_(members_.size()), inbox_(members_.size()) {}

  TENET_TAG ThreadWorld& world() const { return world_; }
  TENET_TAG int size() const { return int(members_.size()); }
  TENET_TAG int world_rank(int rank) const { return members_[std::size_t(rank)]; }
  TENET_TAG const Call& call(int rank) const { return ranks_[std::size_t(rank)].call; }

  /// Waits until every rank has come with its call; throws Error on each if they disagree.
  TENET_TAG void meet(int rank, const Call& call) {
    std::unique_lock lock(world_.mutex_);
    ranks_[std::size_t(rank)].call = call;
    if (!arrive(lock, {call.op, call.what, rank})) {
      compare();
      release();
    }
    // They go on together or not at all: what fails elsewhere meanwhile comes with the next operation.
    if (!agreed_) world_.check();
  }
  /// Waits until every rank is done with the memory of the others: no rank may unwind before.
  TENET_TAG void leave() {
    std::unique_lock lock(world_.mutex_);
    const std::uint64_t round = round_;
    if (++arrived_ == size()) return release();
    world_.changed_.wait(lock, [&] { return round != round_; });
  }

  TENET_TAG void send(int from, int to, const void* data, std::int64_t bytes) {
    Message m{from, std::vector<char>(std::size_t(bytes))};
    if (bytes) std::memcpy(m.data.data(), data, std::size_t(bytes));
    const std::lock_guard lock(world_.mutex_);
    world_.check();
    inbox_[std::size_t(to)].push_back(std::move(m));
    world_.changed_.notify_all();
  }
  TENET_TAG void recv(int from, int to, void* data, std::int64_t bytes, std::string_view what) {
    std::unique_lock lock(world_.mutex_);
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
      world_.set_failure(text({"communicator: ", describe(waiting), " expected ", bytes, " bytes from rank ",
                               world_rank(from), ", got ", m.data.size()}));
      world_.check();
    }
    if (bytes) std::memcpy(data, m.data.data(), m.data.size());
  }

 private:
  struct Rank {
    Call call{};
    bool here = false;
  };
  struct Message {
    int from;
    std::vector<char> data;
  };
  struct Waiting {
    const char* op;
    std::string_view what;
    int rank;
  };

  TENET_TAG TENET_COLD std::string describe(const Waiting& w) const {
    return w.what.empty() ? text({w.op, ": rank ", world_rank(w.rank)})
                          : text({w.op, " (", w.what, "): rank ", world_rank(w.rank)});
  }
  TENET_TAG TENET_COLD std::string describe(int rank) const {
    const Call& c = call(rank);
    std::string s = text({"rank ", world_rank(rank), " is in ", c.op});
    if (!c.what.empty()) s += text({" (", c.what, ")"});
    if (c.count) s += text({" of ", c.count, " ", c.unit});
    if (std::string_view(c.op) == "broadcast") s += text({" from rank ", world_rank(c.root)});
    return s;
  }
  TENET_TAG void compare() {
    for (int r = 1; r < size(); ++r) {
      const Call &a = call(0), &b = call(r);
      if (std::string_view(a.op) == b.op && a.count == b.count && std::string_view(a.unit) == b.unit &&
          a.root == b.root) {
        continue;
      }
      agreed_ = false;
      world_.set_failure(text({"communicator: the ranks disagree: ", describe(0), ", ", describe(r)}));
    }
  }
  /// Waits for the others; false for the rank that came last, which then calls release().
  TENET_TAG bool arrive(std::unique_lock<std::mutex>& lock, const Waiting& waiting) {
    world_.check();
    ranks_[std::size_t(waiting.rank)].here = true;
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
    world_.changed_.notify_all();
  }
  /// Waits until `ready()`; `missing(rank)` tells whom it waits for.
  template <class Ready, class Missing>
  TENET_TAG void wait(std::unique_lock<std::mutex>& lock, const Waiting& waiting, const Ready& ready,
                      const Missing& missing) {
    const double timeout = world_.options_.timeout;
    // A clock counts no more than some centuries.
    const std::chrono::duration<double> seconds(std::min(timeout, 1e8));
    const auto until = std::chrono::steady_clock::now() + seconds;
    const auto deadline = std::chrono::time_point_cast<std::chrono::steady_clock::duration>(until);
    const auto me = std::size_t(world_rank(waiting.rank));
    world_.waits_[me] = true;
    for (bool late = false; !ready();) {
      world_.check();
      for (int r = 0; r < size(); ++r) {
        if (!missing(r) || !world_.ended_[std::size_t(world_rank(r))]) continue;
        give_up(text({describe(waiting), " waits for rank ", world_rank(r), ", which has ended"}));
      }
      if (late) give_up(text({describe(waiting), " waited ", timeout, " s for rank ", culprit(missing)}));
      late = world_.changed_.wait_until(lock, deadline) == std::cv_status::timeout;
    }
    world_.waits_[me] = false;
  }
  TENET_TAG void give_up(std::string why) {
    world_.set_failure(std::move(why));
    world_.check();
  }
  /// The rank of the world that is to blame: one that is missing, or that those wait for in turn.
  template <class Missing>
  TENET_TAG int culprit(const Missing& missing) const {
    int first = -1;
    for (int r = 0; r < size(); ++r) {
      if (!missing(r)) continue;
      if (!world_.waits_[std::size_t(world_rank(r))]) return world_rank(r);
      if (first < 0) first = world_rank(r);
    }
    for (std::size_t r = 0; r < world_.waits_.size(); ++r) {
      if (!world_.waits_[r] && !world_.ended_[r]) return int(r);
    }
    return first;
  }

  ThreadWorld& world_;
  const std::vector<int> members_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<Message>> inbox_;
  int arrived_ = 0;
  std::uint64_t round_ = 0;
  bool agreed_ = true;
};

}  // namespace tenet::parallel
