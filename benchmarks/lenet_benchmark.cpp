// Whole steps of LeNet: the loop of the quick start, and inference. Argument: images a batch.
#include "../examples/mnist/lenet.hpp"

#include <benchmark/benchmark.h>

using namespace tenet;

static void train_step(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  LeNet model;
  nn::CrossEntropyLoss criterion;
  optim::SGD optimizer(model.parameters(), {.lr = 0.001, .momentum = 0.9});
  const auto inputs = randn({n, 1, 28, 28});
  const auto labels = randint(10, {n});
  for (auto _ : state) {
    optimizer.zero_grad();
    auto loss = criterion(model(inputs), labels);
    loss.backward();
    optimizer.step();
    benchmark::DoNotOptimize(loss.item());
  }
  state.SetItemsProcessed(state.iterations() * n);
}
BENCHMARK(train_step)->Arg(1)->Arg(16)->Arg(64)->Arg(256)->Unit(benchmark::kMicrosecond)->UseRealTime();

static void inference(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const no_grad guard;
  LeNet model;
  model.eval();
  const auto inputs = randn({n, 1, 28, 28});
  for (auto _ : state) benchmark::DoNotOptimize(model(inputs).data());
  state.SetItemsProcessed(state.iterations() * n);
}
BENCHMARK(inference)->Arg(1)->Arg(16)->Arg(64)->Arg(256)->Unit(benchmark::kMicrosecond)->UseRealTime();
