// DataParallel: a model whose batch is split over threads.
//   auto replicas = parallel::DataParallel(model, {.replicas = 2});
//   Tensor<float> y = replicas(data);
#pragma once

#include <tenet/core/generator.hpp>
#include <tenet/kernels/cpu/update.hpp>
#include <tenet/ops/join.hpp>
#include <tenet/ops/slice.hpp>
#include <tenet/parallel/communicator.hpp>
#include <tenet/parallel/pass.hpp>
#include <tenet/parallel/workers.hpp>

#include <optional>

namespace tenet::parallel {

struct DataParallelOptions {
  int replicas = 2;  ///< parts that a batch is split into, each computed by a thread
};

inline namespace TENET_CONFIG {
namespace detail {

struct DataParallelName {
  static constexpr const char* name = "data_parallel";
};

/// One replica's part of a batch.
template <class T>
struct Part {
  Tensor<T> output;
  std::vector<AnyTensor> leaves;  // of the arguments, and then of the parameters
};

/// Backward of a split batch: each part's on its thread, and then the sum over the parts in their order.
template <class T>
struct DataParallelPass final : Pass {
  std::shared_ptr<Workers> workers;
  std::vector<Part<T>> parts;
  std::vector<Shape> arguments;  // shapes of the tensors among them; those with a dimension were split

  void backward(const AnyTensor& gradient, AnyTensor* out) override {
    std::vector<Tensor<T>> gradients;
    std::int64_t begin = 0;
    for (const Part<T>& p : parts) {
      gradients.push_back(narrow(Tensor<T>(gradient), 0, begin, p.output.size(0)));
      begin += p.output.size(0);
    }
    try {
      workers->run(int(parts.size()), [&](int i) {
        const Part<T>& p = parts[std::size_t(i)];
        if (p.output.requires_grad()) p.output.backward(gradients[std::size_t(i)], {.retain_graph = true});
      });
    } catch (...) {  // of what the others have found, nothing may stay for the next backward
      for (const Part<T>& p : parts) {
        for (const AnyTensor& leaf : p.leaves) take_gradient(leaf);
      }
      throw;
    }
    for (std::size_t k = 0; k < parts[0].leaves.size(); ++k) {
      out[k] = k < arguments.size() && arguments[k].size() > 0 ? joined(k) : summed(k);
    }
  }

 private:
  /// to += from: gradients, contiguous.
  static void add_gradient(const AnyTensor& to, const AnyTensor& from) {
    dispatch_floating("data_parallel", to.dtype(), [&]<class U>(U) {
      parallel_for(to.numel(), std::int64_t{1} << 15, [&](std::int64_t begin, std::int64_t end) {
        cpu::add_into(end - begin, static_cast<U*>(to.data_ptr()) + begin,
                      static_cast<const U*>(from.data_ptr()) + begin);
      });
    });
  }
  AnyTensor summed(std::size_t k) const {
    AnyTensor sum;
    for (const Part<T>& p : parts) {
      AnyTensor g = take_gradient(p.leaves[k]);
      if (!sum) sum = std::move(g);
      else if (g) add_gradient(sum, g);
    }
    return sum;
  }
  AnyTensor joined(std::size_t k) const {
    AnyTensor whole;
    std::int64_t begin = 0;
    for (const Part<T>& p : parts) {
      const AnyTensor g = take_gradient(p.leaves[k]);
      const std::int64_t bytes = p.leaves[k].numel() * std::int64_t(item_size(p.leaves[k].dtype()));
      if (g && bytes) {
        if (!whole) {
          whole = AnyTensor(make_impl(arguments[k], g.dtype()));
          std::memset(whole.data_ptr(), 0, whole.impl()->storage->bytes);
        }
        std::memcpy(static_cast<char*>(whole.data_ptr()) + begin, g.data_ptr(), std::size_t(bytes));
      }
      begin += bytes;
    }
    return whole;
  }
};

template <class X>
bool is_split(const X& x) {
  if constexpr (TensorLike<X>) return x.defined() && x.dim() > 0;
  else return false;
}

}  // namespace detail
}  // namespace TENET_CONFIG

/// Runs a model on parts of a batch at the same time. Every tensor argument with a dimension is split along its first
/// one; other arguments go to each replica whole. The result, a tensor, is joined along its first dimension, and
/// backward adds the sum of the replicas' gradients, in their order, to the model's own parameters: train those as
/// ever.
///
/// The result equals that of the whole batch to rounding, and is bit-identical from run to run and for any number
/// of threads. Layers that draw random numbers draw others than for the whole batch. The replicas share the memory
/// of the parameters; the first one is the model itself, so that only its changes of buffers and other members last. A
/// batch of fewer examples than replicas uses as many as it has. Grad mode, autocast and train() are the caller's. An
/// exception of a replica arrives at the caller, that of the first if several throw. The model must outlive its
/// DataParallel, and may be changed in any way between calls. See torch.nn.DataParallel.
template <class M>
class DataParallel {
  static_assert(nn::IsModule<M>, "DataParallel: expected a module");

 public:
  /// Throws Error unless 1 <= replicas <= max_threads, and when the system refuses a thread.
  TENET_TAG explicit DataParallel(M& model, const DataParallelOptions& options = {}) : model_(&model) {
    if (options.replicas < 1 || options.replicas > max_threads) {
      throw Error(text({"data_parallel: expected 1 to ", max_threads, " replicas, got ", options.replicas}));
    }
    workers_ = std::make_shared<Workers>(options.replicas);
  }

  TENET_TAG M& module() const { return *model_; }
  TENET_TAG int replicas() const { return workers_->size(); }

  /// model(args...), split over the replicas. Throws ShapeError if the arguments differ in their first dimension or the
  /// result has none; backward throws NotImplemented for create_graph.
  template <class... A>
  TENET_TAG auto operator()(const A&... args) {
    using Y = std::remove_cvref_t<decltype((*model_)(args...))>;
    static_assert(TensorLike<Y>, "DataParallel: the model gives one tensor");
    const std::int64_t examples = batch_size(args...);
    const int count = int(std::min<std::int64_t>(replicas(), examples));
    if (count < 2) return tensor_t<Y>((*model_)(args...));
    return run<element_t<Y>>(examples, count, args...);
  }

 private:
  template <class... A>
  TENET_TAG static std::int64_t batch_size(const A&... args) {
    std::int64_t size = 1;
    const AnyTensor* first = nullptr;
    const auto look = [&]<class X>(const X& x) {
      if constexpr (TensorLike<X>) {
        if (!detail::is_split(x)) return;
        if (first && x.size(0) != size) {
          throw ShapeError(text({"data_parallel: expected arguments with one first dimension, got shapes ",
                                 first->shape(), " and ", x.shape()}));
        }
        first = &x;
        size = x.size(0);
      }
    };
    (look(args), ...);
    return size;
  }

  template <class T, class... A>
  TENET_TAG Tensor<T> run(std::int64_t examples, int count, const A&... args) {
    const detail::Trained own(*model_);
    auto pass = std::make_unique<detail::DataParallelPass<T>>();
    std::vector<AnyTensor> inputs;  // of the whole: tensors among the arguments, and then parameters
    const auto list = [&]<class X>(const X& x) {
      if constexpr (TensorLike<X>) {
        if (!x.defined()) return;
        inputs.push_back(x);
        pass->arguments.push_back(x.shape());
      }
    };
    (list(args), ...);
    inputs.insert(inputs.end(), own.tensors().begin(), own.tensors().end());

    const auto n = std::size_t(count);
    std::vector<std::vector<AnyTensor>> leaves(n);
    std::vector<M> copies;
    copies.reserve(n - 1);
    for (std::size_t i = 0; i < n; ++i) {
      leaves[i] = own.leaves();
      if (i) copies.push_back(own.copy(*model_, leaves[i]));
    }
    const GeneratorState numbers = default_generator().reserve(n);
    pass->workers = workers_;
    pass->parts.resize(n);
    {
      // Without a graph the model is only read: threads may share it.
      std::optional<detail::Trained::Swap> first;
      if (state::grad_enabled) first.emplace(own, leaves[0]);
      workers_->run(count, [&](int i) {
        const auto at = std::size_t(i);
        Generator generator(philox(numbers.seed, numbers.offset + at).word64(0));
        const GeneratorScope scope(generator);
        detail::Part<T>& part = pass->parts[at];
        const detail::Range range = detail::part_of(examples, count, i);
        const auto take = [&]<class X>(const X& x) -> decltype(auto) {
          if constexpr (TensorLike<X>) {
            if (!x.defined()) return tensor_t<X>(x);
            AnyTensor leaf = x.dim() > 0 ? piece(x, range) : detail::leaf_of(x);
            part.leaves.push_back(leaf);
            return tensor_t<X>(std::move(leaf));
          } else {
            return (x);
          }
        };
        std::tuple<decltype(take(args))...> mine{take(args)...};  // braces: from left to right
        M& model = i ? copies[at - 1] : *model_;
        part.output = std::apply([&](auto&... x) { return Tensor<T>(model(x...)); }, mine);
        if (part.output.dim() == 0)
          throw ShapeError("data_parallel: expected a result with a first dimension, got a scalar");
        part.leaves.insert(part.leaves.end(), leaves[at].begin(), leaves[at].end());
      });
    }
    std::vector<Tensor<T>> outputs;
    for (const detail::Part<T>& p : pass->parts) outputs.push_back(p.output.detach());
    const Tensor<T> y = cat(outputs);
    detail::record_pass<detail::DataParallelName>(y, inputs, std::move(pass));
    return y;
  }

  /// Rows of `x` as a leaf.
  TENET_TAG static AnyTensor piece(const AnyTensor& x, const detail::Range& range) {
    Dims sizes = x.shape();
    sizes[0] = range.size;
    AnyTensor rows(tenet::detail::make_view(*x.impl(), sizes, x.strides(), range.begin * x.strides()[0]));
    rows.impl()->requires_grad = state::grad_enabled && x.requires_grad();
    return rows;
  }

  M* model_;
  std::shared_ptr<Workers> workers_;
};

}  // namespace tenet::parallel
