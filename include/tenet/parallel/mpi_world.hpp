// What the communicators of an MPI process share: who has failed or ended, and what is on its way to others.
#pragma once

#include <tenet/core/error.hpp>

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <list>
#include <vector>

#include <sched.h>

namespace tenet::parallel {

struct MpiOptions {
  double timeout = 300;  ///< seconds that a rank waits for the others before it gives up
};

/// The fate of all ranks: when one of them cannot go on, none can, in whichever communicator it waits. Ranks here are
/// those of MPI_COMM_WORLD.
class MpiWorld {
 public:
  TENET_TAG explicit MpiWorld(const MpiOptions& options) : options_(options) {
    if (!(options.timeout > 0)) throw Error(text({"mpi: expected a timeout > 0, got ", options.timeout}));
    MPI_Comm_dup(MPI_COMM_WORLD, &notices_);
    MPI_Comm_rank(notices_, &rank_);
    MPI_Comm_size(notices_, &size_);
    knows_.resize(std::size_t(size_));
    ended_.resize(std::size_t(size_));
    waits_.resize(std::size_t(size_));
  }
  /// After a failure it waits for a moment until all ranks know, and ends the job if one does not.
  TENET_TAG ~MpiWorld() {
    if (!failed()) {
      const auto begin = Clock::now();
      while (!all_sent() && std::chrono::duration<double>(Clock::now() - begin).count() < options_.timeout) {
        sched_yield();
      }
      MPI_Comm_free(&notices_);
    } else if (!all_know()) {
      std::fprintf(stderr, "%s\n", failure_.c_str());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }  // else what is under way may still use the communicators
  }
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  TENET_TAG int rank() const { return rank_; }
  TENET_TAG int size() const { return size_; }

  /// Sends without waiting: the data are kept until they have gone.
  TENET_TAG void post(MPI_Comm comm, int to, int tag, std::vector<char> data) {
    all_sent();
    Transfer& s = sending_.emplace_back(Transfer{MPI_REQUEST_NULL, std::move(data)});
    MPI_Isend(s.data.data(), int(s.data.size()), MPI_BYTE, to, tag, comm, &s.request);
  }
  /// A message on its way, and its memory.
  struct Transfer {
    MPI_Request request;
    std::vector<char> data;
  };
  /// Begins to receive a message if one has come, else gives null. Its memory stays until it is dropped.
  TENET_TAG Transfer* begin_receive(MPI_Comm comm, int from, int tag) {
    int there = 0, bytes = 0;
    MPI_Message m;
    MPI_Status s;
    MPI_Improbe(from, tag, comm, &there, &m, &s);
    if (!there) return nullptr;
    MPI_Get_count(&s, MPI_BYTE, &bytes);
    Transfer& t = receiving_.emplace_back(Transfer{MPI_REQUEST_NULL, std::vector<char>(std::size_t(bytes))});
    MPI_Imrecv(t.data.data(), bytes, MPI_BYTE, &m, &t.request);
    return &t;
  }
  TENET_TAG void drop(const Transfer* received) {
    receiving_.remove_if([&](const Transfer& t) { return &t == received; });
  }
  /// Takes a short message if one has come: a longer one may keep it waiting for the sender.
  TENET_TAG static bool take(MPI_Comm comm, int from, int tag, std::vector<char>& data, MPI_Status* status = nullptr) {
    int there = 0, bytes = 0;
    MPI_Message m;
    MPI_Status s;
    MPI_Improbe(from, tag, comm, &there, &m, &s);
    if (!there) return false;
    MPI_Get_count(&s, MPI_BYTE, &bytes);
    data.resize(std::size_t(bytes));
    MPI_Mrecv(data.data(), bytes, MPI_BYTE, &m, MPI_STATUS_IGNORE);
    if (status) *status = s;
    return true;
  }
  TENET_TAG static bool is_done(MPI_Request& request) {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  }

  /// Waits until `ready()`, which needs a message of rank `of`, or if that is -1 of whichever rank. Throws Error when a
  /// rank has failed, when rank `of` has ended, and after the timeout; `doing()` tells what this rank does.
  template <class Ready, class Doing>
  TENET_TAG void wait(int of, const Ready& ready, const Doing& doing) {
    const auto begin = Clock::now();
    auto end = begin;  // of that rank, as it becomes known
    bool told = false;
    for (std::int64_t round = 1; !ready(); ++round) {
      if (round % 64) continue;
      check();
      const auto now = Clock::now();
      const double waited = std::chrono::duration<double>(now - begin).count();
      if (of < 0 || !ended_[std::size_t(of)]) end = now;
      if (!told && waited > options_.timeout / 2) notify(Notice::waits), told = true;
      // Its last messages may come after the news of its end.
      if (now - end > std::chrono::milliseconds(500)) {
        fail(text({doing(), ": rank ", rank_, " waits for rank ", of, ", which has ended"}));
      } else if (waited > options_.timeout) {
        fail(text({doing(), ": rank ", rank_, " waited ", options_.timeout, " s for rank ", culprit(of)}));
      }
      check();
      sched_yield();  // ranks may be more than cores
    }
    if (told) notify(Notice::goes_on);
  }

  /// Of all ranks at once, and the last that they do together. Throws Error on each if one is not at its end.
  TENET_TAG void end() {
    check();
    const auto doing = [] { return "end"; };
    notify(Notice::end);
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      wait(
          r, [&] { return bool(ended_[std::size_t(r)]); }, doing);
    }
    wait(
        -1, [&] { return all_sent(); }, doing);
  }
  /// After a failure: gives the ranks that go on with a request a moment to do so, for its memory may go then.
  TENET_TAG void settle(MPI_Request& request) {
    const auto begin = Clock::now();
    while (!is_done(request) && Clock::now() - begin < std::chrono::seconds(2)) sched_yield();
  }

  /// This rank cannot go on: the others get an Error with this text where they wait.
  TENET_TAG void fail(std::string why) {
    if (failed()) return;
    failure_ = std::move(why);
    notify(Notice::failure, failure_);
  }
  TENET_TAG bool failed() const { return !failure_.empty(); }
  /// Why the ranks cannot go on; empty while they can.
  TENET_TAG const std::string& failure() const { return failure_; }
  /// Throws Error if a rank has failed.
  TENET_TAG void check() {
    hear();
    if (failed()) throw Error(failure_);
  }

 private:
  enum class Notice : int { failure, end, waits, goes_on };
  using Clock = std::chrono::steady_clock;

  TENET_TAG bool all_sent() {
    sending_.remove_if([](Transfer& t) { return is_done(t.request); });
    return sending_.empty();
  }
  TENET_TAG void notify(Notice notice, const std::string& why = "") {
    for (int r = 0; r < size_; ++r) {
      if (r != rank_) post(notices_, r, int(notice), std::vector<char>(why.begin(), why.end()));
    }
  }
  /// Takes note of what others have told.
  TENET_TAG void hear() {
    std::vector<char> why;
    MPI_Status status;
    while (take(notices_, MPI_ANY_SOURCE, MPI_ANY_TAG, why, &status)) {
      const auto from = std::size_t(status.MPI_SOURCE);
      switch (Notice(status.MPI_TAG)) {
        case Notice::failure: knows_[from] = true, fail(std::string(why.begin(), why.end())); break;
        case Notice::end: ended_[from] = true; break;
        case Notice::waits: waits_[from] = true; break;
        case Notice::goes_on: waits_[from] = false; break;
      }
    }
  }
  /// The rank that is to blame: `of`, or if that waits itself, one that does not.
  TENET_TAG int culprit(int of) const {
    if (of >= 0 && !waits_[std::size_t(of)]) return of;
    for (int r = 0; r < size_; ++r) {
      if (r != rank_ && !waits_[std::size_t(r)] && !ended_[std::size_t(r)]) return r;
    }
    return of < 0 ? (rank_ + 1) % size_ : of;
  }
  /// Waits for a moment until all ranks know of the failure.
  TENET_TAG bool all_know() {
    knows_[std::size_t(rank_)] = true;
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
      hear();
      const bool all = std::find(knows_.begin(), knows_.end(), false) == knows_.end();
      if (all || std::chrono::steady_clock::now() - begin > std::chrono::seconds(2)) return all;
      sched_yield();
    }
  }

  MpiOptions options_;
  MPI_Comm notices_;
  int rank_ = 0, size_ = 1;
  std::list<Transfer> sending_, receiving_;
  // What this rank has heard from each: that it knows of a failure, has ended, has waited for long.
  std::vector<bool> knows_, ended_, waits_;
  std::string failure_;
};

}  // namespace tenet::parallel
