// Whether the ranks hold the same model.
#pragma once

#include <tenet/core/hash.hpp>
#include <tenet/nn/state_dict.hpp>
#include <tenet/parallel/communicator.hpp>

#include <algorithm>

namespace tenet::parallel {
inline namespace TENET_CONFIG {
namespace detail {

/// `t` itself if it is contiguous, else its elements in row-major order.
inline AnyTensor row_major(const AnyTensor& t) {
  if (t.is_contiguous()) return t;
  AnyTensor out(make_impl(t.shape(), t.dtype()));
  nn::detail::copy_elements(*out.impl(), *t.impl());
  return out;
}
inline std::int64_t bytes_of(const AnyTensor& t) { return t.numel() * std::int64_t(item_size(t.dtype())); }

inline std::string describe(const nn::StateSlot& s) {
  return text(
      {s.trains ? "parameter '" : "buffer '", s.name, "' ", s.tensor->shape(), " of ", name(s.tensor->dtype())});
}

/// Throws Error on every rank unless all give the same numbers; `describe(i)` tells what number i is of on this rank.
template <class C, class Describe>
void check_equal(C& comm, const std::vector<std::uint64_t>& mine, const char* differ, const Describe& describe) {
  const auto ranks = std::size_t(comm.size());
  std::vector<std::uint64_t> sizes(ranks);
  const std::uint64_t size = mine.size();
  comm.all_gather(&size, sizes.data(), sizeof size, "the number of tensors");
  for (std::size_t r = 1; r < ranks; ++r) {
    if (sizes[r] == sizes[0]) continue;
    throw Error(text({"distributed: rank ", comm.world_rank(0), " has ", sizes[0], " parameters and buffers, rank ",
                      comm.world_rank(int(r)), " has ", sizes[r]}));
  }
  std::vector<std::uint64_t> all(ranks * mine.size());
  comm.all_gather(mine.data(), all.data(), std::int64_t(8 * mine.size()), "hashes");
  for (std::size_t i = 0; i < mine.size(); ++i) {
    for (std::size_t r = 1; r < ranks; ++r) {
      if (all[r * mine.size() + i] == all[i]) continue;
      constexpr std::size_t most = 256;
      std::vector<char> texts(ranks * most);
      std::string own = describe(i);
      own.resize(most - 1);
      comm.all_gather(own.c_str(), texts.data(), most, "descriptions");
      throw Error(text({"distributed: the ranks ", differ, ": rank ", comm.world_rank(0), " has ", texts.data(),
                        ", rank ", comm.world_rank(int(r)), " has ", &texts[r * most]}));
    }
  }
}

}  // namespace detail

/// Throws Error on every rank, naming the first that differs, unless all ranks have parameters and buffers of the same
/// names, shapes and types in the same order.
template <Communicator C>
void check_layout(C& comm, const std::vector<nn::StateSlot>& slots) {
  std::vector<std::uint64_t> hashes;
  for (const nn::StateSlot& s : slots) {
    const std::string what = detail::describe(s);
    hashes.push_back(hash_bytes(what.data(), what.size()));
  }
  detail::check_equal(comm, hashes, "differ in their models",
                      [&](std::size_t i) { return detail::describe(slots[i]); });
}

/// Throws Error on every rank, naming the first that differs, unless all ranks have the same values, bit by bit.
template <Communicator C>
void check_values(C& comm, const std::vector<nn::StateSlot>& slots) {
  std::vector<std::uint64_t> hashes;
  for (const nn::StateSlot& s : slots) {
    const AnyTensor t = detail::row_major(*s.tensor);
    hashes.push_back(hash_bytes(t.data_ptr(), std::size_t(detail::bytes_of(t))));
  }
  detail::check_equal(comm, hashes, "differ in their values", [&](std::size_t i) {
    return text({detail::describe(slots[i]), " with hash ", hashes[i]});
  });
}

/// Every rank takes over the values of rank `root`. The models must agree; see check_layout().
template <Communicator C>
void broadcast_values(C& comm, const std::vector<nn::StateSlot>& slots, int root = 0) {
  for (const nn::StateSlot& s : slots) {
    const AnyTensor t = detail::row_major(*s.tensor);
    comm.broadcast(t.data_ptr(), detail::bytes_of(t), root, s.name);
    if (comm.rank() == root) continue;
    if (t.is(*s.tensor)) ++t.impl()->storage->version;
    else nn::detail::copy_elements(*s.tensor->impl(), *t.impl());
  }
}

/// All ranks start from rank 0's values, and that is checked. Throws Error as check_layout() and check_values() do.
template <Communicator C>
void start_alike(C& comm, const std::vector<nn::StateSlot>& slots) {
  check_layout(comm, slots);
  broadcast_values(comm, slots);
  check_values(comm, slots);
}

/// Every rank takes over rank 0's values of what does not train.
template <Communicator C>
void broadcast_buffers(C& comm, const std::vector<nn::StateSlot>& slots) {
  std::vector<nn::StateSlot> buffers;
  for (const nn::StateSlot& s : slots) {
    if (!s.trains) buffers.push_back(s);
  }
  broadcast_values(comm, buffers);
}

}  // namespace TENET_CONFIG
}  // namespace tenet::parallel
