// Pruned models against dense ones: sparse Linear layers by density in percent, and a LeNet with half its channels.
#include <tenet/tenet.hpp>

#include <benchmark/benchmark.h>

using namespace tenet;

// Arguments: features in and out, rows of the input, density in percent; 100 is the dense layer.
static void linear(benchmark::State& state) {
  const no_grad guard;
  const std::int64_t n = state.range(0), density = state.range(2);
  nn::Linear<> layer(n, n);
  prune::custom_from_mask(layer, rand({n, n}) < float(density) / 100);
  prune::remove(layer);
  if (density < 100) prune::to_sparse(layer);
  const auto x = randn({state.range(1), n});
  for (auto _ : state) benchmark::DoNotOptimize(layer(x).data());
}
BENCHMARK(linear)
    ->ArgNames({"features", "rows", "density"})
    ->ArgsProduct({{1024, 4096}, {1, 16, 64}, {100, 5, 10, 20, 25, 30, 40}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

// Arguments: images a batch, whether half of the channels are gone.
static void lenet(benchmark::State& state) {
  const no_grad guard;
  nn::Sequential model{nn::Conv2d<>(1, 20, 5),
                       nn::ReLU(),
                       nn::MaxPool2d(2),
                       nn::Conv2d<>(20, 50, 5),
                       nn::ReLU(),
                       nn::MaxPool2d(2),
                       nn::Flatten(),
                       nn::Linear<>(800, 500),
                       nn::ReLU(),
                       nn::Linear<>(500, 10)};
  if (state.range(1)) {
    prune::ln_structured(model.get<0>(), {.amount = 0.5});
    prune::ln_structured(model.get<3>(), {.amount = 0.5});
    prune::ln_structured(model.get<7>(), {.amount = 0.5});
    prune::shrink(model);
  }
  const auto x = randn({state.range(0), 1, 28, 28});
  for (auto _ : state) benchmark::DoNotOptimize(model(x).data());
  state.SetItemsProcessed(state.iterations() * x.size(0));
}
BENCHMARK(lenet)
    ->ArgNames({"images", "shrunk"})
    ->ArgsProduct({{1, 16, 64, 256}, {0, 1}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
