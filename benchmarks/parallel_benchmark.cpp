// Two workers on two cores: a step of LeNet, and the sum of gradients beside a plain copy of as many bytes.
#include "../examples/mnist/lenet.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>

using namespace tenet;

namespace {

constexpr std::int64_t batch = 256;

/// A step as the quick start takes it, with `forward(inputs)` of `model`.
template <class F>
void steps(benchmark::State& state, LeNet& model, const F& forward) {
  nn::CrossEntropyLoss criterion;
  optim::SGD optimizer(model.parameters(), {.lr = 0.001, .momentum = 0.9});
  const auto inputs = randn({batch, 1, 28, 28});
  const auto labels = randint(10, {batch});
  for (auto _ : state) {
    optimizer.zero_grad();
    auto loss = criterion(forward(inputs), labels);
    loss.backward();
    optimizer.step();
    benchmark::DoNotOptimize(loss.item());
  }
  state.SetItemsProcessed(state.iterations() * batch);
}

void one_core(benchmark::State& state) {
  const ThreadLimit limit(1);
  LeNet model;
  steps(state, model, [&](const Tensor<float>& x) { return model(x); });
}
BENCHMARK(one_core)->Unit(benchmark::kMillisecond)->UseRealTime();

void replicas(benchmark::State& state) {
  LeNet model;
  auto both = parallel::DataParallel(model, {.replicas = 2});
  steps(state, model, [&](const Tensor<float>& x) { return both(x); });
}
BENCHMARK(replicas)->Unit(benchmark::kMillisecond)->UseRealTime();

/// Two ranks run what make(comm) gives them, together and as often as the benchmark wants; timed on rank 0.
template <class Make>
void rounds(benchmark::State& state, const Make& make) {
  parallel::run_threads(2, [&](auto& comm) {
    auto round = make(comm);
    std::int64_t more = 1;
    const auto both = [&] {
      comm.broadcast(&more, sizeof more);
      if (more) round();
    };
    if (comm.rank() == 0) {
      for (auto _ : state) {
        const auto begin = std::chrono::steady_clock::now();
        both();
        state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      }
      more = 0;
      both();
    } else {
      while (more) both();
    }
  });
}

void ranks(benchmark::State& state) {
  rounds(state, [](auto& comm) {
    struct Rank {
      LeNet model;
      parallel::DistributedDataParallel<LeNet, std::remove_reference_t<decltype(comm)>> ddp;
      optim::SGD optimizer;
      Tensor<float> inputs = randn({batch / 2, 1, 28, 28});
      Tensor<std::int64_t> labels = randint(10, {batch / 2});
      nn::CrossEntropyLoss criterion;
      explicit Rank(decltype(comm) c) : ddp(model, c), optimizer(model.parameters(), {.lr = 0.001, .momentum = 0.9}) {}
    };
    return [r = std::make_shared<Rank>(comm)] {
      r->optimizer.zero_grad();
      auto loss = r->criterion(r->ddp(r->inputs), r->labels);
      loss.backward();
      r->optimizer.step();
      benchmark::DoNotOptimize(loss.item());
    };
  });
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK(ranks)->Unit(benchmark::kMillisecond)->UseManualTime();

constexpr std::int64_t floats = std::int64_t(8) << 20;  // 32 MiB

void all_reduce(benchmark::State& state) {
  rounds(state, [](auto& comm) { return [&comm, x = zeros({floats})] { comm.all_reduce(x.data(), floats); }; });
  state.SetBytesProcessed(state.iterations() * floats * 4);
}
BENCHMARK(all_reduce)->Unit(benchmark::kMillisecond)->UseManualTime();

void copy(benchmark::State& state) {  // each rank its own
  rounds(state, [](auto& comm) {
    return [&comm, x = ones({floats}), y = ones({floats})] {
      std::memcpy(y.data(), x.data(), std::size_t(floats) * 4);
      comm.barrier();
    };
  });
  state.SetBytesProcessed(state.iterations() * floats * 4);
}
BENCHMARK(copy)->Unit(benchmark::kMillisecond)->UseManualTime();

}  // namespace
