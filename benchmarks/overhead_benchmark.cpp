// What an operation costs besides its arithmetic: tiny tensors, with and without a graph.
#include <tenet/tenet.hpp>

#include <benchmark/benchmark.h>

using namespace tenet;

static void add_unrecorded(benchmark::State& state) {
  const auto a = randn({4}), b = randn({4});
  for (auto _ : state) benchmark::DoNotOptimize((a + b).data());
}
BENCHMARK(add_unrecorded);

static void add_recorded(benchmark::State& state) {
  const auto a = randn({4}).requires_grad_(), b = randn({4});
  for (auto _ : state) benchmark::DoNotOptimize((a + b).data());
}
BENCHMARK(add_recorded);

/// Forward and backward of a chain; the time of one operation is that divided by its length (items).
static void mul_chain(benchmark::State& state) {
  const auto x = ones({4}).requires_grad_(), one = ones({4}), g = ones({4});
  for (auto _ : state) {
    x.zero_grad();
    Tensor<float> y = x;
    for (std::int64_t i = 0; i < state.range(0); ++i) y = y * one;
    y.backward(g);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(mul_chain)->Arg(100)->Arg(100'000);

/// A training step of three small layers with one example.
static void mlp_step(benchmark::State& state) {
  nn::Sequential model{nn::Linear<>(64, 64), nn::ReLU(), nn::Linear<>(64, 64), nn::ReLU(), nn::Linear<>(64, 64)};
  optim::SGD optimizer(model.parameters(), {.lr = 1e-3});
  const auto x = randn({1, 64}), target = randn({1, 64});
  for (auto _ : state) {
    optimizer.zero_grad();
    mse_loss(model(x), target).backward();
    optimizer.step();
  }
}
BENCHMARK(mlp_step);
