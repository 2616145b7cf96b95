// A parameter whose elements are spread over the ranks of a communicator.
#pragma once

#include <tenet/core/factories.hpp>
#include <tenet/nn/state_dict.hpp>
#include <tenet/parallel/agreement.hpp>
#include <tenet/parallel/packing.hpp>

#include <optional>

namespace tenet::parallel {

/// Rank r keeps elements [r * part, (r + 1) * part) in row-major order, the last ranks zeros where that passes the end.
/// The whole parameter has memory of its own while it is in use, or shares it with the shards for ever (`keeps_whole`).
/// All ranks call all but the accessors and part_of().
template <class C>
class ShardedParameter {
 public:
  TENET_TAG ShardedParameter(C& comm, std::string name, const AnyTensor& parameter, bool keeps_whole)
      : comm_(&comm),
        name_(std::move(name)),
        keeps_whole_(keeps_whole),
        part_((parameter.numel() + comm.size() - 1) / comm.size()),
        memory_(whole_memory(parameter.dtype())) {
    whole_ = AnyTensor(make_impl(parameter.shape(), parameter.dtype(), memory_));
    nn::detail::copy_elements(*whole_.impl(), *parameter.impl());
    char* const end = static_cast<char*>(memory_->data) + bytes_of(parameter.numel());
    std::memset(end, 0, std::size_t(bytes_of(part_ * comm.size() - parameter.numel())));
    const AnyTensor mine(make_alias(*whole_.impl(), {part_}, {1}, part_ * comm.rank()));
    shard_ = mine;
    seen_ = mine.version();
    if (!keeps_whole) {
      shard_ = AnyTensor(make_impl({part_}, parameter.dtype()));
      nn::detail::copy_elements(*shard_.impl(), *mine.impl());
      drop_memory();
    }
    shard_.impl()->requires_grad = parameter.requires_grad();
  }

  TENET_TAG const std::string& name() const { return name_; }
  /// This rank's part [part]: a leaf, to be trained.
  TENET_TAG const AnyTensor& shard() const { return shard_; }
  /// The whole parameter, a leaf: its shape always, its elements between gather() and release().
  TENET_TAG AnyTensor& whole() { return whole_; }

  /// Gives the whole parameter its elements, until as many calls of release().
  TENET_TAG void gather() {
    if (users_ == 0) {
      if (!memory_) memory_ = whole_memory(shard_.dtype());
      if (seen_ != shard_.version()) {
        comm_->all_gather(shard_.data_ptr(), memory_->data, bytes_of(part_), name_);
        if (!keeps_whole_) memory_->version = shard_.version();  // graphs see whether it was stepped since
        seen_ = shard_.version();
      }
      whole_.impl()->storage = memory_;
      whole_.impl()->data = memory_->data;
    }
    whole_.impl()->requires_grad = shard_.requires_grad();
    ++users_;
  }
  TENET_TAG void release() {
    if (--users_ == 0 && !keeps_whole_) drop_memory();
  }

  /// This rank's part of the sum over the ranks of share * gradient, for the shard; undefined if no rank has a
  /// gradient.
  TENET_TAG AnyTensor reduce(AnyTensor gradient, double share) {
    if (shard_.dtype() == DType::float64) return reduce_as<double>(std::move(gradient), share);
    return reduce_as<float>(std::move(gradient), share);
  }

  /// On rank 0 the whole tensor of which each rank has `mine`, a tensor like the shard; undefined on the others.
  TENET_TAG AnyTensor collect(const AnyTensor& mine) const {
    const std::int64_t bytes = mine.numel() * std::int64_t(item_size(mine.dtype()));
    if (comm_->rank() != 0) {
      comm_->send(mine.data_ptr(), bytes, 0, name_);
      return {};
    }
    const StorageRef memory = whole_memory(mine.dtype());
    if (bytes) std::memcpy(memory->data, mine.data_ptr(), std::size_t(bytes));
    for (int r = 1; r < comm_->size(); ++r) comm_->recv(static_cast<char*>(memory->data) + r * bytes, bytes, r, name_);
    return AnyTensor(make_impl(whole_.shape(), mine.dtype(), memory));
  }
  /// This rank's part [part] of a whole tensor. Throws ShapeError, naming `what`, for another shape.
  TENET_TAG AnyTensor part_of(const AnyTensor& whole, std::string_view what) const {
    if (!(whole.shape() == whole_.shape())) {
      throw ShapeError(text({"fully_sharded: ", what, ": expected ", whole_.shape(), ", got ", whole.shape()}));
    }
    const std::int64_t item = std::int64_t(item_size(whole.dtype()));
    const detail::Range mine = range(comm_->rank());
    AnyTensor out(make_impl({part_}, whole.dtype()));
    std::memset(out.data_ptr(), 0, std::size_t(part_ * item));
    const AnyTensor from = detail::row_major(whole);
    if (mine.size) {
      std::memcpy(out.data_ptr(), static_cast<const char*>(from.data_ptr()) + mine.begin * item,
                  std::size_t(mine.size * item));
    }
    return out;
  }

 private:
  TENET_TAG std::int64_t bytes_of(std::int64_t n) const { return n * std::int64_t(item_size(whole_.dtype())); }
  TENET_TAG StorageRef whole_memory(DType dtype) const {
    return make_storage(std::size_t(part_ * comm_->size()) * item_size(dtype));
  }
  /// The elements of the parameter that a rank has.
  TENET_TAG detail::Range range(int rank) const {
    const std::int64_t n = whole_.numel(), begin = std::min(n, rank * part_);
    return {begin, std::min(part_, n - begin)};
  }
  TENET_TAG void drop_memory() {
    memory_ = {};
    seen_ = {};
    whole_.impl()->storage = nothing_;
    whole_.impl()->data = nothing_->data;
  }

  /// Each part travels with the number of ranks that have a gradient behind it.
  template <class S>
  TENET_TAG AnyTensor reduce_as(AnyTensor gradient, double share) {
    const std::int64_t block = part_ + 1;
    Tensor<S> all = empty<S>({comm_->size() * block});
    for (int r = 0; r < comm_->size(); ++r) {
      S* const to = all.data() + r * block;
      const detail::Range part = range(r);
      detail::pack(gradient, part.begin, part.size, share, to);
      std::fill(to + part.size, to + part_, S(0));
      to[part_] = S(gradient.defined());
    }
    gradient = {};
    const Tensor<S> sum = empty<S>({block});
    comm_->reduce_scatter(all.data(), sum.data(), block, name_);
    all = {};
    if (sum.data()[part_] == 0) return {};
    const AnyTensor mine(make_alias(*sum.impl(), {part_}, {1}, 0));
    if (mine.dtype() == shard_.dtype()) return mine;
    const AnyTensor out(make_impl({part_}, shard_.dtype()));
    detail::unpack(sum.data(), out);
    return out;
  }

  C* comm_;
  std::string name_;
  bool keeps_whole_;
  std::int64_t part_;
  StorageRef memory_, nothing_ = make_storage(0);
  AnyTensor whole_, shard_;
  std::optional<std::uint32_t> seen_;  // the version of the shard that the memory holds
  int users_ = 0;
};

}  // namespace tenet::parallel
