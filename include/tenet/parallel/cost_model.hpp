// Predicts the time and the memory of a training step on many ranks, from a few figures of one machine.
//
// A step is arithmetic, which the ranks of a replica share, and messages, which cost a latency and their bytes over a
// bandwidth (Hockney, "The communication challenge for MPP", 1994). Nothing overlaps: a step is the sum of its parts.
#pragma once

#include <tenet/core/error.hpp>

#include <algorithm>
#include <cmath>

namespace tenet::parallel {

/// What connects two ranks.
struct Link {
  double latency = 1e-6;    ///< seconds a message
  double bandwidth = 1e10;  ///< bytes a second, of each rank
};

/// What ranks run on: nodes, each with a number of ranks and of cores (or accelerators) that they share.
struct Machine {
  double flops = 1e11;             ///< floating-point operations a second of a core, as attained in training
  double memory_bandwidth = 1e10;  ///< bytes a second that an optimizer's step moves on a core
  double step_overhead = 0;        ///< seconds of a forward and backward that do not depend on the batch
  double contention = 1;           ///< how much slower a core is when all of its node work; 1: not
  std::int64_t ranks_per_node = 1;
  std::int64_t cores_per_node = 1;
  Link within, between;  ///< nodes
};

/// A model and its training, by sizes.
struct Workload {
  double parameters = 0;
  double flops_per_example = 0;       ///< forward and backward; of a transformer 6 a parameter and token
  double activation_bytes = 0;        ///< kept of an example between forward and backward
  double boundary_bytes = 0;          ///< of an example, from one stage of a pipeline to the next
  std::int64_t layers = 1;            ///< that a pipeline can be cut into
  double tensor_bytes = 0;            ///< of an example, summed over the tensor ranks at once
  double tensor_sums_per_layer = 4;   ///< such sums in a forward and backward
  double parameter_bytes = 4;         ///< of one parameter
  double gradient_bytes = 4;          ///< of its gradient
  double optimizer_bytes = 8;         ///< of what the optimizer keeps of it: momentum 4, Adam 8
  double bucket_bytes = 1024 * 1024;  ///< gradients travel together to about this size
};

/// How ranks share a step: `data` replicas, each a pipeline of stages, each of `tensor` ranks. Ranks of a tensor group
/// are neighbours, then those of a pipeline, then replicas.
struct Plan {
  std::int64_t data = 1, pipeline = 1, tensor = 1;
  int zero_stage = 0;              ///< 1: replicas share optimizer state, 2: gradients too, 3: parameters too
  std::int64_t micro_batches = 1;  ///< of a replica's batch, in a pipeline
  double batch = 1;                ///< examples of all replicas together
  std::int64_t ranks() const { return data * pipeline * tensor; }
};

/// Seconds of the parts of a step, and bytes of a rank.
struct Prediction {
  double compute = 0;   ///< forward and backward, if no stage waited
  double bubble = 0;    ///< a stage waits for the others to fill and drain
  double tensor = 0;    ///< sums over tensor ranks
  double pipeline = 0;  ///< activations and their gradients between stages
  double data = 0;      ///< gradients, and with ZeRO parameters, between replicas
  double optimizer = 0;
  double parameter_memory = 0, gradient_memory = 0, optimizer_memory = 0, activation_memory = 0;
  double efficiency = 0;  ///< the time that the arithmetic alone would take on as many free cores, of step()

  double step() const { return compute + bubble + tensor + pipeline + data + optimizer; }
  double memory() const { return parameter_memory + gradient_memory + optimizer_memory + activation_memory; }
};

inline namespace TENET_CONFIG {
namespace detail {

inline void expect_positive(const char* what, double value) {
  if (!(value > 0) || !std::isfinite(value)) throw Error(text({"predict: expected ", what, " > 0, got ", value}));
}

/// How much slower a rank computes while so many ranks do: they share cores where there are more, and a core slows down
/// as its neighbours begin to work.
inline double crowding(const Machine& m, std::int64_t ranks) {
  const double on_node = double(std::min(ranks, m.ranks_per_node)), cores = double(m.cores_per_node);
  if (on_node >= cores) return on_node / cores * m.contention;
  return 1 + (m.contention - 1) * (on_node - 1) / (cores - 1);
}

/// Seconds of an all_reduce of `bytes` over `n` ranks, which stand `stride` apart: halves are exchanged, summed and
/// gathered (Rabenseifner; Thakur et al., "Optimization of collective communication operations in MPICH", 2005). A
/// reduce_scatter or an all_gather takes half of it.
inline double all_reduce_seconds(const Machine& m, std::int64_t n, std::int64_t stride, double bytes,
                                 double messages = 1) {
  if (n == 1) return 0;
  const Link& link = n * stride > m.ranks_per_node ? m.between : m.within;
  const double rounds = std::ceil(std::log2(double(n)));
  return 2 * rounds * link.latency * std::max(1.0, messages) + 2 * double(n - 1) / double(n) * bytes / link.bandwidth;
}

}  // namespace detail

/// What a step of `work` costs on `machine` by `plan`. Throws Error for sizes that are not positive, a pipeline of more
/// stages than layers, fewer examples than replicas times micro-batches, and a ZeRO stage that is not 0 to 3. ZeRO:
/// Rajbhandari et al., 2020; pipelines: Narayanan et al., 2021 (1F1B).
inline Prediction predict(const Workload& work, const Machine& machine, const Plan& plan) {
  detail::expect_positive("parameters", work.parameters);
  detail::expect_positive("flops_per_example", work.flops_per_example);
  detail::expect_positive("flops", machine.flops);
  detail::expect_positive("memory_bandwidth", machine.memory_bandwidth);
  detail::expect_positive("contention", machine.contention);
  detail::expect_positive("bandwidth", std::min(machine.within.bandwidth, machine.between.bandwidth));
  detail::expect_positive("ranks_per_node", double(std::min(machine.ranks_per_node, machine.cores_per_node)));
  detail::expect_positive("ranks", double(std::min({plan.data, plan.pipeline, plan.tensor, plan.micro_batches})));
  detail::expect_positive("bucket_bytes", work.bucket_bytes);
  if (plan.pipeline > work.layers) {
    throw Error(text({"predict: expected at most ", work.layers, " stages, one a layer, got ", plan.pipeline}));
  }
  if (plan.batch < double(plan.data * plan.micro_batches)) {
    throw Error(text({"predict: expected an example for each of ", plan.data, " times ", plan.micro_batches,
                      " micro-batches, got a batch of ", plan.batch}));
  }
  if (plan.zero_stage < 0 || plan.zero_stage > 3) {
    throw Error(text({"predict: expected a ZeRO stage from 0 to 3, got ", plan.zero_stage}));
  }

  const double sharers = double(plan.pipeline * plan.tensor), replicas = double(plan.data);
  const double examples = plan.batch / replicas, micro = double(plan.micro_batches), stages = double(plan.pipeline);
  const double crowd = detail::crowding(machine, plan.ranks());

  Prediction p;
  const double arithmetic = examples * work.flops_per_example / sharers / machine.flops;
  p.compute = (arithmetic + machine.step_overhead * micro) * crowd;
  p.bubble = p.compute * (stages - 1) / micro;
  if (plan.tensor > 1) {
    const double sums = work.tensor_sums_per_layer * double(work.layers) / stages * micro;
    p.tensor = sums * detail::all_reduce_seconds(machine, plan.tensor, 1, work.tensor_bytes * examples / micro);
  }
  if (plan.pipeline > 1) {
    const Link& link = sharers > double(machine.ranks_per_node) ? machine.between : machine.within;
    p.pipeline = 2 * micro * (link.latency + work.boundary_bytes * examples / micro / link.bandwidth);
  }
  const double own = work.parameters / sharers;  // parameters of a rank, before ZeRO
  const double gathered = plan.zero_stage == 0  ? work.gradient_bytes
                          : plan.zero_stage < 3 ? work.parameter_bytes
                                                : 2 * work.parameter_bytes;  // for forward and for backward
  const double traffic = own * (work.gradient_bytes + gathered) / 2;
  p.data = crowd * detail::all_reduce_seconds(machine, plan.data, plan.pipeline * plan.tensor, traffic,
                                              own * work.gradient_bytes / work.bucket_bytes);
  const double shard = plan.zero_stage >= 1 ? own / replicas : own;
  p.optimizer = crowd * shard * (2 * work.parameter_bytes + work.gradient_bytes + 2 * work.optimizer_bytes) /
                machine.memory_bandwidth;

  const double at_work = plan.zero_stage == 3 ? own / double(work.layers) : 0;  // the layer that is gathered
  p.parameter_memory = (plan.zero_stage == 3 ? own / replicas + at_work : own) * work.parameter_bytes;
  p.gradient_memory = own * work.gradient_bytes / (plan.zero_stage >= 2 ? replicas : 1);
  p.optimizer_memory = shard * work.optimizer_bytes;
  p.activation_memory = work.activation_bytes / sharers * examples / micro * std::min(stages, micro);
  p.efficiency = plan.batch * work.flops_per_example / machine.flops / double(plan.ranks()) / p.step();
  return p;
}

}  // namespace TENET_CONFIG
}  // namespace tenet::parallel
