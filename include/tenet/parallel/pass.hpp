// A part of a computation with a graph of its own, which the caller's graph sees as one operation.
//
// The part runs on leaves of its own that share the memory of the tensors it is made from. Its backward collects the
// gradients in those leaves, on whatever thread, and hands them to the caller's graph together.
#pragma once

#include <tenet/nn/module.hpp>
#include <tenet/ops/view.hpp>

namespace tenet::parallel {

/// What backward does at the node of a Pass.
struct Pass {
  TENET_TAG Pass() = default;
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  TENET_TAG virtual ~Pass() = default;
  /// Fills out[i], the gradient of input i, from that of the output; an undefined one is none.
  virtual void backward(const AnyTensor& gradient, AnyTensor* out) = 0;
};

inline namespace TENET_CONFIG {
namespace detail {

/// `t` as the input of a node whose gradients are of element type T: gradients of another type go through a view.
template <class T>
AnyTensor as_input(const AnyTensor& t) {
  if (!t.requires_grad() || t.dtype() == dtype_of<T>) return t;
  return dispatch_floating("parallel", t.dtype(),
                           [&]<class U>(U) -> AnyTensor { return Tensor<U>(t).view(t.shape()); });
}

template <class T>
const autograd::GradMath& pass_math() {
  static constexpr auto has_nan = [](const AnyTensor& g) {
    return g.dtype() == dtype_of<T> && autograd::grad_math<T>().has_nan(g);
  };
  static const autograd::GradMath math = [] {
    autograd::GradMath m = autograd::grad_math<T>();
    m.has_nan = has_nan;
    return m;
  }();
  return math;
}

inline void run_pass(autograd::Node& n, AnyTensor&& g, AnyTensor* out) {
  if (state::grad_enabled) {
    throw NotImplemented(text({n.type->name, ": gradients of gradients do not go through it (create_graph)"}));
  }
  static_cast<Pass*>(n.kept_tensors()[0].tensor->storage->context)->backward(g, out);
}

template <class Name, class T>
inline constexpr autograd::NodeType pass_type{Name::name, &run_pass, &pass_math<T>, &pass_math<T>};

/// Makes `y`, which was computed without a graph, the output of an operation with these inputs. `Name::name` is that
/// of the operation. Does nothing where no gradient is wanted.
template <class Name, class T>
void record_pass(const Tensor<T>& y, const std::vector<AnyTensor>& inputs, std::unique_ptr<Pass> pass) {
  std::vector<AnyTensor> bridged;
  std::vector<TensorImpl*> impls;
  for (const AnyTensor& t : inputs) bridged.push_back(as_input<T>(t));
  for (const AnyTensor& t : bridged) impls.push_back(t.impl());
  autograd::Context ctx(Name::name, impls.data(), int(impls.size()));
  if (!ctx.recording()) return;
  ctx.check_views(Name::name);
  // The node keeps tensors: one whose memory is the pass owns it.
  StorageRef owner = borrow_storage(
      pass.get(), 0, [](void* p) { delete static_cast<Pass*>(p); }, pass.get());
  pass.release();
  ctx.keep(AnyTensor(make_impl({0}, DType::uint8, std::move(owner))));
  autograd::record(pass_type<Name, T>, y.impl(), ctx, nullptr, 0);
}

/// A leaf over the memory of `t` that collects gradients if `t` takes part in a graph and one is being recorded.
inline AnyTensor leaf_of(const AnyTensor& t) {
  AnyTensor leaf(tenet::detail::make_view(*t.impl(), t.shape(), t.strides(), 0));
  leaf.impl()->requires_grad = state::grad_enabled && t.requires_grad();
  return leaf;
}

/// The gradient that a leaf has collected, which it loses.
inline AnyTensor take_gradient(const AnyTensor& leaf) { return AnyTensor(std::exchange(leaf.impl()->grad, {})); }

/// The tensors of a module that train, each once, and what calls of the module need to put others in their place.
class Trained {
 public:
  template <class M>
  explicit Trained(M& model) : slots_(model.state_slots()) {
    for (const nn::StateSlot& s : slots_) {
      std::size_t at = tensors_.size();
      if (s.trains) {
        for (at = 0; at < tensors_.size() && !tensors_[at].is(*s.tensor);) ++at;
        if (at == tensors_.size()) tensors_.push_back(*s.tensor), names_.push_back(s.name);
      } else {
        at = none;
      }
      index_.push_back(at);
    }
  }
  const std::vector<AnyTensor>& tensors() const { return tensors_; }
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<nn::StateSlot>& slots() const { return slots_; }
  std::vector<AnyTensor> leaves() const {
    std::vector<AnyTensor> out;
    for (const AnyTensor& t : tensors_) out.push_back(leaf_of(t));
    return out;
  }

  /// While it lives, the module holds `leaves` instead of its parameters.
  class Swap {
   public:
    Swap(const Trained& own, const std::vector<AnyTensor>& leaves) : own_(own) { put(leaves); }
    ~Swap() { put(own_.tensors_); }
    Swap(const Swap&) = delete;
    Swap& operator=(const Swap&) = delete;

   private:
    void put(const std::vector<AnyTensor>& tensors) {
      for (std::size_t i = 0; i < own_.slots_.size(); ++i) {
        if (own_.index_[i] != none) own_.slots_[i].tensor->ref() = tensors[own_.index_[i]].ref();
      }
    }
    const Trained& own_;
  };

  /// A copy of the model with `leaves` as its parameters; all else is a copy.
  template <class M>
  M copy(const M& model, const std::vector<AnyTensor>& leaves) const {
    std::vector<nn::ClonedTensor> clones;
    for (std::size_t i = 0; i < leaves.size(); ++i) clones.push_back({tensors_[i].impl(), leaves[i]});
    struct Scope {
      std::vector<nn::ClonedTensor>* old;
      ~Scope() { state::clones = old; }
    } scope{std::exchange(state::clones, &clones)};
    return M(model);
  }

 private:
  static constexpr std::size_t none = std::size_t(-1);
  std::vector<nn::StateSlot> slots_;
  std::vector<AnyTensor> tensors_;
  std::vector<std::string> names_;
  std::vector<std::size_t> index_;  // of each slot, into tensors_
};

/// The number of examples in a call's arguments: the first size of the first tensor that has one.
template <class... A>
std::int64_t examples_of(const A&... args) {
  std::int64_t n = -1;
  const auto look = [&]<class X>(const X& x) {
    if constexpr (TensorLike<X>) {
      if (n < 0 && x.defined() && x.dim() > 0) n = x.size(0);
    }
  };
  (look(args), ...);
  return n < 0 ? 1 : n;
}

}  // namespace detail
}  // namespace TENET_CONFIG
}  // namespace tenet::parallel
