// The sum of gradients over the ranks of a communicator.
#pragma once

#include <tenet/parallel/agreement.hpp>
#include <tenet/parallel/packing.hpp>
#include <tenet/parallel/pass.hpp>

namespace tenet::parallel {

struct DistributedOptions {
  std::int64_t bucket_bytes = std::int64_t(1) << 20;  ///< gradients are sent together, to about this size
  bool broadcast_buffers = true;                      ///< buffers are rank 0's in every forward of training
  /// bfloat16: gradients, except those of double, are rounded to it before their sum and after: half the bytes.
  DType compression = DType::float32;
};

/// The leaves that collect a rank's gradients between two exchanges, and the exchange.
template <class C>
class Reducer {
 public:
  TENET_TAG Reducer(C& comm, const DistributedOptions& options) : comm_(&comm), options_(options) {}

  bool synchronizes = true;

  /// Leaves for the parameters; those of the last call if the parameters are the same.
  TENET_TAG const std::vector<AnyTensor>& leaves(const detail::Trained& own) {
    bool same = own.tensors().size() == parameters_.size();
    for (std::size_t i = 0; same && i < parameters_.size(); ++i) same = parameters_[i].is(own.tensors()[i]);
    if (!same) {
      if (examples_) throw Error("distributed: the model got other parameters before its gradients were exchanged");
      parameters_ = own.tensors();
      names_ = own.names();
      leaves_ = own.leaves();
    }
    for (std::size_t i = 0; i < leaves_.size(); ++i) leaves_[i].impl()->requires_grad = parameters_[i].requires_grad();
    return leaves_;
  }
  /// Forgets the gradients since the last exchange.
  TENET_TAG void drop() {
    examples_ = 0;
    for (const AnyTensor& leaf : leaves_) leaf.zero_grad();
  }
  /// Counts a backward over so many examples.
  TENET_TAG void count(std::int64_t examples) { examples_ += examples; }

  /// Fills out[i] with the mean of the ranks' gradients, weighted by the examples they counted; leaves those undefined
  /// that no rank has. The leaves are empty then.
  TENET_TAG void exchange(AnyTensor* out) {
    std::vector<std::int64_t> used{std::exchange(examples_, 0)};
    for (const AnyTensor& leaf : leaves_) used.push_back(bool(leaf.impl()->grad));
    const std::int64_t mine = used[0];
    comm_->all_reduce(used.data(), std::int64_t(used.size()), "the number of examples and who uses which parameter");
    const double share = used[0] ? double(mine) / double(used[0]) : 0;
    std::vector<std::size_t> bucket;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      if (!used[i + 1]) continue;
      const std::int64_t size = leaves_[i].numel() * std::int64_t(item_size(wire(i)));
      if (!bucket.empty() && (bytes + size > options_.bucket_bytes || wire(i) != wire(bucket[0]))) {
        send(bucket, share, out);
        bucket.clear();
        bytes = 0;
      }
      bucket.push_back(i);
      bytes += size;
    }
    if (!bucket.empty()) send(bucket, share, out);
  }

 private:
  /// The type that a gradient is sent in.
  TENET_TAG DType wire(std::size_t i) const {
    return leaves_[i].dtype() == DType::float64 ? DType::float64 : options_.compression;
  }
  TENET_TAG void send(const std::vector<std::size_t>& bucket, double share, AnyTensor* out) {
    switch (wire(bucket[0])) {
      case DType::float64: return send_as<double>(bucket, share, out);
      case DType::bfloat16: return send_as<bfloat16>(bucket, share, out);
      default: return send_as<float>(bucket, share, out);
    }
  }

  template <class S>
  TENET_TAG void send_as(const std::vector<std::size_t>& bucket, double share, AnyTensor* out) {
    std::int64_t n = 0;
    for (const std::size_t i : bucket) {
      out[i] = detail::take_gradient(leaves_[i]);
      n += leaves_[i].numel();
    }
    // A gradient that is sent alone is its own buffer.
    const bool alone = bucket.size() == 1 && out[bucket[0]] && out[bucket[0]].dtype() == dtype_of<S>;
    const Tensor<S> buffer = alone ? Tensor<S>(out[bucket[0]]) : empty<S>({n});
    S* at = buffer.data();
    for (const std::size_t i : bucket) {
      detail::pack(out[i], 0, leaves_[i].numel(), share, at);
      at += leaves_[i].numel();
    }
    const std::string& first = names_[bucket.front()];
    comm_->all_reduce(
        buffer.data(), n,
        bucket.size() == 1 ? "gradient of " + first : "gradients of " + first + " to " + names_[bucket.back()]);
    if (alone) return;
    at = buffer.data();
    for (const std::size_t i : bucket) {
      if (!out[i]) out[i] = AnyTensor(make_impl(leaves_[i].shape(), leaves_[i].dtype()));
      detail::unpack(at, out[i]);
      at += leaves_[i].numel();
    }
  }

  C* comm_;
  DistributedOptions options_;
  std::vector<AnyTensor> parameters_, leaves_;
  std::vector<std::string> names_;
  std::int64_t examples_ = 0;  // of backwards since the last exchange
};

}  // namespace tenet::parallel
