// What synchronized batch normalization must do; the same for each engine. Each function runs on every rank.
#pragma once

#include <tenet/nn/conv.hpp>
#include <tenet/nn/flatten.hpp>
#include <tenet/nn/linear.hpp>
#include <tenet/nn/norm.hpp>
#include <tenet/ops/activation.hpp>
#include <tenet/parallel/distributed.hpp>
#include <tenet/parallel/sync_batch_norm.hpp>

#include <gtest/gtest.h>

namespace tenet::test {

struct Normed : nn::Module<Normed> {
  nn::Conv2d<double> conv{2, 3, 2};
  nn::BatchNorm2d<double> norm1{3};
  nn::Linear<double> fc1{12, 5}, fc2{5, 2};
  nn::BatchNorm1d<double> norm2{5};
  TENET_MODULE(conv, norm1, fc1, norm2, fc2)
  Tensor<double> forward(const Tensor<double>& x) { return fc2(relu(norm2(fc1(flatten(relu(norm1(conv(x))), 1))))); }
};

/// Gradients and buffers, one after the other.
inline std::vector<double> results(Normed& model) {
  std::vector<double> out;
  const auto add = [&](const Tensor<double>& t) {
    const std::vector<double> v = t.to_vector();
    out.insert(out.end(), v.begin(), v.end());
  };
  for (const AnyTensor& p : model.parameters()) add(Tensor<double>(p).grad());
  for (const auto& [name, b] : model.named_buffers()) {
    if (b.dtype() == DType::float64) add(Tensor<double>(b));
    else out.push_back(double(Tensor<std::int64_t>(b).item()));
  }
  return out;
}

inline void expect_equal(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12) << i;
}

/// Ranks whose parts are uneven, one of them empty, give the output, gradients and running statistics of the unsplit
/// batches, and then the same answers in evaluation.
template <parallel::Communicator C>
void check_sync_batch_norm(C& comm) {
  Generator generator(4);
  manual_seed(6);
  Normed whole;
  Normed model = whole.clone();
  parallel::sync_batch_norm_(model, comm);
  parallel::DistributedDataParallel ddp(model, comm);
  const int rank = comm.rank(), n = comm.size();
  const std::int64_t all = 12;
  for (int step = 0; step < 2; ++step) {
    // 0, 1, 2, ... examples, and the last rank has the others; in the second step all have equally many.
    std::int64_t begin = rank * (rank - 1) / 2, size = rank + 1 == n ? all - begin : rank;
    if (step) begin = all / n * rank, size = all / n;
    const Tensor<double> x = randn<double>({all, 2, 3, 3}, generator) * 3 + 10, mine = x.narrow(0, begin, size);
    const Tensor<double> expected = whole(x), y = ddp(mine);
    expect_equal(y.detach().to_vector(), expected.detach().narrow(0, begin, size).to_vector());
    (expected * expected).mean().backward();
    (y * y).mean().backward();
    expect_equal(results(model), results(whole));
  }
  ddp.check_agreement();
  whole.eval();
  model.eval();
  const no_grad guard;
  const Tensor<double> x = randn<double>({1 + rank, 2, 3, 3}, generator);  // each rank for itself
  expect_equal(model(x).to_vector(), whole(x).to_vector());
  if (rank == 0) model(x);
}

/// What synchronized layers cannot do, and how they become local again.
template <parallel::Communicator C>
void check_sync_batch_norm_errors(C& comm) {
  nn::BatchNorm1d<> layer(2);
  parallel::sync_batch_norm_(layer, comm);
  const Tensor<float> x = from_vector<float>({1, 2, 3, 5}, {2, 2}).requires_grad_();
  EXPECT_THROW(layer(x).sum().backward({.create_graph = true}), NotImplemented);
  layer.exchange = {};
  if (comm.rank() == 0) layer(x);
  EXPECT_EQ(layer.num_batches_tracked.item(), comm.rank() == 0 ? 2 : 1);
}

}  // namespace tenet::test
