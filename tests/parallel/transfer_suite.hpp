// What tensors that move between ranks must do; the same for each engine. Each function runs on every rank, of which
// there are at least two.
#pragma once

#include <gtest/gtest.h>
#include <tenet/nn/nn.hpp>
#include <tenet/parallel/placed.hpp>

#include <vector>

#include "message.hpp"

namespace tenet::test {

using parallel::Part;
using parallel::Placed;
using parallel::transfer;

/// y = 2 x on rank 0, y^2 on rank 1.
template <class T, parallel::Communicator C>
void check_transfer(C& comm) {
  const int rank = comm.rank();
  Tensor<T> x, y;
  if (rank == 0) {
    x = tensor<T>({{T(1), T(2)}, {T(3), T(4)}}).requires_grad_();
    y = (x + x).t();  // its elements do not lie in order
  }
  y = transfer(y, 0, 1, comm);
  if (rank == 0) {
    EXPECT_TRUE(y.dim() == 0 && y.requires_grad());
  }
  if (rank == 1) {
    EXPECT_EQ(y.to_vector(), (std::vector<T>{T(2), T(6), T(4), T(8)}));
    EXPECT_EQ(y.shape(), Shape({2, 2}));
    y = (y * y).sum();
  }
  // Back, to where the loss is wanted.
  y = transfer(y, 1, 0, comm);
  if (rank == 0) {
    EXPECT_EQ(y.item(), T(120));
  }
  if (rank < 2) y.backward();
  if (rank == 0) {
    EXPECT_EQ(x.grad().to_vector(), (std::vector<T>{T(8), T(16), T(24), T(32)}));
  }

  // Without a graph.
  const no_grad guard;
  const Tensor<T> z = transfer(x, 0, 1, comm);
  if (rank < 2) {
    EXPECT_FALSE(z.requires_grad());
  }
}

/// Numbers that have no gradient; more ranks; a tensor that stays.
template <parallel::Communicator C>
void check_transfer_of_integers(C& comm) {
  Tensor<std::int64_t> x;
  if (comm.rank() == 0) x = arange<std::int64_t>(5);
  const int last = comm.size() - 1;
  for (int r = 0; r < last; ++r) x = transfer(x, r, r + 1, comm);
  x = transfer(x, last, last, comm);
  if (comm.rank() == last) {
    EXPECT_EQ(x.to_vector(), (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  }

  EXPECT_EQ(message<IndexError>([&] { transfer(x, 0, -1, comm); }),
            text({"transfer: expected a rank in [0, ", comm.size(), "), got -1"}));
  EXPECT_THROW(transfer(x, comm.size(), 0, comm), IndexError);
  EXPECT_THROW((Part<nn::ReLU, C>(comm.size(), comm)), IndexError);
}

/// Tensors that cross: however deep each rank's graph is, the gradients find each other, and no rank waits for one that
/// waits for it.
template <parallel::Communicator C>
void check_transfers_that_cross(C& comm) {
  const int rank = comm.rank();
  if (rank > 1) return;
  const Tensor<float> own = tensor<float>({float(rank + 2)}).requires_grad_(), none;
  for (const int deep : {0, 1, 2, 3}) {
    own.zero_grad();
    Tensor<float> mine = own;
    for (int i = 0; i < 20 && deep & (1 << rank); ++i) mine = mine * 1.0f;
    const Tensor<float> a = transfer(rank == 0 ? mine : none, 0, 1, comm);        // 2
    const Tensor<float> b = transfer(rank == 1 ? mine : none, 1, 0, comm);        // 3
    const Tensor<float> c = transfer(rank == 0 ? own * 5.0f : none, 0, 1, comm);  // 10
    const Tensor<float> d = transfer(rank == 0 ? b * b : b, 0, 1, comm);
    const Tensor<float> loss = rank == 0 ? a + c + d : a * c + d;  // 5 x^2 + y^2, on rank 1
    loss.backward();
    EXPECT_EQ(own.grad().item(), rank == 0 ? 20 : 6);
  }
}

struct Scale : nn::Module<Scale> {
  nn::Parameter<> weight;
  TENET_MODULE(weight)
  explicit Scale(float w) : weight(scalar(w)) {}
  Tensor<float> forward(const Tensor<float>& x) { return x * weight; }
};
struct Difference : nn::Module<Difference> {
  TENET_MODULE()
  Tensor<float> forward(const Tensor<float>& x, const Tensor<float>& y, float factor) {
    return ((x - y) * factor).sum();
  }
};
struct Cut : nn::Module<Cut> {
  TENET_MODULE()
  Tensor<std::int64_t> forward(const Tensor<float>& x) { return x.to<std::int64_t>(); }
};

template <class C>
struct Net : nn::Module<Net<C>> {
  Part<Scale, C> first, second;
  Part<Difference, C> loss;
  Part<Cut, C> cut;
  TENET_MODULE(first, second, loss, cut)
  explicit Net(C& comm) : first(0, comm, 3.0f), second(1, comm, 5.0f), loss(0, comm), cut(1, comm) {}

  auto forward(const Tensor<float>& x) {
    const auto y = first(x);
    return loss(second(second(y)), y, 2.0f);  // y is used on both ranks
  }
};

template <parallel::Communicator C>
void check_parts(C& comm) {
  const int rank = comm.rank();
  Net<C> net(comm);
  EXPECT_EQ(net.parameters().size(), rank < 2 ? 1u : 0u);
  if (rank < 2) {
    EXPECT_EQ(net.state_dict()[0].first, rank ? "second.module.weight" : "first.module.weight");
  }
  EXPECT_EQ(net.eval().first.is_training(), false);
  if (rank == 0) {
    EXPECT_FALSE(net.first.module().is_training());
    EXPECT_EQ(message([&] { net.second.module(); }), "parallel::Part: rank 1 has the module, not rank 0");
  }
  // 2 sum(x) (a b^2 - a), at a = 3, b = 5, sum(x) = 4
  const auto loss = net(tensor<float>({1, 3}));
  EXPECT_EQ(loss.rank(), net.loss.rank());
  EXPECT_EQ(loss.item(), 576);
  loss.backward();
  if (rank < 2) {
    EXPECT_EQ(Tensor<float>(net.parameters()[0]).grad().item(), rank ? 240 : 192);
  }

  const auto y = net.first(tensor<float>({1, 3}));
  EXPECT_EQ(y.everywhere().to_vector(), (std::vector<float>{3, 9}));
  EXPECT_EQ(y.to(1).value().dim(), rank == 1);
  EXPECT_EQ(net.cut(y).everywhere().to_vector(), (std::vector<std::int64_t>{3, 9}));
  EXPECT_EQ(message<ShapeError>([&] { y.item(); }), "item: expected one element, got shape [2]");
}

}  // namespace tenet::test
