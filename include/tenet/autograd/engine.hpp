// backward(): walks the graph from its outputs to its leaves.
//
// Nodes are taken by descending level, a topological order that needs no counting and no recursion. The
// gradients of one node's uses are summed while they wait. Broadcasting is undone here, in one place.
#pragma once

#include <tenet/autograd/hooks.hpp>
#include <tenet/core/factories.hpp>

#include <mutex>
#include <vector>

namespace tenet::state {
inline constinit std::mutex leaf_mutexes[16];  // of the leaves whose address they share
}

namespace tenet::autograd {
inline namespace TENET_CONFIG {

/// The nodes that wait, highest level first. A chain never reaches the heap behind the one-element front.
class Frontier {
 public:
  explicit Frontier(std::vector<Node*>& heap) : heap_(heap) {}
  bool empty() const { return !front_; }
  void push(Node* n) {
    if (!front_) {
      front_ = n;
      return;
    }
    if (n->level > front_->level) std::swap(n, front_);
    heap_.push_back(n);
    std::push_heap(heap_.begin(), heap_.end(), lower);
  }
  Node* pop() {
    Node* n = std::exchange(front_, nullptr);
    if (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), lower);
      front_ = heap_.back();
      heap_.pop_back();
    }
    return n;
  }

 private:
  static bool lower(const Node* a, const Node* b) { return a->level < b->level; }
  std::vector<Node*>& heap_;
  Node* front_ = nullptr;
};

/// The arithmetic on gradients of element type T; defined by ops/grad_math.hpp.
template <class T>
const GradMath& grad_math();

/// Gradients that autograd::grad() asks for, instead of accumulating into the leaves.
struct Capture {
  std::uintptr_t key;  // of the edge to the input
  std::int64_t level;  // of the input: nodes below it are none of its uses
  AnyTensor gradient = {};
};

/// Whether nobody else can see this tensor, so that it may be changed in place.
inline bool is_private(const TensorImpl& t) {
  return t.count.unique() && t.storage->count.unique() && !t.storage->borrowed && t.contiguous && !t.node &&
         !t.requires_grad;
}

/// to += from. In place where that is provably unseen, else out of place.
inline void accumulate(ImplRef& to, AnyTensor from, const GradMath& math) {
  if (!to) {
    to = std::move(from.ref());
  } else if (!state::grad_enabled && is_private(*to)) {
    const AnyTensor sum(std::move(to)), add(from.is_contiguous() ? std::move(from) : math.clone(from));
    math.add_into(sum, add);
    to = sum.ref();
  } else {
    to = std::move(math.add(AnyTensor(std::move(to)), from).ref());
  }
}

/// Serializes what several threads add to one leaf.
inline std::mutex& leaf_mutex(const TensorImpl* leaf) {
  return state::leaf_mutexes[(reinterpret_cast<std::uintptr_t>(leaf) >> 8) % 16];
}

inline void accumulate_leaf(TensorImpl& leaf, AnyTensor gradient, const GradMath& math) {
  const std::lock_guard lock(leaf_mutex(&leaf));
  // The caller may change a .grad in place: it must share memory with nothing.
  if (!leaf.grad && !is_private(*gradient.impl())) gradient = math.clone(gradient);
  accumulate(leaf.grad, std::move(gradient), math);
}

/// One backward. Its destructor leaves the nodes clean, also when an operation throws half-way.
class Walk {
 public:
  Walk(BackwardOptions options, std::vector<Capture>* captures)
      : retain_(options.retain_graph || options.create_graph),
        mode_(options.create_graph),
        captures_(captures),
        heap_(std::exchange(spare_heap(), {})),
        frontier_(heap_) {
    if (!captures) return;
    lowest_ = std::numeric_limits<std::int64_t>::max();
    for (const Capture& c : *captures) lowest_ = std::min(lowest_, c.level);
  }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;
  ~Walk() {
    while (!frontier_.empty()) {
      Node* n = frontier_.pop();
      const ImplRef pending = ImplRef::adopt(std::exchange(n->pending, nullptr));
      leave(n);
    }
    spare_heap() = std::move(heap_);
  }

  /// Adds the gradient of an output to start from.
  void seed(const AnyTensor& root, AnyTensor gradient, const GradMath& math) {
    Edge e(root.impl());
    try {
      deliver(e, std::move(gradient), math);
    } catch (...) {
      e.clear();
      throw;
    }
    e.clear();
  }

  void run() {
    while (!frontier_.empty()) step(frontier_.pop());
    for (Waiting& w : waiting_) {
      AnyTensor g = run_hooks(w.leaf->hooks, AnyTensor(std::move(w.gradient)));
      arrive(w.key, *w.leaf, std::move(g), *w.math);
    }
  }

 private:
  static constexpr int few = 8;

  // The leaf's hooks want the whole gradient of this backward: it waits for the end of the walk.
  struct Waiting {
    ImplRef leaf, gradient;
    const GradMath* math;
    std::uintptr_t key;
  };

  static std::vector<Node*>& spare_heap() {
    static thread_local std::vector<Node*> heap;  // its capacity serves the next walk
    return heap;
  }

  // Keeps a node claimed and alive until its step is over, whatever is thrown.
  struct Claim {
    Node* node;
    ~Claim() { leave(node); }
  };

  void step(Node* n) {
    const Claim claim{n};
    AnyTensor g(ImplRef::adopt(std::exchange(n->pending, nullptr)));
    if (n->hooks) g = run_hooks(n->hooks, std::move(g));
    if (captures_) capture(reinterpret_cast<std::uintptr_t>(n), g, n->type->output_math());
    else if (TensorImpl* t = n->retained) accumulate_leaf(*t, g, n->type->output_math());
    if (n->level <= lowest_) return;  // no input that is asked for lies further down: leave the graph as it is
    if (n->freed) throw_freed(*n);

    if (n->inputs <= few) {
      AnyTensor out[few];
      pass(*n, std::move(g), out);
    } else {
      std::vector<AnyTensor> out(n->inputs);
      pass(*n, std::move(g), out.data());
    }
    if (!retain_) free_graph(*n);
  }

  void pass(Node& n, AnyTensor g, AnyTensor* out) {
    n.type->backward(n, std::move(g), out);
    g = {};
    const GradMath& math = n.type->math();
    for (int i = 0; i < n.inputs; ++i) {
      if (!out[i]) continue;
      if (state::detect_anomaly && math.has_nan(out[i])) throw_nan(n);
      deliver(n.edges()[i], std::move(out[i]), math);
    }
  }

  void deliver(Edge to, AnyTensor g, const GradMath& math) {
    if (!to || (to.leaf() && !asked_for(to.key()))) return;
    if (!(g.shape() == to.shape())) g = math.sum_to(g, to.shape());
    if (TensorImpl* leaf = to.leaf()) {
      if (leaf->hooks) wait(to.key(), *leaf, std::move(g), math);
      else arrive(to.key(), *leaf, std::move(g), math);
      return;
    }
    Node* n = to.node();
    enter(n);
    ImplRef pending = ImplRef::adopt(std::exchange(n->pending, nullptr));
    accumulate(pending, std::move(g), math);
    n->pending = pending.release();
  }

  void wait(std::uintptr_t key, TensorImpl& leaf, AnyTensor g, const GradMath& math) {
    for (Waiting& w : waiting_) {
      if (w.key == key) return accumulate(w.gradient, std::move(g), math);
    }
    waiting_.push_back({ImplRef::share(&leaf), std::move(g.ref()), &math, key});
  }

  bool asked_for(std::uintptr_t key) const {
    return !captures_ ||
           std::any_of(captures_->begin(), captures_->end(), [&](const Capture& c) { return c.key == key; });
  }

  void arrive(std::uintptr_t key, TensorImpl& leaf, AnyTensor g, const GradMath& math) {
    if (!captures_) accumulate_leaf(leaf, std::move(g), math);
    else capture(key, g, math);
  }

  void capture(std::uintptr_t key, const AnyTensor& g, const GradMath& math) {
    for (Capture& c : *captures_) {
      if (c.key == key) accumulate(c.gradient.ref(), g, math);
    }
  }

  /// Claims a node for this walk: a gradient waits in it. Throws if another thread's does.
  void enter(Node* n) {
    void* nobody = nullptr;
    if (n->walker.compare_exchange_strong(nobody, this, std::memory_order_acq_rel)) {
      n->count.add();
      frontier_.push(n);
    } else if (nobody != this) {
      throw Error(text({n->type->name, ": another thread is in backward() through this graph"}));
    }
  }
  static void leave(Node* n) {
    n->walker.store(nullptr, std::memory_order_release);
    Ref<GraphNode>::adopt(n);
  }

  [[noreturn]] TENET_COLD static void throw_freed(const Node& n) {
    throw Error(text({n.type->name,
                      ": backward() went through this graph before and freed it; "
                      "pass {.retain_graph = true} to the first backward to go again"}));
  }
  [[noreturn]] TENET_COLD static void throw_nan(const Node& n) {
    throw Error(text({"anomaly: the gradient that '", n.type->name, "' passes back is the first with a NaN"}));
  }

  bool retain_;
  set_grad_enabled mode_;
  std::vector<Capture>* captures_;
  std::int64_t lowest_ = 0;  // of the levels of the captures
  std::vector<Node*> heap_;
  Frontier frontier_;
  std::vector<Waiting> waiting_;
};

}  // namespace TENET_CONFIG
}  // namespace tenet::autograd
