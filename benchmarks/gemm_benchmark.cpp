// Matrix products, in FLOP/s. Arguments: m, n, k.
#include <tenet/tenet.hpp>

#include <benchmark/benchmark.h>

#include <vector>

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

template <class T>
static Tensor<T> random_matrix(std::int64_t rows, std::int64_t cols) {
  return randn({rows, cols}).to<T>();
}

/// a b
template <class T>
static void nn_product(benchmark::State& state) {
  const no_grad guard;
  const auto a = random_matrix<T>(state.range(0), state.range(2)), b = random_matrix<T>(state.range(2), state.range(1));
  for (auto _ : state) benchmark::DoNotOptimize(matmul(a, b).data());
  count(state);
}
BENCHMARK_TEMPLATE(nn_product, float)->Apply(shapes)->UseRealTime();
BENCHMARK_TEMPLATE(nn_product, bfloat16)->Apply(shapes)->UseRealTime();

/// a b^T: what a linear layer does
template <class T>
static void nt_product(benchmark::State& state) {
  const no_grad guard;
  const auto a = random_matrix<T>(state.range(0), state.range(2));
  const auto b = random_matrix<T>(state.range(1), state.range(2)).t();
  for (auto _ : state) benchmark::DoNotOptimize(matmul(a, b).data());
  count(state);
}
BENCHMARK_TEMPLATE(nt_product, float)->Apply(shapes)->UseRealTime();
BENCHMARK_TEMPLATE(nt_product, bfloat16)->Apply(shapes)->UseRealTime();

/// a^T b: the gradient of a weight
template <class T>
static void tn_product(benchmark::State& state) {
  const no_grad guard;
  const auto a = random_matrix<T>(state.range(2), state.range(0)).t();
  const auto b = random_matrix<T>(state.range(2), state.range(1));
  for (auto _ : state) benchmark::DoNotOptimize(matmul(a, b).data());
  count(state);
}
BENCHMARK_TEMPLATE(tn_product, float)->Apply(shapes)->UseRealTime();
BENCHMARK_TEMPLATE(tn_product, bfloat16)->Apply(shapes)->UseRealTime();

/// a b^T of 8-bit integers, the sums as they are
template <class A>
static void int8_product(benchmark::State& state) {
  const std::int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const std::vector<A> a(std::size_t(m * k), A(3));
  const std::vector<std::int8_t> b(std::size_t(k * n), std::int8_t(-5));
  std::vector<std::int32_t> c(std::size_t(m * n));
  for (auto _ : state) {
    cpu::gemm_int8<A>(m, n, k, {a.data(), k, 1}, {b.data(), 1, k}, c.data(), n);
    benchmark::DoNotOptimize(c.data());
  }
  count(state);
}
BENCHMARK_TEMPLATE(int8_product, std::uint8_t)->Apply(shapes)->UseRealTime();
BENCHMARK_TEMPLATE(int8_product, std::int8_t)->Apply(shapes)->UseRealTime();
