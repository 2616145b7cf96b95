// Parameters of which each rank has a part, and the whole: a model's state in the form that a checkpoint, another
// number of ranks, and PyTorch read.
#pragma once

#include <tenet/nn/module.hpp>
#include <tenet/parallel/agreement.hpp>
#include <tenet/parallel/communicator_ref.hpp>

namespace tenet::parallel {

/// Which part of a parameter a rank has: dimension `dim` is made of `blocks` equal blocks, and the rank has its part of
/// each, in the order of the ranks.
struct Shard {
  int dim = 0;
  int blocks = 1;
};

inline namespace TENET_CONFIG {
namespace detail {

/// A tensor as rows, and those of one rank among them: row (i * ranks + rank) for each i < rows.
struct ShardRows {
  std::int64_t rows, bytes;
  /// `part` is the shape of a rank's part.
  ShardRows(const Shape& part, DType dtype, const Shard& s) : rows(s.blocks), bytes(std::int64_t(item_size(dtype))) {
    for (int d = 0; d < s.dim; ++d) rows *= part[d];
    for (int d = s.dim; d < part.size(); ++d) bytes *= part[d];
    bytes /= s.blocks;
  }
};

/// A copy of this rank's part. Throws ShapeError, which begins with `what`, unless the ranks divide the dimension.
inline AnyTensor shard_of(const AnyTensor& whole, const Shard& shard, const CommunicatorRef& comm,
                          std::string_view what) {
  Dims sizes = whole.shape();
  if (sizes[shard.dim] % (comm.size() * shard.blocks)) {
    throw ShapeError(text({what, ": expected a size of dimension ", shard.dim, " that ", comm.size(),
                           " ranks divide, got ", whole.shape()}));
  }
  sizes[shard.dim] /= comm.size();
  const AnyTensor from = row_major(whole);
  AnyTensor part(make_impl(sizes, whole.dtype()));
  const ShardRows s(part.shape(), part.dtype(), shard);
  for (std::int64_t i = 0; s.bytes && i < s.rows; ++i) {
    std::memcpy(static_cast<char*>(part.data_ptr()) + i * s.bytes,
                static_cast<const char*>(from.data_ptr()) + (i * comm.size() + comm.rank()) * s.bytes,
                std::size_t(s.bytes));
  }
  return part;
}

/// The whole that the ranks have parts of.
inline AnyTensor whole_of(const AnyTensor& part, const Shard& shard, const CommunicatorRef& comm,
                          std::string_view what) {
  const AnyTensor mine = row_major(part);
  Dims sizes = part.shape();
  sizes[shard.dim] *= comm.size();
  AnyTensor whole(make_impl(sizes, part.dtype()));
  const ShardRows s(part.shape(), part.dtype(), shard);
  std::vector<char> parts(std::size_t(s.rows * s.bytes * comm.size()));
  comm.all_gather(mine.data_ptr(), parts.data(), s.rows * s.bytes, what);
  const char* from = parts.data();
  for (int r = 0; s.bytes && r < comm.size(); ++r) {
    for (std::int64_t i = 0; i < s.rows; ++i, from += s.bytes) {
      std::memcpy(static_cast<char*>(whole.data_ptr()) + (i * comm.size() + r) * s.bytes, from, std::size_t(s.bytes));
    }
  }
  return whole;
}

/// Calls f(name, shard, communicator) for each parameter of `model` that is split over ranks. A layer names its own by
/// each_shard(f), and its communicator by comm().
template <nn::IsModule M, class F>
void each_shard(M& model, const F& f) {
  model.each_module([&](const std::string& layer, auto& m) {
    if constexpr (requires { m.each_shard([](const char*, const Shard&) {}); }) {
      m.each_shard([&](const char* name, const Shard& shard) {
        f(layer.empty() ? std::string(name) : text({layer, ".", name}), shard, m.comm());
      });
    }
  });
}

/// Throws Error if layers of the model are split over ranks: a rank's state is not whole then.
template <nn::IsModule M>
void expect_whole(const char* op, M& model) {
  each_shard(model, [&](const std::string& name, const Shard&, const CommunicatorRef& comm) {
    if (comm.size() == 1) return;
    throw Error(text({op, ": '", name, "' is split over ranks: save and load by parallel::whole_state_dict(model) and ",
                      "load_whole_state_dict"}));
  });
}

inline AnyTensor* entry_of(nn::StateDict& dict, const std::string& name) {
  for (auto& [n, tensor] : dict) {
    if (n == name) return &tensor;
  }
  return nullptr;
}

}  // namespace detail

/// The state of the model that is not split: state_dict() with the ranks' parts put together. Of all ranks at once;
/// each gets it. What is not split are the model's own tensors.
template <nn::IsModule M>
nn::StateDict whole_state_dict(M& model) {
  nn::StateDict dict = model.state_dict();
  detail::each_shard(model, [&](const std::string& name, const Shard& shard, const CommunicatorRef& comm) {
    if (AnyTensor* t = detail::entry_of(dict, name)) *t = detail::whole_of(*t, shard, comm, name);
  });
  return dict;
}

/// load_state_dict() of the state of the model that is not split: each rank takes its parts. Throws as that does, and
/// ShapeError where the ranks do not divide a size; nothing is changed then.
template <nn::IsModule M>
void load_whole_state_dict(M& model, nn::StateDict dict, const nn::LoadOptions& options = {}) {
  detail::each_shard(model, [&](const std::string& name, const Shard& shard, const CommunicatorRef& comm) {
    AnyTensor* t = detail::entry_of(dict, name);
    if (t && t->dim() > shard.dim) *t = detail::shard_of(*t, shard, comm, "load_whole_state_dict: " + name);
  });
  model.load_state_dict(dict, options);
}

}  // namespace TENET_CONFIG
}  // namespace tenet::parallel
