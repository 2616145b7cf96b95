// Layers with quantized weights beside the same in float, quantizing the input included.
#include <tenet/tenet.hpp>

#include <benchmark/benchmark.h>

using namespace tenet;

namespace {

template <class Layer>
void run(benchmark::State& state, Layer layer, Shape input, double flop) {
  const no_grad guard;
  const auto x = randn(input);
  for (auto _ : state) benchmark::DoNotOptimize(layer(x).data());
  state.counters["FLOP/s"] = benchmark::Counter(flop, benchmark::Counter::kIsIterationInvariantRate);
}

void add(const std::string& name, void (*f)(benchmark::State&)) {
  benchmark::RegisterBenchmark(("quant/" + name).c_str(), f)->UseRealTime();
}

template <int Rows>
void add_linear() {
  static constexpr double flop = 2.0 * Rows * 1024 * 1024;
  const std::string name = "linear/" + std::to_string(Rows) + "x1024x1024/";
  add(name + "float", [](benchmark::State& s) { run(s, nn::Linear<>(1024, 1024), {Rows, 1024}, flop); });
  add(name + "dynamic_int8", [](benchmark::State& s) {
    run(s, quant::quantize_dynamic<nn::Linear>(nn::Linear<>(1024, 1024), {.per_channel = true}), {Rows, 1024}, flop);
  });
  add(name + "int4", [](benchmark::State& s) {
    run(s, quant::quantize_weights<nn::Linear>(nn::Linear<>(1024, 1024), {.bits = 4}), {Rows, 1024}, flop);
  });
  add(name + "bfloat16", [](benchmark::State& s) {
    run(s, quant::quantize_weights<nn::Linear>(nn::Linear<>(1024, 1024), {.bits = 16}), {Rows, 1024}, flop);
  });
}

template <int In, int Out, int Kernel, int Size>
void add_conv2d() {
  static constexpr double flop = 2.0 * In * Out * Kernel * Kernel * Size * Size;
  static constexpr auto make = [] { return nn::Conv2d<>(In, Out, Kernel, {.padding = Kernel / 2}); };
  const std::string name = "conv2d/" + std::to_string(In) + "x" + std::to_string(Out) + "k" + std::to_string(Kernel) +
                           "@" + std::to_string(Size) + "b1/";
  add(name + "float", [](benchmark::State& s) { run(s, make(), {1, In, Size, Size}, flop); });
  add(name + "static_int8", [](benchmark::State& s) {
    const std::vector<Tensor<float>> data{randn({1, In, Size, Size})};
    run(s, quant::quantize_static<nn::Conv2d>(make(), data), {1, In, Size, Size}, flop);
  });
}

const bool added = [] {
  add_linear<1>();
  add_linear<64>();
  add_conv2d<64, 64, 3, 56>();
  add_conv2d<64, 256, 1, 56>();
  return true;
}();

}  // namespace
