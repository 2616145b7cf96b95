// Tensors that move from rank to rank, and their gradients back.
//   Tensor<float> x = data;
//   if (comm.rank() == 0) x = part1(x);
//   x = parallel::transfer(x, 0, 1, comm);
//   if (comm.rank() == 1) x = criterion(part2(x), labels);
//   x.backward();
#pragma once

#include <tenet/parallel/message.hpp>
#include <tenet/parallel/pass.hpp>

namespace tenet::state {
inline constinit thread_local std::int64_t last_transfer = 0;
}

namespace tenet::parallel {
inline namespace TENET_CONFIG {
namespace detail {

struct TransferName {
  static constexpr const char* name = "transfer";
};

/// Backward of a transfer: the gradient takes the way back.
template <class T, class C>
struct TransferPass final : Pass {
  C* comm;
  int from, to;
  std::int64_t number;  // of rank `from`
  Shape shape;          // of the input; on rank `to` it only stands for what comes before in the graph

  void backward(const AnyTensor& gradient, AnyTensor* out) override {
    Envelope e{.transfer = number};
    if (comm->rank() == from) {
      out[0] = recv_tensor<T>(*comm, "transfer", to, e, "gradient");
      if (e.transfer != number) {
        throw Error(text({"transfer: rank ", comm->world_rank(from), " expected the gradient of its transfer ", number,
                          " from rank ", comm->world_rank(to), ", got that of ", e.transfer}));
      }
    } else {
      send_tensor(*comm, from, gradient, e, "gradient");
      out[0] = zeros<T>(shape);
    }
  }
};

/// Backward takes nodes of a higher level first: so it meets the transfers of a rank in the reverse order of their
/// forward. As all ranks move tensors in one order, none waits for another that waits for it, whatever the graph.
inline void number_transfer(const AnyTensor& y) {
  std::int64_t& level = static_cast<autograd::Node*>(y.impl()->node.get())->level;
  level = state::last_transfer = std::max(level, state::last_transfer + 1);
}

}  // namespace detail

/// Moves `x` of rank `from` to rank `to`, which gets its values. Rank `from` gets a scalar 0 that stands for x in the
/// graph: backward() of it, or of what it becomes when it is moved back, waits for the gradient. Other ranks get their
/// `x` as it is. On rank `to`, `x` is undefined, or what stands for the tensor there; its values do not matter.
///
/// All ranks transfer in one order, and then all call backward(): so no graph can make them wait for each other in a
/// circle. A gradient that never comes, for the other rank's loss does not depend on the tensor, is waited for until
/// the communicator's timeout. The communicator must outlive the graph.
///
/// Throws IndexError for ranks outside the communicator, on rank `to` DTypeError if the values are not of T, and Error
/// if rank `from` wants a gradient and rank `to` is in no_grad; backward throws NotImplemented for create_graph.
/// It takes the place of x.to(device) between parts of a PyTorch model on several devices.
template <class T, Communicator C>
Tensor<T> transfer(const Tensor<T>& x, int from, int to, C& comm) {
  detail::check_rank("transfer", from, comm);
  detail::check_rank("transfer", to, comm);
  if (from == to || (comm.rank() != from && comm.rank() != to)) return x;
  detail::Envelope e;
  Tensor<T> y, input = x;
  if (comm.rank() == from) {
    e.wants_gradient = state::grad_enabled && x.requires_grad();
    e.transfer = state::last_transfer + 1;
    detail::send_tensor(comm, to, x, e, "values");
    y = zeros<T>({});
  } else {
    y = detail::recv_tensor<T>(comm, "transfer", from, e, "values");
    if constexpr (FloatElement<T>) {
      if (!x.defined() || !x.requires_grad()) input = zeros<T>({}).requires_grad_();
    }
  }
  if constexpr (FloatElement<T>) {
    if (e.wants_gradient) {
      auto pass = std::make_unique<detail::TransferPass<T, C>>();
      pass->comm = &comm;
      pass->from = from;
      pass->to = to;
      pass->number = e.transfer;
      pass->shape = input.shape();
      detail::record_pass<detail::TransferName>(y, {input}, std::move(pass));
      detail::number_transfer(y);
    }
  }
  return y;
}

}  // namespace TENET_CONFIG
}  // namespace tenet::parallel
