// The communicator of MPI ranks; link tenet::mpi. A program for any number of ranks:
//   int main() {
//     parallel::run_mpi([](auto& comm) { ... comm.all_reduce(data, n); ... });
//   }
//   mpirun -np 4 program
#pragma once

#include <tenet/parallel/communicator.hpp>
#include <tenet/parallel/mpi_world.hpp>

#include <exception>
#include <limits>
#include <memory>
#include <numeric>

namespace tenet::parallel {

/// Ranks of MPI, all of MPI_COMM_WORLD or some; see Communicator. Before an operation moves data, the ranks tell each
/// other what they are about to do: so they notice where they disagree, who has ended, and who is missing. One thread
/// of a rank uses it.
class MpiCommunicator {
 public:
  /// Of all ranks at once; MPI must be initialized. Throws Error unless the timeout is positive.
  TENET_TAG explicit MpiCommunicator(const MpiOptions& options = {})
      : MpiCommunicator(std::make_shared<MpiWorld>(options)) {}
  TENET_TAG ~MpiCommunicator() {
    // What a failure left under way may still use it.
    if (!world_->failed() && !std::uncaught_exceptions()) {
      MPI_Comm_free(&comm_);
    } else {
      static auto& kept = *new std::list<decltype(scratch_)>;
      kept.push_back(std::move(scratch_));
    }
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  TENET_TAG int rank() const { return rank_; }
  TENET_TAG int size() const { return size_; }
  TENET_TAG int world_rank(int rank) const {
    detail::check_rank("world_rank", rank, *this);
    return in_world_[std::size_t(rank)];
  }

  TENET_TAG void barrier(std::string_view what = "") { agree({"barrier"}, what); }
  TENET_TAG void broadcast(void* data, std::int64_t bytes, int root = 0, std::string_view what = "") {
    detail::check_rank("broadcast", root, *this);
    agree({"broadcast", "bytes", bytes, root}, what);
    for (std::int64_t at = 0; at < bytes; at += most) {
      MPI_Request r;
      MPI_Ibcast(static_cast<char*>(data) + at, int(std::min(most, bytes - at)), MPI_BYTE, root, comm_, &r);
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
    check_size("reduce_scatter", n, what);
    std::vector<T>& parts = scratch<T>();
    parts.resize(std::size_t(n * size_));
    MPI_Request r;
    MPI_Ialltoall(in, int(n), type<T>(), parts.data(), int(n), type<T>(), comm_, &r);
    wait(r, "reduce_scatter", what);
    detail::sum_in_order<T>(
        size_, [&](int k) { return parts.data() + k * n; }, 1, [&](int) { return out; }, n);
  }
  TENET_TAG void all_gather(const void* in, void* out, std::int64_t bytes, std::string_view what = "") {
    agree({"all_gather", "bytes", bytes}, what);
    check_size("all_gather", bytes, what);
    const bool in_place = in == static_cast<char*>(out) + rank_ * bytes;
    MPI_Request r;
    MPI_Iallgather(in_place ? MPI_IN_PLACE : in, int(bytes), MPI_BYTE, out, int(bytes), MPI_BYTE, comm_, &r);
    wait(r, "all_gather", what);
  }
  TENET_TAG void send(const void* data, std::int64_t bytes, int to, std::string_view what = "") {
    detail::check_rank("send", to, *this);
    check_size("send", bytes, what);
    world_->check();
    const char* p = static_cast<const char*>(data);
    world_->post(comm_, to, message, std::vector<char>(p, p + bytes));
  }
  TENET_TAG void recv(void* data, std::int64_t bytes, int from, std::string_view what = "") {
    detail::check_rank("recv", from, *this);
    MpiWorld::Transfer* received = nullptr;
    const auto ready = [&] {
      if (!received) received = world_->begin_receive(comm_, from, message);
      return received && MpiWorld::is_done(received->request);
    };
    wait(from, ready, "recv", what);
    const std::vector<char>& got = received->data;
    if (std::int64_t(got.size()) != bytes) {
      world_->fail(text({"communicator: recv", label(what), ": rank ", world_rank(rank_), " expected ", bytes,
                         " bytes from rank ", world_rank(from), ", got ", got.size()}));
      world_->check();
    }
    if (bytes) std::memcpy(data, got.data(), got.size());
    world_->drop(received);
  }

  TENET_TAG MpiCommunicator split(int color, int key = 0, std::string_view what = "") {
    std::vector<int> members = detail::members_of(*this, color, key, what);
    for (int& r : members) r = world_rank(r);
    MPI_Comm comm;
    MPI_Comm_split(comm_, color, key, &comm);  // it waits: but all ranks have just said that they come
    return MpiCommunicator(world_, comm, std::move(members));
  }

  /// What all communicators of this process share.
  TENET_TAG MpiWorld& world() const { return *world_; }

 private:
  enum Tag : int { header, message };
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
  };

  TENET_TAG explicit MpiCommunicator(std::shared_ptr<MpiWorld> world) : world_(std::move(world)) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    in_world_.resize(std::size_t(world_->size()));
    std::iota(in_world_.begin(), in_world_.end(), 0);
    begin();
  }
  TENET_TAG MpiCommunicator(std::shared_ptr<MpiWorld> world, MPI_Comm comm, std::vector<int> in_world)
      : world_(std::move(world)), comm_(comm), in_world_(std::move(in_world)) {
    begin();
  }
  TENET_TAG void begin() {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }

  TENET_TAG TENET_COLD static std::string label(std::string_view what) {
    return what.empty() ? std::string() : text({" (", what, ")"});
  }
  TENET_TAG TENET_COLD std::string describe(int rank, const Header& h) const {
    std::string s = text({"rank ", world_rank(rank), " is in ", h.op, label(h.what)});
    if (h.count) s += text({" of ", h.count, " ", h.unit});
    if (h.is("broadcast")) s += text({" from rank ", world_rank(h.root)});
    return s;
  }
  template <class T>
  TENET_TAG static MPI_Datatype type() {
    if constexpr (std::same_as<T, float>) return MPI_FLOAT;
    else if constexpr (std::same_as<T, double>) return MPI_DOUBLE;
    else if constexpr (std::same_as<T, bfloat16>) return MPI_UINT16_T;
    else return MPI_INT64_T;
  }
  TENET_TAG static void check_size(const char* op, std::int64_t n, std::string_view what) {
    if (n > std::numeric_limits<int>::max()) {
      throw Error(text({op, label(what), ": ", n, " are more than MPI counts in one call"}));
    }
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
                   type<T>(), comm_, &r);
    wait(r, "all_reduce", what);
    detail::sum_in_order<T>(
        size_, [&](int k) { return parts.data() + k * mine.size; }, 1, [&](int) { return data + mine.begin; },
        mine.size);
    MPI_Iallgatherv(MPI_IN_PLACE, 0, type<T>(), data, counts.data(), begins.data(), type<T>(), comm_, &r);
    wait(r, "all_reduce", what);
  }
  template <class T>
  TENET_TAG std::vector<T>& scratch() {
    return std::get<std::vector<T>>(scratch_);
  }

  TENET_TAG void agree(Header mine, std::string_view what) {
    world_->check();
    what.copy(mine.what, sizeof mine.what - 1);
    const std::vector<Header> all = exchange(mine, what);
    for (int r = 1; r < size_; ++r) {
      const Header &a = all[0], &b = all[std::size_t(r)];
      if (a.agrees(b)) continue;
      world_->fail(text({"communicator: the ranks disagree: ", describe(0, a), ", ", describe(r, b)}));
      world_->check();
    }
  }
  /// The headers of all ranks.
  TENET_TAG std::vector<Header> exchange(const Header& mine, std::string_view what) {
    const char* bytes = reinterpret_cast<const char*>(&mine);
    std::vector<Header> all(std::size_t(size_), mine);
    for (int r = 0; r < size_; ++r) {
      if (r != rank_) world_->post(comm_, r, header, std::vector<char>(bytes, bytes + sizeof mine));
    }
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      std::vector<char> got;
      wait(
          r, [&] { return MpiWorld::take(comm_, r, header, got); }, mine.op, what);
      std::memcpy(static_cast<void*>(&all[std::size_t(r)]), got.data(), std::min(got.size(), sizeof(Header)));
    }
    return all;
  }
  /// Waits for a message of rank `of`.
  template <class Ready>
  TENET_TAG void wait(int of, const Ready& ready, std::string_view op, std::string_view what) {
    world_->wait(world_rank(of), ready, [&] { return std::string(op) + label(what); });
  }
  TENET_TAG void wait(MPI_Request& request, std::string_view op, std::string_view what) {
    try {
      world_->wait(
          -1, [&] { return MpiWorld::is_done(request); }, [&] { return std::string(op) + label(what); });
    } catch (...) {
      world_->settle(request);
      throw;
    }
  }

  std::shared_ptr<MpiWorld> world_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::vector<int> in_world_;  // the rank in the world of each rank
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
    comm.world().fail(text({"rank ", comm.rank(), " failed: ", why}));
    std::throw_with_nested(Error("run_mpi: " + comm.world().failure()));
  };
  try {
    f(comm);
    comm.world().end();
  } catch (const std::exception& e) {
    failed(e.what());
  } catch (...) {
    failed("an exception of unknown type");
  }
}

}  // namespace TENET_CONFIG
}  // namespace tenet::parallel
