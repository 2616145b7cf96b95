// lenet_benchmark.cpp with libtorch.
#include <torch/torch.h>

#include <benchmark/benchmark.h>

struct LeNetImpl : torch::nn::Module {
  torch::nn::Conv2d conv1{torch::nn::Conv2dOptions(1, 20, 5)}, conv2{torch::nn::Conv2dOptions(20, 50, 5)};
  torch::nn::Linear fc1{50 * 4 * 4, 500}, fc2{500, 10};
  LeNetImpl() {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(conv1(x)), 2, 2);
    x = torch::max_pool2d(torch::relu(conv2(x)), 2, 2);
    x = x.view({-1, 50 * 4 * 4});
    x = torch::relu(fc1(x));
    return fc2(x);
  }
};
TORCH_MODULE(LeNet);

static void train_step(benchmark::State& state) {
  const int64_t n = state.range(0);
  LeNet model;
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.001).momentum(0.9));
  const auto inputs = torch::randn({n, 1, 28, 28});
  const auto labels = torch::randint(10, {n}, torch::kLong);
  for (auto _ : state) {
    optimizer.zero_grad();
    auto loss = torch::nn::functional::cross_entropy(model(inputs), labels);
    loss.backward();
    optimizer.step();
    benchmark::DoNotOptimize(loss.item<float>());
  }
  state.SetItemsProcessed(state.iterations() * n);
}
BENCHMARK(train_step)->Arg(1)->Arg(16)->Arg(64)->Arg(256)->Unit(benchmark::kMicrosecond)->UseRealTime();

static void inference(benchmark::State& state) {
  const int64_t n = state.range(0);
  torch::NoGradGuard guard;
  LeNet model;
  model->eval();
  const auto inputs = torch::randn({n, 1, 28, 28});
  for (auto _ : state) benchmark::DoNotOptimize(model(inputs).data_ptr<float>());
  state.SetItemsProcessed(state.iterations() * n);
}
BENCHMARK(inference)->Arg(1)->Arg(16)->Arg(64)->Arg(256)->Unit(benchmark::kMicrosecond)->UseRealTime();
