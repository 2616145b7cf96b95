// Matrix products, in FLOP/s. Arguments: m, n, k.
#include <tenet/tenet.hpp>

#include <benchmark/benchmark.h>

using namespace tenet;

static void shapes(benchmark::internal::Benchmark* b) {
  for (std::int64_t n : {32, 64, 128, 256, 512, 1024}) b->Args({n, n, n});
  b->Args({256, 1024, 1024})->Args({1, 1024, 1024})->Args({64, 500, 800})->Args({64, 800, 500})->Args({500, 800, 64});
}

static void count(benchmark::State& state) {
  state.counters["FLOP/s"] =
      benchmark::Counter(2.0 * double(state.range(0) * state.range(1) * state.range(2)),
                         benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::OneK::kIs1000);
}

/// a b
static void nn_product(benchmark::State& state) {
  const no_grad guard;
  const auto a = randn({state.range(0), state.range(2)}), b = randn({state.range(2), state.range(1)});
  for (auto _ : state) benchmark::DoNotOptimize(matmul(a, b).data());
  count(state);
}
BENCHMARK(nn_product)->Apply(shapes)->UseRealTime();

/// a b^T: what a linear layer does
static void nt_product(benchmark::State& state) {
  const no_grad guard;
  const auto a = randn({state.range(0), state.range(2)}), b = randn({state.range(1), state.range(2)}).t();
  for (auto _ : state) benchmark::DoNotOptimize(matmul(a, b).data());
  count(state);
}
BENCHMARK(nt_product)->Apply(shapes)->UseRealTime();

/// a^T b: the gradient of a weight
static void tn_product(benchmark::State& state) {
  const no_grad guard;
  const auto a = randn({state.range(2), state.range(0)}).t(), b = randn({state.range(2), state.range(1)});
  for (auto _ : state) benchmark::DoNotOptimize(matmul(a, b).data());
  count(state);
}
BENCHMARK(tn_product)->Apply(shapes)->UseRealTime();
