// Training in float and under autocast. Compare rows of one run.
#include <tenet/tenet.hpp>

#include <benchmark/benchmark.h>

using namespace tenet;

namespace {

/// "float", or the type of an autocast.
template <class F>
void add_rows(const std::string& name, double flop, F make_step) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const std::string row = name + "/" + tenet::name(dtype);
    benchmark::RegisterBenchmark(row.c_str(), [=](benchmark::State& state) {
      manual_seed(0);
      auto step = make_step();
      const bool low = dtype != DType::float32;
      for (auto _ : state) step(low ? dtype : DType::bfloat16, low);
      state.counters["FLOP/s"] = benchmark::Counter(flop, benchmark::Counter::kIsIterationInvariantRate);
    })->UseRealTime();
  }
}

/// A layer, forward and backward, to the input and to the parameters.
void add_linear(std::int64_t m, std::int64_t in, std::int64_t out) {
  add_rows(text({"amp/linear/", m, "x", in, "x", out}), 6.0 * double(m) * double(in) * double(out), [=] {
    return [layer = nn::Linear<>(in, out), x = randn({m, in}).requires_grad_(), g = randn({m, out})](DType dtype,
                                                                                                     bool low) mutable {
      layer.zero_grad();
      x.zero_grad();
      Tensor<float> y;
      {
        const amp::autocast scope(dtype, low);
        y = layer(x);
      }
      y.backward(g);
      benchmark::DoNotOptimize(x.grad().data());
    };
  });
}

struct Mlp : nn::Module<Mlp> {
  nn::Linear<> fc1{784, 2048}, fc2{2048, 2048}, fc3{2048, 10};
  TENET_MODULE(fc1, fc2, fc3)

  Tensor<float> forward(const Tensor<float>& x) { return fc3(relu(fc2(relu(fc1(x))))); }
};

struct MlpStep {
  Mlp model;
  optim::SGD optimizer{model.parameters(), {.lr = 0.01, .momentum = 0.9}};
  Tensor<float> x = randn({128, 784});
  Tensor<std::int64_t> labels = randint(10, {128});

  void operator()(DType dtype, bool low) {
    optimizer.zero_grad();
    Tensor<float> loss;
    {
      const amp::autocast scope(dtype, low);
      loss = cross_entropy(model(x), labels);
    }
    loss.backward();
    optimizer.step();
    benchmark::DoNotOptimize(loss.item());
  }
};

const bool added = [] {
  add_linear(256, 1024, 1024);
  add_rows("amp/mlp/784-2048-2048-10@128", 128 * (6.0 * (784 * 2048 + 2048 * 2048 + 2048 * 10) - 2.0 * 784 * 2048),
           [] { return MlpStep(); });
  return true;
}();

}  // namespace
