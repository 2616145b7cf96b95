// Tensors on their way between ranks: what they are, type and shape travel ahead of the elements.
#pragma once

#include <tenet/autograd/grad_mode.hpp>
#include <tenet/parallel/agreement.hpp>

namespace tenet::parallel {
inline namespace TENET_CONFIG {
namespace detail {

/// What goes ahead of a tensor's elements.
struct Envelope {
  static constexpr std::int64_t is_envelope = 0x65706F6C65766E65;

  std::int64_t mark = is_envelope, dtype = 0, dim = 0, sizes[max_rank] = {};
  std::int64_t wants_gradient = 0;       ///< whether the sender waits for a gradient in backward
  std::int64_t transfer = 0;             ///< which of the sender's transfers waits for it
  std::int64_t parts = 1, examples = 0;  ///< of how many micro-batches this is one, and of how many examples
  char what[64] = {};                    ///< what the tensor is: both ends must mean the same
};

inline void seal(Envelope& e, const AnyTensor& t, std::string_view what) {
  what.copy(e.what, sizeof e.what - 1);
  e.dtype = std::int64_t(t.dtype());
  e.dim = t.dim();
  std::copy(t.shape().begin(), t.shape().end(), e.sizes);
}

/// An uninitialized tensor as the envelope describes it; ranks are those of the world. Throws DTypeError if it is not
/// of T, Error if that is none or not `what`.
template <class T>
Tensor<T> open(const Envelope& e, const char* op, int rank, int from, std::string_view what) {
  if (e.mark != Envelope::is_envelope || e.dim < 0 || e.dim > max_rank) {
    throw Error(text({op, ": rank ", rank, " expected a tensor (", what, ") from rank ", from, ", got other bytes"}));
  }
  if (e.what != what.substr(0, sizeof e.what - 1)) {
    throw Error(text({op, ": rank ", rank, " expected ", what, " from rank ", from, ", got ", e.what}));
  }
  Dims sizes;
  for (std::int64_t d = 0; d < e.dim; ++d) sizes.push_back(e.sizes[d]);
  if (e.dtype != std::int64_t(dtype_of<T>)) {
    throw DTypeError(text({op, ": rank ", rank, " takes ", name(dtype_of<T>), ", rank ", from, " sent ", sizes, " of ",
                           name(DType(e.dtype)), " (", what, ")"}));
  }
  return Tensor<T>(make_impl(sizes, dtype_of<T>));
}

/// Sends the elements of `t`, in row-major order, and what they are; does not wait.
template <Communicator C>
void send_tensor(C& comm, int to, const AnyTensor& t, Envelope e, std::string_view what) {
  seal(e, t, what);
  comm.send(&e, sizeof e, to, what);
  const AnyTensor x = row_major(t);
  comm.send(x.data_ptr(), bytes_of(x), to, what);
}

/// Waits for a tensor of send_tensor(). Errors begin with `op`; throws DTypeError if its elements are not T, Error if
/// it is not `what` or its gradient is wanted of a rank in no_grad.
template <class T, Communicator C>
Tensor<T> recv_tensor(C& comm, const char* op, int from, Envelope& e, std::string_view what) {
  comm.recv(&e, sizeof e, from, what);
  const int rank = comm.world_rank(comm.rank()), sender = comm.world_rank(from);
  const Tensor<T> t = open<T>(e, op, rank, sender, what);
  if (e.wants_gradient && !state::grad_enabled) {
    throw Error(text({op, ": rank ", sender, " wants a gradient, rank ", rank, " is in no_grad"}));
  }
  comm.recv(t.data_ptr(), bytes_of(t), from, what);
  return t;
}

/// Gives all ranks rank `root`'s tensor `t`. Throws DTypeError, on those that differ, if its elements are not T.
template <class T, Communicator C>
Tensor<T> broadcast_tensor(C& comm, const char* op, int root, const AnyTensor& t, std::string_view what) {
  Envelope e;
  const bool mine = comm.rank() == root;
  if (mine) seal(e, t, what);
  comm.broadcast(&e, sizeof e, root, what);
  const Tensor<T> out = open<T>(e, op, comm.world_rank(comm.rank()), comm.world_rank(root), what);
  if (mine) nn::detail::copy_elements(*out.impl(), *t.impl());
  comm.broadcast(out.data_ptr(), bytes_of(out), root, what);
  return out;
}

}  // namespace detail
}  // namespace TENET_CONFIG
}  // namespace tenet::parallel
