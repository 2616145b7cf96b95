// Pipeline: a model in stages, one a rank, through which a batch goes in parts.
//   parallel::run_stages<Features, Classifier>(comm, [&](auto& stage) {
//     parallel::Pipeline pipeline(stage, comm, {.micro_batches = 4});
//     optim::SGD optimizer(stage.parameters(), {.lr = 0.01});
//     for (auto& [inputs, labels] : loader) {
//       optimizer.zero_grad();
//       double loss = pipeline.step(inputs, labels, criterion);
//       optimizer.step();
//     }
//   });
#pragma once

#include <tenet/nn/module.hpp>
#include <tenet/ops/join.hpp>
#include <tenet/ops/slice.hpp>
#include <tenet/parallel/message.hpp>

namespace tenet::parallel {

/// When a stage turns to backward: after all forwards, or as early as it can, which keeps fewer micro-batches alive.
/// See Huang et al. 2019, "GPipe", and Narayanan et al. 2019, "PipeDream" (there 1F1B).
enum class PipelineSchedule { gpipe, one_forward_one_backward };

struct PipelineOptions {
  int micro_batches = 4;  ///< parts that a batch is split into; a smaller batch has one an example
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
};

inline namespace TENET_CONFIG {
namespace detail {

/// Whether a model, perhaps inside another's module(), or a function can be called with such arguments.
template <class F, class... A>
constexpr bool takes() {
  if constexpr (nn::IsModule<F>) {
    return requires(F & f, const A&... a) { f.forward(a...); };
  } else if constexpr (requires(F & f) { f.module(); }) {
    return takes<std::remove_cvref_t<decltype(std::declval<F&>().module())>, A...>();
  } else {
    return std::is_invocable_v<F&, const A&...>;
  }
}

/// The micro-batches of one batch on their way through a rank's stage, whose inputs are of element type T.
template <class M, class C, class T>
class StageRun {
 public:
  using Output = tensor_t<decltype(std::declval<M&>()(std::declval<const Tensor<T>&>()))>;
  struct MicroBatch {
    Tensor<T> input;
    Output output;
  };

  StageRun(M& stage, C& comm, const Tensor<T>& inputs, int micro_batches)
      : stage_(stage), comm_(comm), inputs_(inputs) {
    if (!first()) return;
    if (!inputs.defined() || inputs.dim() == 0 || inputs.size(0) == 0) {
      throw ShapeError(text({"pipeline: expected a batch of at least one example, got ",
                             inputs.defined() ? inputs.shape().str() : "an undefined tensor"}));
    }
    examples_ = inputs.size(0);
    count_ = std::min<std::int64_t>(micro_batches, examples_);
  }

  bool first() const { return comm_.rank() == 0; }
  bool last() const { return comm_.rank() == comm_.size() - 1; }
  /// The numbers of micro-batches and of examples; known once the first has come.
  std::int64_t count() const { return count_; }
  std::int64_t examples() const { return examples_; }
  /// Examples of micro-batch `k`, and their share of all.
  Range range(std::int64_t k) const { return part_of(examples_, count_, k); }
  double share(std::int64_t k) const { return double(range(k).size) / double(examples_); }

  /// Takes micro-batch `k`, and hands the result on.
  MicroBatch forward(std::int64_t k) {
    MicroBatch m;
    m.input = first() ? inputs_.narrow(0, range(k).begin, range(k).size) : recv(k);
    m.output = call(m.input);
    if (!last()) {
      const Envelope e{.wants_gradient = m.output.requires_grad(), .parts = count_, .examples = examples_};
      send_tensor(comm_, comm_.rank() + 1, m.output, e, what("activations", k));
    }
    return m;
  }
  /// Goes back through micro-batch `k` from its loss, a mean over its examples, or from the gradient that the next
  /// stage hands back; then hands back that of its input.
  template <class U>
  void backward(std::int64_t k, const MicroBatch& m, const Tensor<U>& loss) {
    if (last()) {
      if (loss.requires_grad()) loss.backward(full<U>({}, U(share(k))));
    } else if (m.output.requires_grad()) {
      Envelope e;
      m.output.backward(recv_tensor<element_t<Output>>(comm_, "pipeline", comm_.rank() + 1, e, what("gradients", k)));
    }
    if constexpr (FloatElement<T>) {
      if (first() || !m.input.requires_grad()) return;
      const Tensor<T> g = m.input.grad() ? m.input.grad() : zeros<T>(m.input.shape());
      send_tensor(comm_, comm_.rank() - 1, g, {}, what("gradients", k));
    }
  }

 private:
  static std::string what(const char* kind, std::int64_t k) { return text({kind, " of micro-batch ", k}); }

  Tensor<T> recv(std::int64_t k) {
    Envelope e;
    const int from = comm_.rank() - 1;
    const Tensor<T> x = recv_tensor<T>(comm_, "pipeline", from, e, what("activations", k));
    if (k == 0) {
      count_ = e.parts;
      examples_ = e.examples;
    }
    if (e.parts != count_ || e.examples != examples_) {
      throw Error(text({"pipeline: rank ", comm_.world_rank(comm_.rank()), " expected one of ", count_,
                        " micro-batches of ", examples_, " examples from rank ", comm_.world_rank(from),
                        ", got one of ", e.parts, " of ", e.examples}));
    }
    x.impl()->requires_grad = e.wants_gradient;
    return x;
  }
  Output call(const Tensor<T>& x) {
    try {
      return stage_(x);
    } catch (const ShapeError& e) {
      if (first()) throw;
      throw ShapeError(text({"pipeline: the stage of rank ", comm_.world_rank(comm_.rank()), " got activations ",
                             x.shape(), " from rank ", comm_.world_rank(comm_.rank() - 1), ": ", e.what()}));
    }
  }

  M& stage_;
  C& comm_;
  const Tensor<T>& inputs_;
  std::int64_t count_ = 0, examples_ = 0;
};

}  // namespace detail
}  // namespace TENET_CONFIG

/// Trains a model whose stages are on the ranks of `comm`, in their order: rank 0's takes the batch, each other one
/// what the one before it gives, one tensor each. A batch goes through in micro-batches, cut along its first dimension,
/// whose sizes differ by one at most.
///
/// Gradients equal the unsplit model's to rounding and are bit-identical from run to run and with either schedule. With
/// more than one micro-batch, a layer that looks at other examples sees its micro-batch only: batch statistics are
/// taken, and running ones updated, once a micro-batch. Random numbers come from each rank's own generator, micro-batch
/// after micro-batch: they are others than the unsplit model's. What looks at all gradients, such as clipping by their
/// norm, sees those of the stage. A parameter of two stages is two parameters.
///
/// `stage` is a module, or DistributedDataParallel over one and another communicator, which exchanges gradients in the
/// last micro-batch; if it has buffers, the ranks of that one must have equal numbers of micro-batches. The stage and
/// the communicator must outlive this. See torch.distributed.pipelining.
template <class M, Communicator C>
class Pipeline {
 public:
  /// Throws Error unless micro_batches >= 1.
  TENET_TAG Pipeline(M& stage, C& comm, const PipelineOptions& options = {})
      : stage_(&stage), comm_(&comm), options_(options) {
    if (options.micro_batches < 1) {
      throw Error(text({"pipeline: expected micro_batches >= 1, got ", options.micro_batches}));
    }
  }

  TENET_TAG M& stage() const { return *stage_; }

  /// Forward, loss and backward of a batch; every rank calls it. Adds to the .grad() of the stage's parameters the
  /// gradient of the batch's loss, which it returns on every rank: the mean of loss(result, targets), a scalar, over
  /// the micro-batches, weighted by their examples. So a loss that is a mean over examples is that of the batch. Only
  /// rank 0 looks at `inputs` and only the last one at `targets`, whose first dimension is that of the inputs.
  /// In no_grad, which all ranks are in or none, it only computes the loss.
  ///
  /// Stages after the first take elements of `In`: step<bfloat16>(...). Throws ShapeError for an empty batch, other
  /// targets, a loss that is no scalar, and activations that the stage does not take; DTypeError where the types of
  /// stages do not fit. The other ranks then get an Error that names that one.
  template <FloatElement In = float, class X, TensorLike Y, class L>
  TENET_TAG double step(const Tensor<X>& inputs, const Y& targets, L&& loss) {
    return enter<In, double>(inputs, [&](auto run) { return train(run, targets, loss); });
  }

  /// The model's result without a graph, on every rank, joined along its first dimension; its elements are `Out`. Every
  /// rank calls it, and only rank 0 looks at `inputs`. Throws as step() does. Stages are in training or evaluation as
  /// they were set.
  template <FloatElement Out = float, FloatElement In = float, class X>
  TENET_TAG Tensor<Out> forward(const Tensor<X>& inputs) {
    const no_grad guard;
    return enter<In, Tensor<Out>>(inputs, [&](auto run) {
      std::vector<typename decltype(run)::Output> outputs;
      for (std::int64_t k = 0; k == 0 || k < run.count(); ++k) {
        auto m = run.forward(k);
        if (run.last()) outputs.push_back(std::move(m.output));
      }
      const AnyTensor whole = run.last() ? cat(outputs) : AnyTensor();
      return detail::broadcast_tensor<Out>(*comm_, "pipeline", comm_->size() - 1, whole, "result");
    });
  }

 private:
  /// f(run) with this rank's type of inputs.
  template <class In, class R, class X, class F>
  TENET_TAG R enter(const Tensor<X>& inputs, const F& f) {
    return comm_->rank() == 0 ? enter_as<R>(inputs, f) : enter_as<R>(Tensor<In>(), f);
  }
  template <class R, class T, class F>
  TENET_TAG R enter_as(const Tensor<T>& inputs, const F& f) {
    if constexpr (detail::takes<M, Tensor<T>>()) {
      return f(detail::StageRun<M, C, T>(*stage_, *comm_, inputs, options_.micro_batches));
    } else {
      throw DTypeError(
          text({"pipeline: the stage of rank ", comm_->world_rank(comm_->rank()), " takes no ", name(dtype_of<T>)}));
    }
  }

  template <class Run, class Y, class L>
  TENET_TAG double train(Run& run, const Y& targets, L& loss) {
    const bool early = options_.schedule == PipelineSchedule::one_forward_one_backward;
    const std::int64_t ahead = early ? comm_->size() - 1 - comm_->rank() : std::numeric_limits<std::int64_t>::max();
    std::vector<typename Run::MicroBatch> alive;  // those that are done are empty
    std::vector<decltype(loss_of(run, loss, alive[0].output, targets, 0))> losses;
    double total = 0;
    std::int64_t done = 0;
    const auto backward = [&] {
      const auto m = std::exchange(alive[std::size_t(done)], {});
      auto l = std::exchange(losses[std::size_t(done)], {});
      const std::int64_t k = done++;
      if constexpr (requires { stage_->no_sync(); }) {
        if (done < run.count()) {
          const auto alone = stage_->no_sync();
          return run.backward(k, m, l);
        }
      }
      run.backward(k, m, l);
    };
    for (std::int64_t k = 0; k == 0 || k < run.count(); ++k) {
      alive.push_back(run.forward(k));
      losses.emplace_back();
      if (run.last()) {
        losses.back() = loss_of(run, loss, alive.back().output, targets, k);
        total += double(losses.back().item()) * run.share(k);
      }
      if (k >= ahead) backward();
    }
    while (done < run.count()) backward();
    comm_->broadcast(&total, sizeof total, comm_->size() - 1, "loss");
    return total;
  }

  template <class Run, class L, class Output, class Y>
  TENET_TAG static auto loss_of(const Run& run, L& loss, const Output& y, const Y& targets, std::int64_t k) {
    if constexpr (detail::takes<L, Output, tensor_t<Y>>()) {
      if (!targets.defined() || targets.dim() == 0 || targets.size(0) != run.examples()) {
        throw ShapeError(text({"pipeline: expected targets of ", run.examples(), " examples, got ",
                               targets.defined() ? targets.shape().str() : "an undefined tensor"}));
      }
      const tensor_t<Y> part = narrow(targets, 0, run.range(k).begin, run.range(k).size);
      auto l = loss(y, part);
      if (l.dim() != 0) throw ShapeError(text({"pipeline: expected a scalar loss, got shape ", l.shape()}));
      return l;
    } else {
      return [&]() -> Output {
        throw DTypeError(text({"pipeline: the loss takes no ", name(dtype_of<element_t<Output>>), " and ",
                               name(dtype_of<element_t<Y>>)}));
      }();
    }
  }

  M* stage_;
  C* comm_;
  PipelineOptions options_;
};

}  // namespace tenet::parallel
