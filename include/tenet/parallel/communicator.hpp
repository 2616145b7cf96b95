// What workers say to each other: the communicator, a concept, and the sums its engines make.
//
// All ranks call the same operations in the same order. Sums are taken in the order of the ranks, so that a result is
// bit-identical from run to run, on every rank, and from one engine to the other.
#pragma once

#include <tenet/core/dtype.hpp>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

namespace tenet::parallel {
inline namespace TENET_CONFIG {

/// A number that communicators sum; bfloat16 in float, rounded once.
template <class T>
concept Summable =
    std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::int64_t> || std::same_as<T, bfloat16>;

/// The rank of a worker among size() workers, and what they do together. The last argument of an operation, if given,
/// tells in its errors what the data are. When ranks call different operations, or with different sizes, when one ends
/// or fails, or when the others wait longer than a timeout, each rank that waits gets an Error that says who and where.
/// Over MPI one reduce_scatter takes less than 2^31 elements, one all_gather or send as many bytes; they throw Error.
///   broadcast       data[bytes] of rank `root` to all
///   all_reduce      data[n] becomes the sum over the ranks
///   reduce_scatter  out[n] is the sum over the ranks of in[rank * n, rank * n + n); `in` holds size() * n
///   all_gather      out[size() * bytes] holds in[bytes] of each rank, in their order
///   send, recv      `bytes` from one rank to another; send does not wait, messages keep their order
///   barrier         waits for all
///   split           a communicator of the ranks that give the same color >= 0, in the order of their keys and then of
///                   their ranks; each rank gets one. When one of its ranks fails, so do the ranks of all others.
///   world_rank      the rank, in the communicator that all splits began with, of a rank: errors name ranks by it
template <class C>
concept Communicator = requires(C& c, float* data, const float* in, void* out, const void* bytes, std::int64_t n,
                                int rank, std::string_view what) {
  int(c.rank());
  int(c.size());
  int(c.world_rank(rank));
  c.broadcast(out, n, rank, what);
  c.all_reduce(data, n, what);
  c.reduce_scatter(in, data, n, what);
  c.all_gather(bytes, out, n, what);
  c.send(bytes, n, rank, what);
  c.recv(out, n, rank, what);
  c.barrier(what);
  { c.split(rank, rank, what) } -> std::same_as<C>;
};

namespace detail {

template <class C>
void check_rank(const char* op, int rank, const C& comm) {
  if (rank < 0 || rank >= comm.size()) {
    throw IndexError(text({op, ": expected a rank in [0, ", comm.size(), "), got ", rank}));
  }
}

/// Elements [begin, begin + n) of the sum of the arrays, in their order, stored to each of `to` (which may be the
/// arrays).
template <Summable T, class From, class To>
void sum_in_order(int arrays, const From& from, int copies, const To& to, std::int64_t n) {
  using S = accumulate_t<T>;
  constexpr std::int64_t step = 16;  // constant, so that the compiler makes vectors of it
  S sum[step];
  T rounded[step];
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    const T* first = from(0) + i;
    for (std::int64_t j = 0; j < step; ++j) sum[j] = S(first[j]);
    for (int a = 1; a < arrays; ++a) {
      const T* x = from(a) + i;
      for (std::int64_t j = 0; j < step; ++j) sum[j] += S(x[j]);
    }
    for (std::int64_t j = 0; j < step; ++j) rounded[j] = T(sum[j]);
    for (int c = 0; c < copies; ++c) std::memcpy(static_cast<void*>(to(c) + i), rounded, sizeof rounded);
  }
  for (; i < n; ++i) {
    S s = S(from(0)[i]);
    for (int a = 1; a < arrays; ++a) s += S(from(a)[i]);
    for (int c = 0; c < copies; ++c) to(c)[i] = T(s);
  }
}

/// Part `i` of `parts` of [0, n): the parts differ by one element at most, the longer ones first.
struct Range {
  std::int64_t begin, size;
};
inline Range part_of(std::int64_t n, std::int64_t parts, std::int64_t i) {
  const std::int64_t each = n / parts, longer = n % parts;
  return {i * each + (i < longer ? i : longer), each + (i < longer)};
}

/// The ranks of `comm` that give this rank's color, by key and then by rank. Throws Error unless color >= 0.
template <class C>
std::vector<int> members_of(C& comm, int color, int key, std::string_view what) {
  if (color < 0) throw Error(text({"split: expected a color >= 0, got ", color}));
  struct Choice {
    int color, key;
  };
  const Choice mine{color, key};
  std::vector<Choice> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(&mine, all.data(), sizeof mine, what.empty() ? "split" : what);
  std::vector<int> members;
  for (int r = 0; r < comm.size(); ++r) {
    if (all[std::size_t(r)].color == color) members.push_back(r);
  }
  std::stable_sort(members.begin(), members.end(),
                   [&](int a, int b) { return all[std::size_t(a)].key < all[std::size_t(b)].key; });
  return members;
}

}  // namespace detail
}  // namespace TENET_CONFIG
}  // namespace tenet::parallel
