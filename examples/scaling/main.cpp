// How training scales: a cost model is calibrated on this machine, checked against real runs on 1, 2 and 4 ranks, and
// then asked about a large model on up to 4,096 ranks of a cluster.
#include <tenet/tenet.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>

#include "../mnist/lenet.hpp"
#include "chart.hpp"

using namespace tenet;
using parallel::Machine;
using parallel::Plan;
using parallel::predict;
using parallel::Prediction;
using parallel::Workload;

namespace {

struct Options {
  std::string plot;
  std::int64_t batch = 256;
  int rounds = 15;
  // The large model and its cluster.
  double parameters = 6.7e9, tokens = 2048, width = 4096, flops = 150e12, memory = 80e9;
  std::int64_t layers = 32, ranks_per_node = 8;
  double within = 250e9, between = 25e9, latency = 5e-6;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// ---- what is measured here

/// Seconds of the parts of a step, on rank 0.
struct Seconds {
  double gradients, update;
  double step() const { return gradients + update; }
};

/// Steps of LeNet on so many ranks, each on a core of its own while there are enough: with the exchange of gradients,
/// or each for itself.
Seconds measure(int ranks, std::int64_t batch_of_rank, bool exchange, int rounds) {
  const int cores = num_threads();
  set_num_threads(ranks);  // one for each rank
  std::vector<double> gradients, update;
  parallel::run_threads(ranks, [&](auto& comm) {
    LeNet model;
    parallel::DistributedDataParallel ddp(model, comm);
    optim::SGD optimizer(model.parameters(), {.lr = 1e-3, .momentum = 0.9});
    nn::CrossEntropyLoss criterion;
    const Tensor<float> x = randn({batch_of_rank, 1, 28, 28});
    const Tensor<std::int64_t> y = zeros<std::int64_t>({batch_of_rank});
    for (int i = 0; i < rounds + 3; ++i) {
      comm.barrier();
      optimizer.zero_grad();
      const double begin = now();
      if (exchange) criterion(ddp(x), y).backward();
      else criterion(model(x), y).backward();
      const double middle = now();
      optimizer.step();
      if (comm.rank() || i < 3) continue;
      gradients.push_back(middle - begin);
      update.push_back(now() - middle);
    }
  });
  set_num_threads(cores);
  return {median(gradients), median(update)};
}

/// Seconds of an all_reduce of n floats over two ranks.
double all_reduce_seconds(std::int64_t n, int rounds) {
  std::vector<double> seconds;
  parallel::run_threads(2, [&](auto& comm) {
    const Tensor<float> data = zeros({n});
    for (int i = 0; i < 3 * rounds + 3; ++i) {
      comm.barrier();
      const double begin = now();
      comm.all_reduce(data.data(), n);
      if (comm.rank() == 0 && i >= 3) seconds.push_back(now() - begin);
    }
  });
  return median(seconds);
}

Workload lenet() {
  LeNet model;
  Workload w;
  w.parameters = double(model.num_parameters());
  w.flops_per_example = 13.2e6;  // two operations a multiplication, forward and backward
  w.optimizer_bytes = 4;         // the momentum
  return w;
}

/// A node of the cores that this process may use: of 16 at the most, as many ranks as the curve has.
Machine this_machine(const Workload& work, const Options& o) {
  Machine m;
  const int cores = std::min(16, num_threads());
  m.cores_per_node = cores;
  m.ranks_per_node = 4096;
  const Seconds small = measure(1, o.batch / 4, false, o.rounds), large = measure(1, o.batch, false, o.rounds);
  const double slope = (large.gradients - small.gradients) / double(o.batch - o.batch / 4);
  m.flops = work.flops_per_example / slope;
  m.step_overhead = std::max(0.0, large.gradients - slope * double(o.batch));
  m.memory_bandwidth =
      work.parameters * (2 * work.parameter_bytes + work.gradient_bytes + 2 * work.optimizer_bytes) / large.update;
  if (cores > 1) {
    const std::int64_t each = std::max<std::int64_t>(1, o.batch / cores);
    m.contention =
        std::max(1.0, measure(cores, each, false, o.rounds).gradients / measure(1, each, false, o.rounds).gradients);
  }
  const std::int64_t many = std::int64_t(1) << 20;
  m.within.latency = all_reduce_seconds(1, o.rounds) / 2;
  m.within.bandwidth = double(many) * 4 / (all_reduce_seconds(many, o.rounds) - 2 * m.within.latency);
  return m;
}

chart::Panel check(const Options& o) {
  const Workload work = lenet();
  const Machine machine = this_machine(work, o);
  std::printf(
      "this machine: %.0f GFLOP/s a core in training, %.2f ms a step besides, all_reduce %.0f us + %.1f GB/s, "
      "%.2f times slower with all cores at work\n\n",
      machine.flops / 1e9, machine.step_overhead * 1e3, machine.within.latency * 2e6, machine.within.bandwidth / 1e9,
      machine.contention);
  std::printf("LeNet, batch %lld over the ranks, ms a step\n  ranks  predicted  measured  error\n", (long long)o.batch);
  chart::Panel panel{
      "This machine: LeNet, batch " + std::to_string(o.batch), " ms", {{"a step", {}, {}}}, false, 0, ""};
  for (const int ranks : {1, 2, 4, 8, 16}) {
    const double predicted = predict(work, machine, {.data = ranks, .batch = double(o.batch)}).step();
    panel.curves[0].predicted.push_back({double(ranks), predicted * 1e3});
    if (ranks > 4) continue;
    const double measured = measure(ranks, o.batch / ranks, true, 2 * o.rounds).step();
    panel.curves[0].measured.push_back({double(ranks), measured * 1e3});
    std::printf("  %5d  %9.2f  %8.2f  %+4.0f %%\n", ranks, predicted * 1e3, measured * 1e3,
                100 * (predicted / measured - 1));
  }
  return panel;
}

// ---- what is predicted

/// A transformer trained in bfloat16 with Adam: two bytes a parameter and a gradient; master, mean and variance in
/// float. Activations are kept at the layers' boundaries and computed again (Korthikanti et al., 2022).
Workload transformer(const Options& o) {
  Workload w;
  w.parameters = o.parameters;
  w.flops_per_example = 8 * o.parameters * o.tokens;  // 6, and 2 to compute activations again
  w.layers = o.layers;
  w.boundary_bytes = w.tensor_bytes = 2 * o.tokens * o.width;
  w.activation_bytes = 2 * o.tokens * o.width * double(o.layers + 17);  // and those of the layer at work
  w.parameter_bytes = w.gradient_bytes = 2;
  w.optimizer_bytes = 12;
  w.bucket_bytes = 25e6;
  return w;
}

Machine cluster(const Options& o) {
  Machine m;
  m.flops = o.flops;
  m.memory_bandwidth = 2e12;
  m.ranks_per_node = m.cores_per_node = o.ranks_per_node;
  m.within = {o.latency, o.within};
  m.between = {2 * o.latency, o.between};
  return m;
}

struct Strategy {
  const char* name;
  std::int64_t pipeline, tensor;
  int zero_stage;
};

std::vector<chart::Panel> draw(const Options& o) {
  const Workload work = transformer(o);
  const Machine machine = cluster(o);
  const std::vector<Strategy> strategies = {{"data parallel", 1, 1, 0},
                                            {"data parallel, ZeRO-1", 1, 1, 1},
                                            {"data parallel, ZeRO-3", 1, 1, 3},
                                            {"tensor 8 x data", 1, 8, 1},
                                            {"tensor 8 x pipeline 8 x data", 8, 8, 1}};
  char title[120];
  std::snprintf(title, sizeof title, "A model of %.1f billion parameters: efficiency", o.parameters / 1e9);
  chart::Panel efficiency{title, " %", {}, false, 0, ""};
  chart::Panel memory{"Memory of a rank", " GB", {}, true, o.memory / 1e9, "an accelerator's memory"};
  std::printf(
      "\npredicted: %.1f billion parameters, %g tokens an example, one example a rank and step\n"
      "  %-30s ranks   s a step  efficiency  GB a rank\n",
      o.parameters / 1e9, o.tokens, "");
  for (const Strategy& s : strategies) {
    if (s.pipeline > o.layers) continue;
    chart::Curve fast{s.name, {}, {}}, small{s.name, {}, {}};
    for (std::int64_t ranks = s.pipeline * s.tensor; ranks <= 4096; ranks *= 2) {
      const std::int64_t data = ranks / (s.pipeline * s.tensor);
      // Replicas of many ranks have many examples, which they take one after the other.
      const Plan plan{.data = data,
                      .pipeline = s.pipeline,
                      .tensor = s.tensor,
                      .zero_stage = s.zero_stage,
                      .micro_batches = s.pipeline * s.tensor,
                      .batch = double(ranks)};
      const Prediction p = predict(work, machine, plan);
      fast.predicted.push_back({double(ranks), 100 * p.efficiency});
      small.predicted.push_back({double(ranks), p.memory() / 1e9});
      if (ranks == 64 || ranks == 4096) {
        std::printf("  %-30s %5lld  %9.2f  %8.0f %%  %9.1f\n", s.name, (long long)ranks, p.step(), 100 * p.efficiency,
                    p.memory() / 1e9);
      }
    }
    efficiency.curves.push_back(fast);
    memory.curves.push_back(small);
  }
  return {efficiency, memory};
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Predicts how training scales, and checks the prediction on this machine");
  app.add_option("--plot", o.plot, "write the curves as an SVG picture");
  app.add_option("--batch", o.batch, "of LeNet, over all ranks")->check(CLI::Range(16, 4096));
  app.add_option("--rounds", o.rounds, "steps a measurement")->check(CLI::Range(3, 1000));
  app.add_option("--parameters", o.parameters, "of the large model");
  app.add_option("--layers", o.layers, "of the large model");
  app.add_option("--width", o.width, "of its layers");
  app.add_option("--tokens", o.tokens, "of an example");
  app.add_option("--flops", o.flops, "a second that an accelerator attains");
  app.add_option("--memory", o.memory, "bytes of an accelerator");
  app.add_option("--ranks-per-node", o.ranks_per_node);
  app.add_option("--within", o.within, "bytes a second between accelerators of a node");
  app.add_option("--between", o.between, "bytes a second between those of two nodes");
  app.add_option("--latency", o.latency, "seconds of a message within a node; between nodes twice");
  CLI11_PARSE(app, argc, argv);
  try {
    std::vector<chart::Panel> panels = {check(o)};
    for (chart::Panel& p : draw(o)) panels.push_back(std::move(p));
    if (o.plot.empty()) return 0;
    chart::write_svg(o.plot, "Dots were measured on this machine; lines are predicted by parallel::predict", panels);
    std::printf("\nwrote %s\n", o.plot.c_str());
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
