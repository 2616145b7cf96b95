// An epoch of the bundled digits through the loader. Arguments: images a batch, workers.
#include <tenet/data/mnist.hpp>
#include <tenet/tenet.hpp>

#include <benchmark/benchmark.h>

using namespace tenet;

static void epoch(benchmark::State& state) {
  const data::MNIST digits(TENET_DIGITS_DIR);
  data::DataLoader loader(digits,
                          {.batch_size = state.range(0), .shuffle = true, .workers = static_cast<int>(state.range(1))});
  for (auto _ : state) {
    for (auto& [images, labels] : loader) benchmark::DoNotOptimize(images.data());
  }
  state.SetItemsProcessed(state.iterations() * digits.size());
}
BENCHMARK(epoch)->ArgsProduct({{16, 64, 256}, {0, 1, 2}})->Unit(benchmark::kMillisecond)->UseRealTime();

static void open_digits(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(data::MNIST(TENET_DIGITS_DIR).size());
}
BENCHMARK(open_digits)->Unit(benchmark::kMillisecond);
