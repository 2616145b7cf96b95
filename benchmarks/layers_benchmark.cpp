// Each layer, forward and backward. The backward's time includes its forward's.
#include <tenet/tenet.hpp>

#include <benchmark/benchmark.h>

using namespace tenet;

namespace {

/// forward(x), unrecorded.
template <class F>
void run_forward(benchmark::State& state, Shape shape, double flop, F forward) {
  const no_grad guard;
  const auto x = randn(shape);
  for (auto _ : state) benchmark::DoNotOptimize(forward(x).data());
  state.SetItemsProcessed(state.iterations() * x.numel());
  if (flop > 0) {
    state.counters["FLOP/s"] = benchmark::Counter(flop, benchmark::Counter::kIsIterationInvariantRate);
  }
}

/// forward(x) and its backward, to x and to the parameters.
template <class F>
void run_both(benchmark::State& state, Shape shape, double flop, F forward) {
  const auto x = randn(shape).requires_grad_();
  const auto g = ones_like(forward(x));
  for (auto _ : state) {
    x.zero_grad();
    forward(x).backward(g);
    benchmark::DoNotOptimize(x.grad().data());
  }
  state.SetItemsProcessed(state.iterations() * x.numel());
  if (flop > 0) {
    state.counters["FLOP/s"] = benchmark::Counter(3 * flop, benchmark::Counter::kIsIterationInvariantRate);
  }
}

/// A layer with parameters, forward and backward.
template <class Make>
void add_layer(const char* name, Shape shape, double flop, Make make) {
  const std::string n = name;
  benchmark::RegisterBenchmark((n + "/forward").c_str(), [=](benchmark::State& state) {
    auto layer = make();
    run_forward(state, shape, flop, [&](const Tensor<float>& x) { return layer(x); });
  })->UseRealTime();
  benchmark::RegisterBenchmark((n + "/both").c_str(), [=](benchmark::State& state) {
    auto layer = make();
    run_both(state, shape, flop, [&](const Tensor<float>& x) {
      layer.zero_grad();
      return layer(x);
    });
  })->UseRealTime();
}

double conv_flop(double n, double in, double out, double k, double size) {
  return 2 * n * in * out * k * k * size * size;
}

const bool added = [] {
  add_layer("conv2d_1x28x28_20k5", {64, 1, 28, 28}, conv_flop(64, 1, 20, 5, 24), [] { return nn::Conv2d<>(1, 20, 5); });
  add_layer("conv2d_20x12x12_50k5", {64, 20, 12, 12}, conv_flop(64, 20, 50, 5, 8),
            [] { return nn::Conv2d<>(20, 50, 5); });
  add_layer("conv2d_64x28x28_64k3", {8, 64, 28, 28}, conv_flop(8, 64, 64, 3, 28),
            [] { return nn::Conv2d<>(64, 64, 3, {.padding = 1}); });
  add_layer("conv2d_64x28x28_256k1", {8, 64, 28, 28}, conv_flop(8, 64, 256, 1, 28),
            [] { return nn::Conv2d<>(64, 256, 1); });
  add_layer("linear_64x800_500", {64, 800}, 2.0 * 64 * 800 * 500, [] { return nn::Linear<>(800, 500); });
  add_layer("linear_1x800_500", {1, 800}, 2.0 * 800 * 500, [] { return nn::Linear<>(800, 500); });
  add_layer("max_pool2d_64x20x24x24_k2", {64, 20, 24, 24}, 0, [] { return nn::MaxPool2d(2); });
  add_layer("max_pool2d_64x20x24x24_k3s2p1", {64, 20, 24, 24}, 0, [] { return nn::MaxPool2d(3, 2, 1); });
  add_layer("relu_1M", {1024, 1024}, 0, [] { return nn::ReLU(); });
  add_layer("gelu_1M", {1024, 1024}, 0, [] { return nn::GELU(); });
  add_layer("sigmoid_1M", {1024, 1024}, 0, [] { return nn::Sigmoid(); });
  add_layer("tanh_1M", {1024, 1024}, 0, [] { return nn::Tanh(); });
  add_layer("silu_1M", {1024, 1024}, 0, [] { return nn::SiLU(); });
  add_layer("softmax_1024x1024", {1024, 1024}, 0, [] { return nn::Softmax(1); });
  add_layer("log_softmax_1024x1024", {1024, 1024}, 0, [] { return nn::LogSoftmax(1); });
  add_layer("dropout_1M", {1024, 1024}, 0, [] { return nn::Dropout(0.5); });
  return true;
}();

void cross_entropy_both(benchmark::State& state) {
  const std::int64_t n = state.range(0), c = state.range(1);
  const auto labels = randint(c, {n});
  const auto x = randn({n, c}).requires_grad_();
  for (auto _ : state) {
    x.zero_grad();
    cross_entropy(x, labels).backward();
    benchmark::DoNotOptimize(x.grad().data());
  }
  state.SetItemsProcessed(state.iterations() * x.numel());
}
BENCHMARK(cross_entropy_both)->Args({64, 10})->Args({256, 1000})->UseRealTime();

template <class Optimizer>
void optimizer_step(benchmark::State& state) {
  auto p = randn({state.range(0)}).requires_grad_();
  p.backward(ones_like(p));
  Optimizer optimizer(std::vector<AnyTensor>{p}, [] {
    if constexpr (std::is_same_v<Optimizer, optim::SGD>) return optim::SGDOptions{.lr = 1e-3, .momentum = 0.9};
    else return optim::AdamWOptions{};
  }());
  for (auto _ : state) optimizer.step();
  state.SetItemsProcessed(state.iterations() * p.numel());
}
BENCHMARK(optimizer_step<optim::SGD>)->Arg(10'000'000)->UseRealTime();
BENCHMARK(optimizer_step<optim::AdamW>)->Arg(10'000'000)->UseRealTime();

}  // namespace
