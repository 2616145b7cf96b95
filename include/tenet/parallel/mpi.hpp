// The communicator of MPI ranks; link tenet::mpi. A program for any number of ranks:
//   int main() {
//     parallel::run_mpi([](auto& comm) { ... comm.all_reduce(data, n); ... });
//   }
//   mpirun -np 4 program
#pragma once

#include <tenet/parallel/communicator.hpp>

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <chrono>
#include <cstdlib>
#include <limits>
#include <list>
#include <optional>
#include <vector>

#include <sched.h>

namespace tenet::parallel {

struct MpiOptions {
  double timeout = 300;  ///< seconds that a rank waits for the others before it gives up
};

/// A rank of MPI_COMM_WORLD; see Communicator. Before an operation moves data, the ranks tell each other what they are
/// about to do: so they notice where they disagree, who has ended, and who is missing. One thread of a rank uses it.
class MpiCommunicator {
 public:
  /// Of all ranks at once; MPI must be initialized. Throws Error unless the timeout is positive.
  TENET_TAG explicit MpiCommunicator(const MpiOptions& options = {}) : options_(options) {
    if (!(options.timeout > 0)) throw Error(text({"mpi: expected a timeout > 0, got ", options.timeout}));
    MPI_Comm_dup(MPI_COMM_WORLD, &data_);
    MPI_Comm_dup(MPI_COMM_WORLD, &alarm_);
    MPI_Comm_rank(data_, &rank_);
    MPI_Comm_size(data_, &size_);
    told_.resize(std::size_t(size_));
    headers_.resize(std::size_t(size_));
  }
  /// After a failure it waits for a moment until all ranks know, and ends the job if one does not.
  TENET_TAG ~MpiCommunicator() {
    if (!failure_.empty() && !all_know()) {
      std::fprintf(stderr, "%s\n", failure_.c_str());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    // What a failure left under way may still use the communicators.
    if (!failure_.empty()) return;
    MPI_Comm_free(&data_);
    MPI_Comm_free(&alarm_);
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  TENET_TAG int rank() const { return rank_; }
  TENET_TAG int size() const { return size_; }

  TENET_TAG void barrier(std::string_view what = "") { agree({"barrier"}, what); }
  TENET_TAG void broadcast(void* data, std::int64_t bytes, int root = 0, std::string_view what = "") {
    check_rank("broadcast", root);
    agree({"broadcast", "bytes", bytes, root}, what);
    for (std::int64_t at = 0; at < bytes; at += most) {
      MPI_Request r;
      MPI_Ibcast(static_cast<char*>(data) + at, int(std::min(most, bytes - at)), MPI_BYTE, root, data_, &r);
      wait(r, "broadcast", what);
    }
  }
  template <Summable T>
  TENET_TAG void all_reduce(T* data, std::int64_t n, std::string_view what = "") {
    agree({"all_reduce", name(dtype_of<T>), n}, what);
    constexpr std::int64_t step = (std::int64_t(64) << 20) / std::int64_t(sizeof(T));
    for (std::int64_t at = 0; at < n; at += step) reduce_piece(data + at, std::min(step, n - at), what);
  }
  template <Summable T>
  TENET_TAG void reduce_scatter(const T* in, T* out, std::int64_t n, std::string_view what = "") {
    agree({"reduce_scatter", name(dtype_of<T>), n}, what);
    check_size("reduce_scatter", n * size_);
    std::vector<T> parts(std::size_t(n * size_));
    MPI_Request r;
    MPI_Ialltoall(in, int(n), type<T>(), parts.data(), int(n), type<T>(), data_, &r);
    wait(r, "reduce_scatter", what);
    detail::sum_in_order<T>(
        size_, [&](int k) { return parts.data() + k * n; }, 1, [&](int) { return out; }, n);
  }
  TENET_TAG void all_gather(const void* in, void* out, std::int64_t bytes, std::string_view what = "") {
    agree({"all_gather", "bytes", bytes}, what);
    check_size("all_gather", bytes);
    const bool in_place = in == static_cast<char*>(out) + rank_ * bytes;
    MPI_Request r;
    MPI_Iallgather(in_place ? MPI_IN_PLACE : in, int(bytes), MPI_BYTE, out, int(bytes), MPI_BYTE, data_, &r);
    wait(r, "all_gather", what);
  }
  TENET_TAG void send(const void* data, std::int64_t bytes, int to, [[maybe_unused]] std::string_view what = "") {
    check_rank("send", to);
    check_size("send", bytes);
    check();
    const char* p = static_cast<const char*>(data);
    post(data_, to, message, std::vector<char>(p, p + bytes));
  }
  TENET_TAG void recv(void* data, std::int64_t bytes, int from, std::string_view what = "") {
    check_rank("recv", from);
    std::vector<char> got;
    poll("recv", what, from, [&] {
      if (take(data_, from, message, got)) return true;
      // A header of that rank means that it goes on, unless it is its last.
      look_for_header(from);
      const auto& h = headers_[std::size_t(from)];
      if (h && h->is("end")) fail_waiting("recv", what, from);
      return false;
    });
    if (std::int64_t(got.size()) != bytes) {
      fail(text({"communicator: recv", label(what), ": rank ", rank_, " expected ", bytes, " bytes from rank ", from,
                 ", got ", got.size()}));
      check();
    }
    if (bytes) std::memcpy(data, got.data(), got.size());
  }

  /// Of all ranks at once, and the last that they do together. Throws Error on each if one is not at its end.
  TENET_TAG void end() {
    check();
    for (const Header& h : exchange({"end"}, "")) {
      if (h.is("end")) continue;
      poll("end", "", 0, [] { return false; });  // until that rank notices, and tells
    }
    for (Sending& s : sending_) wait(s.request, "end", "");
  }

  /// This rank cannot go on: the others get an Error with this text where they wait.
  TENET_TAG void fail(std::string why) {
    if (!failure_.empty()) return;
    failure_ = std::move(why);
    for (int r = 0; r < size_; ++r) {
      if (r != rank_) post(alarm_, r, failure, std::vector<char>(failure_.begin(), failure_.end()));
    }
  }
  /// Why the ranks cannot go on; empty while they can.
  TENET_TAG const std::string& why_failed() const { return failure_; }

 private:
  enum Tag : int { header, message, failure };
  static constexpr std::int64_t most = std::int64_t(1) << 30;  // MPI counts in int

  /// What a rank is about to do; sent as it is.
  struct Header {
    char op[16] = {}, unit[16] = {}, what[64] = {};
    std::int64_t count = 0;
    int root = 0;

    TENET_TAG Header() = default;
    TENET_TAG Header(std::string_view o, std::string_view u = "", std::int64_t n = 0, int from = 0)
        : count(n), root(from) {
      o.copy(op, sizeof op - 1);
      u.copy(unit, sizeof unit - 1);
    }
    TENET_TAG bool is(std::string_view o) const { return o == op; }
    TENET_TAG bool agrees(const Header& h) const {
      return h.is(op) && std::string_view(unit) == h.unit && count == h.count && root == h.root;
    }
    TENET_TAG TENET_COLD std::string str() const {
      std::string s = text({op, label(what)});
      if (count) s += text({" of ", count, " ", unit});
      if (is("broadcast")) s += text({" from rank ", root});
      return s;
    }
  };
  struct Sending {
    MPI_Request request;
    std::vector<char> data;
  };

  TENET_TAG TENET_COLD static std::string label(std::string_view what) {
    return what.empty() ? std::string() : text({" (", what, ")"});
  }
  template <class T>
  TENET_TAG static MPI_Datatype type() {
    if constexpr (std::same_as<T, float>) return MPI_FLOAT;
    else if constexpr (std::same_as<T, double>) return MPI_DOUBLE;
    else if constexpr (std::same_as<T, bfloat16>) return MPI_UINT16_T;
    else return MPI_INT64_T;
  }
  TENET_TAG void check_rank(const char* op, int rank) const {
    if (rank < 0 || rank >= size_) throw IndexError(text({op, ": expected a rank in [0, ", size_, "), got ", rank}));
  }
  TENET_TAG static void check_size(const char* op, std::int64_t n) {
    if (n > std::numeric_limits<int>::max()) throw Error(text({op, ": ", n, " are more than MPI counts in one call"}));
  }

  /// Sums as every engine does: each rank its part of the array, in the order of the ranks.
  template <Summable T>
  TENET_TAG void reduce_piece(T* data, std::int64_t n, std::string_view what) {
    std::vector<int> counts, begins, own_counts, own_begins;
    const detail::Range mine = detail::part_of(n, size_, rank_);
    for (int r = 0; r < size_; ++r) {
      const detail::Range part = detail::part_of(n, size_, r);
      counts.push_back(int(part.size));
      begins.push_back(int(part.begin));
      own_counts.push_back(int(mine.size));
      own_begins.push_back(int(mine.size) * r);
    }
    std::vector<T>& parts = scratch<T>();
    parts.resize(std::size_t(mine.size * size_));
    MPI_Request r;
    MPI_Ialltoallv(data, counts.data(), begins.data(), type<T>(), parts.data(), own_counts.data(), own_begins.data(),
                   type<T>(), data_, &r);
    wait(r, "all_reduce", what);
    detail::sum_in_order<T>(
        size_, [&](int k) { return parts.data() + k * mine.size; }, 1, [&](int) { return data + mine.begin; },
        mine.size);
    MPI_Iallgatherv(MPI_IN_PLACE, 0, type<T>(), data, counts.data(), begins.data(), type<T>(), data_, &r);
    wait(r, "all_reduce", what);
  }
  template <class T>
  TENET_TAG std::vector<T>& scratch() {
    return std::get<std::vector<T>>(scratch_);
  }

  TENET_TAG void agree(Header mine, std::string_view what) {
    check();
    what.copy(mine.what, sizeof mine.what - 1);
    const std::vector<Header> all = exchange(mine, what);
    for (int r = 0; r < size_; ++r) {
      if (all[std::size_t(r)].is("end")) fail_waiting(mine.op, what, r);
    }
    for (int r = 1; r < size_; ++r) {
      const Header &a = all[0], &b = all[std::size_t(r)];
      if (a.agrees(b)) continue;
      fail(text({"communicator: the ranks disagree: rank 0 is in ", a.str(), ", rank ", r, " is in ", b.str()}));
      check();
    }
  }
  /// The headers of all ranks.
  TENET_TAG std::vector<Header> exchange(const Header& mine, std::string_view what) {
    const char* bytes = reinterpret_cast<const char*>(&mine);
    std::vector<Header> all(std::size_t(size_), mine);
    for (int r = 0; r < size_; ++r) {
      if (r != rank_) post(data_, r, header, std::vector<char>(bytes, bytes + sizeof mine));
    }
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      auto& slot = headers_[std::size_t(r)];
      poll(mine.op, what, r, [&] {
        look_for_header(r);
        return slot.has_value();
      });
      all[std::size_t(r)] = *slot;
      slot.reset();
    }
    return all;
  }
  TENET_TAG void look_for_header(int from) {
    auto& slot = headers_[std::size_t(from)];
    std::vector<char> bytes;
    if (slot || !take(data_, from, header, bytes)) return;
    slot.emplace();
    std::memcpy(static_cast<void*>(&*slot), bytes.data(), std::min(bytes.size(), sizeof(Header)));
  }

  /// Sends without waiting: the data are kept until they have gone.
  TENET_TAG void post(MPI_Comm comm, int to, Tag tag, std::vector<char> data) {
    sending_.remove_if([](Sending& s) {
      int done = 0;
      MPI_Test(&s.request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
    Sending& s = sending_.emplace_back(Sending{MPI_REQUEST_NULL, std::move(data)});
    MPI_Isend(s.data.data(), int(s.data.size()), MPI_BYTE, to, tag, comm, &s.request);
  }
  /// Takes a message if one has come.
  TENET_TAG static bool take(MPI_Comm comm, int from, Tag tag, std::vector<char>& data) {
    int there = 0, bytes = 0;
    MPI_Message m;
    MPI_Status status;
    MPI_Improbe(from, tag, comm, &there, &m, &status);
    if (!there) return false;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    data.resize(std::size_t(bytes));
    MPI_Mrecv(data.data(), bytes, MPI_BYTE, &m, MPI_STATUS_IGNORE);
    return true;
  }

  /// Notes who has failed, and tells whether there was news.
  TENET_TAG bool hear() {
    for (int r = 0; r < size_; ++r) {
      std::vector<char> why;
      if (r == rank_ || !take(alarm_, r, failure, why)) continue;
      told_[std::size_t(r)] = true;
      fail(std::string(why.begin(), why.end()));
    }
    return !failure_.empty();
  }
  TENET_TAG void check() {
    if (hear()) throw Error(failure_);
  }
  [[noreturn]] TENET_TAG void fail_waiting(std::string_view op, std::string_view what, int r) {
    fail(text({op, label(what), ": rank ", rank_, " waits for rank ", r, ", which has ended"}));
    throw Error(failure_);
  }
  /// Waits until `ready()`; after the timeout it is rank `r` that was waited for.
  template <class Ready>
  TENET_TAG void poll(std::string_view op, std::string_view what, int r, const Ready& ready) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t round = 1; !ready(); ++round) {
      if (round % 64) continue;
      check();
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
      if (waited.count() > options_.timeout) {
        fail(text({op, label(what), ": rank ", rank_, " waited ", options_.timeout, " s for rank ", r}));
        check();
      }
      sched_yield();  // ranks may be more than cores
    }
  }
  TENET_TAG void wait(MPI_Request& request, std::string_view op, std::string_view what) {
    poll(op, what, rank_ ? 0 : size_ - 1, [&] {
      int done = 0;
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
  }
  /// Waits for a moment until all ranks know of the failure.
  TENET_TAG bool all_know() {
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
      hear();
      bool all = true;
      for (int r = 0; r < size_; ++r) all = all && (r == rank_ || told_[std::size_t(r)]);
      if (all || std::chrono::steady_clock::now() - begin > std::chrono::seconds(2)) return all;
      sched_yield();
    }
  }

  MpiOptions options_;
  MPI_Comm data_, alarm_;
  int rank_ = 0, size_ = 1;
  std::list<Sending> sending_;
  std::vector<std::optional<Header>> headers_;  // taken before their time
  std::vector<bool> told_;                      // the ranks that are known to know of the failure
  std::string failure_;
  std::tuple<std::vector<float>, std::vector<double>, std::vector<std::int64_t>, std::vector<bfloat16>> scratch_;
};

inline namespace TENET_CONFIG {

/// Calls `f(comm)` with this process's rank of MPI_COMM_WORLD, and starts MPI if need be; it is finalized when the
/// process exits. When a rank throws, those that wait for it get an Error that names it, and so does the caller on each
/// rank, with the rank's own exception nested. A rank that hangs is ended with the job.
template <class F>
void run_mpi(const F& f, const MpiOptions& options = {}) {
  int started = 0;
  MPI_Initialized(&started);
  if (!started) {
    int level = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
    std::atexit([] {
      int over = 0;
      MPI_Finalized(&over);
      if (!over) MPI_Finalize();
    });
  }
  MpiCommunicator comm(options);
  const auto failed = [&](const char* why) {
    comm.fail(text({"rank ", comm.rank(), " failed: ", why}));
    std::throw_with_nested(Error("run_mpi: " + comm.why_failed()));
  };
  try {
    f(comm);
    comm.end();
  } catch (const std::exception& e) {
    failed(e.what());
  } catch (...) {
    failed("an exception of unknown type");
  }
}

}  // namespace TENET_CONFIG
}  // namespace tenet::parallel
