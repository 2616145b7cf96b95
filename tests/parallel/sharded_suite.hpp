// What sharded training and its checkpoints must do; the same for each engine. Each function runs on every rank.
#pragma once

#include <memory>

#include "parallel/support.hpp"

namespace tenet::test {

enum class Kind { sgd, adamw };

inline std::unique_ptr<optim::Optimizer> make_optimizer(Kind kind, const std::vector<AnyTensor>& parameters) {
  if (kind == Kind::sgd) {
    return std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.lr = 0.02, .momentum = 0.9});
  }
  return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 1e-3, .eps = 1e-4});
}

/// Steps [begin, end) of LeNet over the ranks, by a wrapper of it; the loss of all of them together after each.
template <class Wrapper>
Losses train_steps(Wrapper& wrapper, optim::Optimizer& optimizer, int begin, int end) {
  auto& comm = wrapper.communicator();
  Digits digits;
  digits.options.rank = comm.rank();
  digits.options.ranks = comm.size();
  digits.options.batch_size /= comm.size();
  Losses losses;
  digits.train_with(
      optimizer, begin, end, [&](const Tensor<double>& x) { return wrapper(x); },
      [&](double loss, std::int64_t examples) {
        double sums[2] = {loss * double(examples), double(examples)};
        comm.all_reduce(sums, 2);
        losses.push_back(sums[0] / sums[1]);
      });
  return losses;
}

/// The losses of 50 steps of one worker.
inline const Losses& single_worker_losses(Kind kind) {
  if (kind == Kind::sgd) return single_worker_losses();
  static const Losses losses = [] {
    auto model = lenet();
    Losses out;
    const auto optimizer = make_optimizer(Kind::adamw, model.parameters());
    Digits{}.train_with(
        *optimizer, 0, 50, [&](const Tensor<double>& x) { return model(x); },
        [&](double loss, std::int64_t) { out.push_back(loss); });
    return out;
  }();
  return losses;
}

template <parallel::Communicator C>
Losses sharded_losses(C& comm, int stage, Kind kind) {
  manual_seed(1 + std::uint64_t(comm.rank()));  // rank 0's values are everybody's
  LeNet<double> model;
  parallel::FullyShardedDataParallel fsdp(model, comm, {.stage = stage});
  const auto optimizer = make_optimizer(kind, fsdp.parameters());
  return train_steps(fsdp, *optimizer, 0, 50);
}

/// A module that owns a parameter and a layer.
struct Scaled : nn::Module<Scaled> {
  nn::Parameter<> scale{full({4}, 0.5f)};
  nn::Linear<> fc{4, 4};
  TENET_MODULE(scale, fc)
  Tensor<float> forward(const Tensor<float>& x) { return fc(x * scale) + scale; }
};
/// Parameters of several types and uses.
struct Zoo : nn::Module<Zoo> {
  Scaled scaled;
  nn::Linear<> twice{4, 4}, tied{4, 4}, never{2, 2};
  nn::Parameter<bfloat16> low{full<bfloat16>({1}, bfloat16(1.5f))};
  nn::Parameter<double> high{full<double>({3, 1}, 0.25)};
  nn::Parameter<> frozen{ones({4})}, idle{ones({2})};
  nn::Buffer<> seen{zeros({1})};
  TENET_MODULE(scaled, twice, tied, never, low, high, frozen, idle, seen)
  Zoo() {
    tied.weight.tie(twice.weight);
    frozen.requires_grad_(false);
  }
  Tensor<float> forward(const Tensor<float>& x) {
    const Tensor<float> y = twice(relu(twice(scaled(x))));
    return tied(y) * low.to<float>() * high.to<float>().sum() + frozen;
  }
};

/// The gradient of parameter `i` of all shards together; empty if it has none.
template <class F>
std::vector<float> whole_gradient(F& fsdp, std::size_t i, std::int64_t numel) {
  const AnyTensor g = fsdp.parameters()[i].grad_any();
  if (!g) return {};
  auto& comm = fsdp.communicator();
  std::vector<float> mine, all(std::size_t(g.numel() * comm.size()));
  dispatch_floating("test", g.dtype(), [&]<class T>(T) {
    for (const T v : Tensor<T>(g).to_vector()) mine.push_back(float(v));
  });
  comm.all_gather(mine.data(), all.data(), 4 * g.numel());
  all.resize(std::size_t(numel));
  return all;
}

/// Gradients are those of DistributedDataParallel: of uneven parts (one rank may have none), summed over two backwards;
/// of tied and nested parameters, unused ones and frozen ones. Buffers are rank 0's.
template <parallel::Communicator C>
void check_gradients(C& comm, int stage) {
  manual_seed(3);
  Zoo a, b;
  b.load_state_dict(a.state_dict());
  b.seen.fill_(float(comm.rank() + 7));
  parallel::DistributedDataParallel ddp(a, comm);
  parallel::FullyShardedDataParallel fsdp(b, comm, {.stage = stage});
  EXPECT_EQ(b.seen.item(), 7);
  const int n = comm.size(), r = comm.rank();
  const std::int64_t rows = n == 1 ? 3 : r;
  for (int pass = 0; pass < 2; ++pass) {
    const Tensor<float> x = randn({12, 4}).narrow(0, r, rows), u = x.clone().requires_grad_(),
                        v = x.clone().requires_grad_();
    const Tensor<float> p = ddp(u), q = fsdp(v);
    EXPECT_EQ(p.to_vector(), q.to_vector());
    (p * p).mean().backward();
    (q * q).mean().backward();
    if (rows) expect_near(v.grad().to_vector(), u.grad().to_vector(), 1e-6f);
  }
  const auto names = a.named_parameters();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const AnyTensor g = names[i].second.grad_any();
    std::vector<float> expected;
    if (g) {
      dispatch_floating("test", g.dtype(), [&]<class T>(T) {
        for (const T v : Tensor<T>(g).to_vector()) expected.push_back(float(v));
      });
    }
    SCOPED_TRACE(names[i].first);
    expect_near(whole_gradient(fsdp, i, names[i].second.numel()), expected, g && item_size(g.dtype()) == 2 ? 1 : 1e-5f);
  }
  const no_grad guard;
  b.eval();
  EXPECT_EQ(fsdp(ones({1, 4})).to_vector(), a(ones({1, 4})).to_vector());
}

/// The norm over all shards is the whole gradient's.
template <parallel::Communicator C>
void check_clipping(C& comm) {
  manual_seed(3);
  nn::Linear<> a{5, 3}, b{5, 3};
  parallel::DistributedDataParallel ddp(a, comm);
  b.load_state_dict(a.state_dict());
  parallel::FullyShardedDataParallel fsdp(b, comm);
  const Tensor<float> x = randn({2, 5});
  for (const double p : {2.0, 3.0, double(INFINITY)}) {
    a.zero_grad();
    b.zero_grad();
    ddp(x).sum().backward();
    fsdp(x).sum().backward();
    const double norm = optim::clip_grad_norm_(a.parameters(), 0.5, {.norm_type = p});
    EXPECT_NEAR(optim::clip_grad_norm_(fsdp, 0.5, {.norm_type = p}), norm, 1e-6 * norm);
    expect_near(whole_gradient(fsdp, 0, 15), a.weight.grad().to_vector(), 1e-6f);
  }
  // One rank's NaN is everybody's.
  if (comm.rank() == 0) Tensor<float>(fsdp.parameters()[0]).grad().data()[0] = NAN;
  EXPECT_TRUE(std::isnan(optim::clip_grad_norm_(fsdp, 0.5)));
  EXPECT_THROW(optim::clip_grad_norm_(fsdp, 0.5, {.error_if_nonfinite = true}), Error);
}

/// 10M parameters.
struct Mlp : nn::Module<Mlp> {
  nn::Linear<> first{784, 800}, last{800, 10};
  nn::ModuleList<nn::Linear<>> middle;
  TENET_MODULE(first, middle, last)
  Mlp() {
    for (int i = 0; i < 15; ++i) middle.emplace_back(800, 800);
  }
  Tensor<float> forward(Tensor<float> x) {
    x = relu(first(x));
    for (auto& layer : middle) x = relu(layer(x));
    return last(x);
  }
};

/// What a rank holds from the system after two steps of AdamW in stage 3, temporaries and caches included: at most 30 %
/// of the parameters, gradients and two moments of a whole model. `ranks_here` share this process.
template <parallel::Communicator C>
void check_memory(C& comm, int ranks_here) {
  comm.barrier();
  memory::empty_cache();
  const std::int64_t before = memory::stats().reserved;
  comm.barrier();
  Mlp model;
  const std::int64_t parameters = model.num_parameters();
  EXPECT_GT(parameters, 10'000'000);
  parallel::FullyShardedDataParallel fsdp(model, comm);
  optim::AdamW optimizer(fsdp.parameters());
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    cross_entropy(fsdp(ones({4, 784})), zeros<std::int64_t>({4})).backward();
    optimizer.step();
  }
  comm.barrier();
  const double held = double(memory::stats().reserved - before) / ranks_here, whole = 16.0 * double(parameters);
  comm.barrier();
  EXPECT_LT(held, 0.3 * whole);
  EXPECT_GT(held, whole / comm.size());
}

}  // namespace tenet::test
