// Nodes of the graph that backward() walks: one an operation, kept alive by the tensors made from it.
//
// A node is one block: the header, its edges, the tensors kept for backward, and the operation's options.
// It never owns its own output (it may keep an alias of the output's memory), so there are no cycles.
#pragma once

#include <tenet/autograd/grad_mode.hpp>
#include <tenet/core/tensor.hpp>

#include <algorithm>
#include <cstring>

namespace tenet::autograd {

struct Node;

/// Where a gradient goes: to the node that made the input, to a leaf, or nowhere.
class Edge {
 public:
  TENET_TAG Edge() = default;
  /// Shares what made `t`; empty if no gradient is wanted there.
  TENET_TAG explicit Edge(const TensorImpl* t) {
    if (!t) return;
    if (t->node) {
      t->node->count.add();
      to_ = reinterpret_cast<std::uintptr_t>(t->node.get());
    } else if (t->requires_grad) {
      auto* leaf = const_cast<TensorImpl*>(t);
      leaf->count.add();
      to_ = reinterpret_cast<std::uintptr_t>(leaf) | leaf_bit;
    }
  }
  TENET_TAG explicit operator bool() const { return to_ != 0; }
  TENET_TAG Node* node() const { return to_ & leaf_bit ? nullptr : reinterpret_cast<Node*>(to_); }
  TENET_TAG TensorImpl* leaf() const {
    return to_ & leaf_bit ? reinterpret_cast<TensorImpl*>(to_ & ~leaf_bit) : nullptr;
  }
  TENET_TAG inline const Shape& shape() const;
  /// Of the node; 0 for a leaf, past all nodes if the edge is empty.
  TENET_TAG inline std::int64_t level() const;
  /// Drops the reference; the edge leads nowhere then.
  TENET_TAG inline void clear();
  /// Which node or leaf this is.
  TENET_TAG std::uintptr_t key() const { return to_; }

 private:
  static constexpr std::uintptr_t leaf_bit = 1;
  std::uintptr_t to_ = 0;
};

/// The arithmetic on gradients that the engine needs, of one element type. The functions are operations:
/// where grad mode is on, they are recorded.
struct GradMath {
  AnyTensor (*add)(const AnyTensor&, const AnyTensor&);
  void (*add_into)(const AnyTensor& to, const AnyTensor& from);  // both contiguous, one shape, not recorded
  AnyTensor (*sum_to)(const AnyTensor&, const Shape&);           // undoes broadcasting
  AnyTensor (*clone)(const AnyTensor&);
  bool (*has_nan)(const AnyTensor&);
};

/// What all nodes of one operation and element type share.
struct NodeType {
  const char* name;
  /// Fills out[i] for the inputs whose gradient is wanted, from the gradient of the output.
  void (*backward)(Node&, AnyTensor&& gradient, AnyTensor* out);
  const GradMath& (*math)();         // of the inputs' element type
  const GradMath& (*output_math)();  // of the output's
};

/// A tensor kept for backward, and the version its memory had.
struct Kept {
  TensorImpl* tensor;
  std::uint32_t version;
};

struct Node : GraphNode {
  const NodeType* type;
  std::int64_t level = 1;               // 1 + the highest level among the inputs: a topological order
  std::atomic<void*> walker = nullptr;  // the walk that holds a gradient here
  TensorImpl* pending = nullptr;        // that gradient, owned
  GraphNode* next_dead = nullptr;
  GradientHooks* hooks = nullptr;
  std::uint32_t bytes = 0;  // of the whole block
  std::uint16_t inputs = 0;
  std::uint8_t kept = 0;
  bool freed = false;  // backward went through without retain_graph
  DType dtype{};       // of the output
  Shape shape;         // of the output

  TENET_TAG Edge* edges() { return reinterpret_cast<Edge*>(this + 1); }
  TENET_TAG Kept* kept_tensors() { return reinterpret_cast<Kept*>(edges() + inputs); }
  TENET_TAG void* options() { return kept_tensors() + kept; }
};

TENET_TAG inline const Shape& Edge::shape() const {
  const TensorImpl* l = leaf();
  return l ? l->shape : node()->shape;
}

TENET_TAG inline std::int64_t Edge::level() const {
  if (!to_) return std::numeric_limits<std::int64_t>::max();
  return leaf() ? 0 : node()->level;
}

TENET_TAG inline void Edge::clear() {
  const std::uintptr_t to = std::exchange(to_, 0);
  if (!to) return;
  if (to & leaf_bit) {
    ImplRef::adopt(reinterpret_cast<TensorImpl*>(to & ~leaf_bit));
  } else {
    Ref<GraphNode>::adopt(reinterpret_cast<Node*>(to));
  }
}

}  // namespace tenet::autograd

namespace tenet::state {
inline constinit thread_local GraphNode* dead_nodes = nullptr;
inline constinit thread_local bool burying = false;
}  // namespace tenet::state

namespace tenet::autograd {
inline namespace TENET_CONFIG {

/// Drops what a node keeps and where it leads: memory returns while the walk goes on.
inline void free_graph(Node& n) {
  Kept* kept = n.kept_tensors();
  for (int i = 0; i < n.kept; ++i) {
    if (TensorImpl* t = std::exchange(kept[i].tensor, nullptr)) ImplRef::adopt(t);
  }
  for (int i = 0; i < n.inputs; ++i) n.edges()[i].clear();
  n.freed = true;
}

// A dying node never recurses into its inputs: it queues, so that a chain of any length is dropped on a
// small stack.
TENET_NOINLINE inline void destroy_node(GraphNode* g) {
  if (state::burying) {
    static_cast<Node*>(g)->next_dead = std::exchange(state::dead_nodes, g);
    return;
  }
  state::burying = true;
  for (;;) {
    auto* n = static_cast<Node*>(g);
    free_graph(*n);
    delete n->hooks;
    if (n->pending) ImplRef::adopt(n->pending);
    const std::uint32_t bytes = n->bytes;
    n->~Node();
    memory::deallocate(n, bytes);
    if (!state::dead_nodes) break;
    g = state::dead_nodes;
    state::dead_nodes = static_cast<Node*>(g)->next_dead;
  }
  state::burying = false;
}

[[noreturn]] TENET_COLD inline void throw_stale_view(const char* op) {
  throw Error(text({op, ": this view was made before its base was changed in place; make the view anew"}));
}
[[noreturn]] TENET_COLD inline void throw_devices(const char* op, Device a, Device b) {
  throw DeviceError(text({op, ": expected tensors on one device, got ", a, " and ", b}));
}

/// What an operation's forward says about its backward. While nothing is recorded it does nothing.
class Context {
 public:
  /// Throws DeviceError naming `op` unless the inputs, some of which may be null, are on one device.
  TENET_NOINLINE Context(const char* op, TensorImpl* const* inputs, int count) : inputs_(inputs), count_(count) {
    const bool grad_enabled = state::grad_enabled;
    const TensorImpl* first = nullptr;
    for (int i = 0; i < count; ++i) {
      const TensorImpl* in = inputs[i];
      if (!in) continue;
      if (!first) first = in;
      else if (!(in->storage->device == first->storage->device)) {
        throw_devices(op, first->storage->device, in->storage->device);
      }
      if (grad_enabled && (in->requires_grad || in->node)) recording_ = true;
    }
  }
  ~Context() {
    if (kept_count_) drop_kept();
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Whether an operation that has a backward will make a node.
  bool recording() const { return recording_; }
  /// Whether backward will be asked for the gradient of input `i`.
  bool wants(int i) const { return recording_ && inputs_[i] && (inputs_[i]->requires_grad || inputs_[i]->node); }

  /// Keeps `t` for backward, there kept<T>(k) with k counting the calls; an undefined tensor unless `needed`.
  /// Keep inputs before the output is computed: what is kept is not reused for it.
  void keep(const AnyTensor& t, bool needed = true) {
    if (recording_) keep_impl(needed ? t.impl() : nullptr);
  }
  /// Keeps the output: its memory, not the tensor, so that there is no cycle. Backward sees it as output<T>().
  void keep_output() { keeps_output_ = true; }

  /// Throws Error if an input is a view of memory that has changed in place since: its node is another's.
  TENET_NOINLINE void check_views(const char* op) const {
    for (int i = 0; i < count_; ++i) {
      const TensorImpl* in = inputs_[i];
      if (in && in->is_view && in->seen_changes != in->storage->recorded_changes) throw_stale_view(op);
    }
  }
  /// Whether `t` itself is kept: before it changes in place, a copy must take its place.
  bool keeps(const TensorImpl* t) const {
    for (int i = 0; i < kept_count_; ++i)
      if (kept_[i] == t) return true;
    return false;
  }
  void replace_kept(const TensorImpl* t, const AnyTensor& copy) {
    for (int i = 0; i < kept_count_; ++i) {
      if (kept_[i] != t) continue;
      ImplRef::adopt(std::exchange(kept_[i], ImplRef::share(copy.impl()).release()));
      versions_[i] = copy.version();
    }
  }

 private:
  static constexpr int max_kept = 8;
  TENET_NOINLINE void keep_impl(TensorImpl* t) {
    kept_[kept_count_] = ImplRef::share(t).release();
    versions_[kept_count_++] = t ? t->storage->version : 0;
  }
  TENET_COLD void drop_kept() {
    for (int i = 0; i < kept_count_; ++i) ImplRef::adopt(kept_[i]);
  }
  friend void record(const NodeType&, TensorImpl* output, Context&, const void* options, std::size_t bytes);

  TensorImpl* const* inputs_;
  int count_;
  bool recording_ = false, keeps_output_ = false;
  int kept_count_ = 0;
  TensorImpl* kept_[max_kept];  // the first kept_count_, owned: to be gone through only where something was kept
  std::uint32_t versions_[max_kept];
};

/// Makes the node of an operation and hangs it on its output. The only place where nodes are made.
TENET_NOINLINE inline void record(const NodeType& type, TensorImpl* output, Context& context, const void* options,
                                  std::size_t option_bytes) {
  const int kept = context.kept_count_ + (context.keeps_output_ ? 1 : 0);
  const std::size_t bytes =
      sizeof(Node) + std::size_t(context.count_) * sizeof(Edge) + std::size_t(kept) * sizeof(Kept) + option_bytes;
  if (context.count_ > std::numeric_limits<std::uint16_t>::max()) {
    throw Error(text({type.name, ": ", context.count_, " inputs are more than can be recorded for backward"}));
  }
  ImplRef alias;  // before the node, which would be lost if there were no memory for it
  if (context.keeps_output_) alias = make_alias(*output, output->shape, output->strides, 0);
  auto* n = new (memory::allocate(bytes)) Node;
  n->destroy_ = &destroy_node;
  n->type = &type;
  n->bytes = std::uint32_t(bytes);
  n->inputs = std::uint16_t(context.count_);
  n->kept = std::uint8_t(kept);
  n->dtype = output->dtype;
  n->shape = output->shape;
  for (int i = 0; i < context.count_; ++i) {
    const Edge* e = new (n->edges() + i) Edge(context.inputs_[i]);
    if (const Node* in = e->node()) n->level = std::max(n->level, in->level + 1);
  }
  Kept* k = n->kept_tensors();
  for (int i = 0; i < context.kept_count_; ++i) {
    new (k++) Kept{context.kept_[i], context.versions_[i]};
  }
  context.kept_count_ = 0;
  if (context.keeps_output_) {
    new (k) Kept{alias.release(), output->storage->version};
  }
  if (option_bytes) std::memcpy(n->options(), options, option_bytes);
  if (output->retains_grad && output->node) {  // changed in place: the new node is whose gradient it keeps
    output->node->retained = nullptr;
    n->retained = output;
  }
  output->node = Ref<GraphNode>::adopt(n);
}

}  // namespace TENET_CONFIG
}  // namespace tenet::autograd
