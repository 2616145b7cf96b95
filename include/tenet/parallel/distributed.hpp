// DistributedDataParallel: a model on every rank of a communicator, each with its own part of the batch.
//   parallel::run_threads(4, [&](auto& comm) {
//     Net model;
//     parallel::DistributedDataParallel ddp(model, comm);
//     data::DataLoader loader(dataset, {.batch_size = 64, .rank = comm.rank(), .ranks = comm.size()});
//     ... loss = criterion(ddp(inputs), labels); loss.backward(); optimizer.step(); ...
//   });
#pragma once

#include <tenet/parallel/reducer.hpp>
#include <tenet/parallel/shard.hpp>

#include <memory>

namespace tenet::parallel {

inline namespace TENET_CONFIG {
namespace detail {

struct DistributedName {
  static constexpr const char* name = "distributed_data_parallel";
};

/// Backward of a rank's part, and then the exchange of gradients.
template <class T, class C>
struct DistributedPass final : Pass {
  std::shared_ptr<Reducer<C>> reducer;
  Tensor<T> output;
  std::vector<AnyTensor> arguments;  // leaves of those that a gradient is wanted of
  std::int64_t examples = 0;

  void backward(const AnyTensor& gradient, AnyTensor* out) override {
    try {
      if (output.requires_grad()) output.backward(Tensor<T>(gradient), {.retain_graph = true});
    } catch (...) {  // what it left is no gradient of the next one
      for (const AnyTensor& leaf : arguments) leaf.zero_grad();
      reducer->drop();
      throw;
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) out[i] = take_gradient(arguments[i]);
    reducer->count(examples);
    if (reducer->synchronizes) reducer->exchange(out + arguments.size());
  }
};

}  // namespace detail
}  // namespace TENET_CONFIG

/// Trains one model on all ranks. The constructor checks that the ranks' models agree in names, shapes, types and
/// order, gives all of them rank 0's values, and checks those. Every backward() then gives each rank the same
/// gradients: the mean over the ranks, weighted by the number of examples (the first size of forward's first tensor),
/// so that a loss that is a mean has the gradient of its mean over all ranks' examples; a rank with none does not
/// count. Parameters that one rank does not use count as 0 there; those that none uses get no gradient.
///
/// Each rank calls forward and backward equally often, in the same order; where they differ, the communicator throws
/// Error on each. Gradients sum in the order of the ranks: all ranks step alike, bit by bit, and so does every run. The
/// model and the communicator must outlive this and its graphs. See torch.nn.parallel.DistributedDataParallel.
template <class M, Communicator C>
class DistributedDataParallel {
  static_assert(nn::IsModule<M>, "DistributedDataParallel: expected a module");

 public:
  /// Throws Error on every rank where the models differ, naming the parameter and the ranks.
  TENET_TAG DistributedDataParallel(M& model, C& comm, const DistributedOptions& options = {})
      : model_(&model), comm_(&comm), options_(options), reducer_(std::make_shared<Reducer<C>>(comm, options)) {
    if (options.bucket_bytes < 1) {
      throw Error(text({"distributed: expected bucket_bytes >= 1, got ", options.bucket_bytes}));
    }
    if (options.compression != DType::float32 && options.compression != DType::bfloat16) {
      throw Error(text({"distributed: expected compression to float32 or bfloat16, got ", name(options.compression)}));
    }
    start_alike(comm, model.state_slots());
  }

  TENET_TAG M& module() const { return *model_; }
  TENET_TAG C& communicator() const { return *comm_; }

  /// model(args...) of this rank; backward exchanges the gradients. It throws NotImplemented for create_graph.
  template <class... A>
  TENET_TAG auto operator()(const A&... args) {
    using Y = std::remove_cvref_t<decltype((*model_)(args...))>;
    static_assert(TensorLike<Y>, "DistributedDataParallel: the model gives one tensor");
    using T = element_t<Y>;
    const detail::Trained own(*model_);
    if (options_.broadcast_buffers && model_->is_training()) broadcast_buffers(*comm_, own.slots());
    if (!state::grad_enabled) return tensor_t<Y>((*model_)(args...));

    auto pass = std::make_unique<detail::DistributedPass<T, C>>();
    std::vector<AnyTensor> inputs;
    pass->reducer = reducer_;
    pass->examples = detail::examples_of(args...);
    {
      const detail::Trained::Swap swap(own, reducer_->leaves(own));
      const auto take = [&]<class X>(const X& x) -> decltype(auto) {
        if constexpr (TensorLike<X>) {
          if (!x.defined() || !x.requires_grad()) return tensor_t<X>(x);
          inputs.push_back(x);
          pass->arguments.push_back(detail::leaf_of(x));
          return tensor_t<X>(pass->arguments.back());
        } else {
          return (x);
        }
      };
      std::tuple<decltype(take(args))...> mine{take(args)...};  // braces: from left to right
      pass->output = std::apply([&](auto&... x) { return Tensor<T>((*model_)(x...)); }, mine);
    }
    inputs.insert(inputs.end(), own.tensors().begin(), own.tensors().end());
    const Tensor<T>& output = pass->output;
    const Tensor<T> y(make_alias(*output.impl(), output.shape(), output.strides(), 0));
    detail::record_pass<detail::DistributedName>(y, inputs, std::move(pass));
    return y;
  }

  /// While it lives, backward() keeps its gradients to this rank; the first one after it exchanges their sum:
  ///   { auto guard = ddp.no_sync(); criterion(ddp(a), b).backward(); }
  ///   criterion(ddp(c), d).backward();
  /// Until then the parameters' own .grad() stay as they are.
  class NoSync {
   public:
    TENET_TAG explicit NoSync(std::shared_ptr<Reducer<C>> r)
        : reducer_(std::move(r)), old_(std::exchange(reducer_->synchronizes, false)) {}
    TENET_TAG ~NoSync() { reducer_->synchronizes = old_; }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    std::shared_ptr<Reducer<C>> reducer_;
    bool old_;
  };
  [[nodiscard]] TENET_TAG NoSync no_sync() const { return NoSync(reducer_); }

  /// The state of the model, and of an optimizer over its parameters: the same on every rank. Throws Error for models
  /// with layers that are split over ranks; see whole_state_dict().
  TENET_TAG nn::StateDict state_dict() {
    detail::expect_whole("distributed", *model_);
    return model_->state_dict();
  }
  TENET_TAG void load_state_dict(const nn::StateDict& dict) {
    detail::expect_whole("distributed", *model_);
    model_->load_state_dict(dict);
  }
  template <class O>
  TENET_TAG nn::StateDict state_dict(const O& optimizer) {
    detail::expect_whole("distributed", *model_);
    return optimizer.state_dict();
  }
  template <class O>
  TENET_TAG void load_state_dict(O& optimizer, const nn::StateDict& dict) {
    detail::expect_whole("distributed", *model_);
    optimizer.load_state_dict(dict);
  }

  /// Throws Error on every rank, naming the first parameter or buffer that differs, unless all have the same values.
  TENET_TAG void check_agreement() const { check_values(*comm_, model_->state_slots()); }

 private:
  M* model_;
  C* comm_;
  DistributedOptions options_;
  std::shared_ptr<Reducer<C>> reducer_;
};

}  // namespace tenet::parallel
