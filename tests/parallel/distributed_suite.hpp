// What data-parallel training over ranks must do; the same for each engine. Each function runs on every rank.
#pragma once

#include "parallel/support.hpp"

namespace tenet::test {

/// Trains LeNet over the ranks; the loss of all of them together after each step. All ranks end alike.
template <parallel::Communicator C>
Losses distributed_losses(C& comm) {
  manual_seed(1 + std::uint64_t(comm.rank()));  // rank 0's values are everybody's
  LeNet<double> model;
  parallel::DistributedDataParallel ddp(model, comm);
  Digits digits;
  digits.options.rank = comm.rank();
  digits.options.ranks = comm.size();
  digits.options.batch_size /= comm.size();
  Losses losses;
  digits.train(
      model, [&](const Tensor<double>& x) { return ddp(x); },
      [&](double loss, std::int64_t examples) {
        double sums[2] = {loss * double(examples), double(examples)};
        comm.all_reduce(sums, 2);
        losses.push_back(sums[0] / sums[1]);
      });
  ddp.check_agreement();
  return losses;
}

/// The gradients of a mean over `x`, of which each rank has rows [begin[rank], begin[rank + 1]).
template <parallel::Communicator C>
std::vector<float> gradients_of_parts(C& comm, nn::Linear<>& model, const Tensor<float>& x,
                                      const std::vector<std::int64_t>& begin) {
  parallel::DistributedDataParallel ddp(model, comm);
  const auto r = std::size_t(comm.rank());
  const Tensor<float> y = ddp(x.narrow(0, begin[r], begin[r + 1] - begin[r]));
  (y * y).mean().backward();
  return gradients(model);
}

template <parallel::Communicator C>
void check_uneven_parts(C& comm) {
  manual_seed(2);
  nn::Linear<> model{5, 3};
  const int n = comm.size();
  const Tensor<float> x = randn({16, 5});
  const Tensor<float> y = model(x);
  (y * y).mean().backward();
  const std::vector<float> expected = gradients(model);
  model.zero_grad();
  std::vector<std::int64_t> begin{0};
  for (int r = 0; r < n; ++r) begin.push_back(r + 1 == n ? 16 : begin.back() + r);  // rank 0 has no example
  if (n == 1) begin = {0, 16};
  expect_near(gradients_of_parts(comm, model, x, begin), expected, 1e-6f);
}

template <parallel::Communicator C>
void check_no_sync(C& comm) {
  manual_seed(2);
  nn::Linear<> model{5, 3};
  const Tensor<float> x = randn({2 * comm.size(), 5}).narrow(0, 2 * comm.rank(), 2);
  parallel::DistributedDataParallel ddp(model, comm);
  ddp(x).sum().backward();
  const std::vector<float> once = gradients(model);
  model.zero_grad();
  {
    const auto guard = ddp.no_sync();
    ddp(x).sum().backward();
    ddp(x).sum().backward();
    EXPECT_FALSE(model.weight.grad());
  }
  ddp(x).sum().backward();
  const std::vector<float> sum = gradients(model);
  for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], 3 * once[i], 1e-5f);
}

struct Branches : nn::Module<Branches> {
  nn::Linear<> a{2, 1}, b{2, 1}, never{2, 1};
  nn::Parameter<bfloat16> low{full<bfloat16>({1}, bfloat16(1))};
  nn::Parameter<double> high{ones<double>({1})};
  nn::Buffer<> seen{zeros({1})};
  TENET_MODULE(a, b, never, low, high, seen)
  Tensor<float> forward(const Tensor<float>& x, bool first) {
    return (first ? a(x) : b(x)) * low.to<float>() * high.to<float>();
  }
};

/// Parameters that one rank uses, that none does, of several types, in small buckets; buffers are rank 0's.
template <parallel::Communicator C>
void check_unused_and_buffers(C& comm) {
  Branches model;
  model.seen.fill_(float(10 + comm.rank()));
  parallel::DistributedDataParallel ddp(model, comm, {.bucket_bytes = 8});
  EXPECT_EQ(model.seen.item(), 10);
  model.seen.fill_(float(20 + comm.rank()));
  const Tensor<float> x = ones({1, 2}).requires_grad_();
  const Tensor<float> y = ddp(x, comm.rank() == 0);
  EXPECT_EQ(model.seen.item(), 20);
  model.eval();
  model.seen.fill_(float(comm.rank()));
  {
    const no_grad guard;
    ddp(x, true);
  }
  EXPECT_EQ(model.seen.item(), float(comm.rank()));
  y.sum().backward();
  const float n = float(comm.size());
  EXPECT_FLOAT_EQ(model.a.bias.grad().item(), 1 / n);
  EXPECT_EQ(bool(model.b.bias.grad()), comm.size() > 1);
  if (comm.size() > 1) {
    EXPECT_FLOAT_EQ(model.b.bias.grad().item(), (n - 1) / n);
  }
  EXPECT_FALSE(model.never.weight.grad());
  EXPECT_TRUE(model.low.grad() && model.high.grad());
  EXPECT_EQ(x.grad().shape(), Shape({1, 2}));  // this rank's own
  double high = model.high.grad().item();
  comm.broadcast(&high, sizeof high);
  EXPECT_EQ(high, model.high.grad().item());
}

/// Compressed gradients are the exact ones to bfloat16's precision, the same on every rank; those of double are exact.
template <parallel::Communicator C>
void check_compression(C& comm) {
  manual_seed(3);
  Branches model;
  nn::Linear<> exact{40, 30}, low{40, 30};
  low.load_state_dict(exact.state_dict());
  parallel::DistributedDataParallel ddp(exact, comm), compressed(low, comm, {.compression = DType::bfloat16});
  const Tensor<float> whole = randn({8 * comm.size(), 40}), x = whole.narrow(0, 8 * comm.rank(), 8);
  // Each rank's share is rounded to 8 bits, and then the sum.
  float most = 8;
  for (const float v : abs(whole).sum({0}).to_vector()) most = std::max(most, v / float(comm.size()));
  for (int run = 0; run < 2; ++run) {
    exact.zero_grad();
    low.zero_grad();
    ddp(x).sum().backward();
    compressed(x).sum().backward();
    const std::vector<float> a = gradients(exact), b = gradients(low);
    float differ = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_NEAR(a[i], b[i], 0x1p-7f * most);
      differ = std::max(differ, std::abs(a[i] - b[i]));
      EXPECT_EQ(b[i], float(bfloat16(b[i])));
    }
    EXPECT_GT(differ, 0);
    std::vector<float> others = b;
    comm.broadcast(others.data(), std::int64_t(4 * others.size()));
    EXPECT_EQ(others, b);
  }
  parallel::DistributedDataParallel branches(model, comm, {.compression = DType::bfloat16});
  branches(full({1, 2}, 1.0f / 3), true).sum().backward();
  const double high = model.high.grad().item();
  EXPECT_NE(high, double(float(bfloat16(float(high)))));
  EXPECT_TRUE(model.low.grad());
}

}  // namespace tenet::test
