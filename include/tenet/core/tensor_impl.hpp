// The untyped, reference-counted body of a tensor. Handles (AnyTensor, Tensor<T>) point to it.
#pragma once

#include <tenet/core/dtype.hpp>
#include <tenet/core/shape.hpp>
#include <tenet/core/storage.hpp>

namespace tenet {

struct TensorImpl;

/// What core knows of a node of the autograd graph: that it is shared and how it dies.
struct GraphNode {
  Count count;
  TensorImpl* retained = nullptr;  // its output, while that lives and keeps its .grad
  void (*destroy_)(GraphNode*);
  TENET_TAG void destroy() { destroy_(this); }
};

/// What core knows of the hooks on a leaf's gradient.
struct GradientHooks {
  virtual ~GradientHooks() = default;
};

struct TensorImpl {
  Count count;
  DType dtype;
  bool requires_grad = false;
  bool retains_grad = false;  // keeps .grad although it is not a leaf
  bool is_view = false;       // made by a view operation: shares memory with its base
  bool contiguous = true;
  std::uint32_t seen_changes = 0;  // of a view: storage->recorded_changes when it was made
  void* data;                      // first element: storage->data + offset
  StorageRef storage;
  Ref<GraphNode> node;   // the operation this is the output of, when it is part of a graph
  Ref<TensorImpl> grad;  // accumulated gradient
  GradientHooks* hooks = nullptr;
  std::int64_t numel;
  Shape shape;
  Strides strides;

  TENET_TAG void destroy();
};

using ImplRef = Ref<TensorImpl>;

inline namespace TENET_CONFIG {

namespace detail {
TENET_NOINLINE inline void destroy_impl(TensorImpl* p) {
  delete p->hooks;
  if (p->retains_grad && p->node && p->node->retained == p) p->node->retained = nullptr;
  // The node goes last, after the block is free again: its own release may need one.
  const Ref<GraphNode> node = std::move(p->node);
  p->~TensorImpl();
  memory::deallocate(p, sizeof(TensorImpl));
}
}  // namespace detail

namespace detail {
/// Shape, row-major strides and numel, element by element: a wide copy of a shape that was just written would
/// wait for those writes.
inline void lay_out(TensorImpl& t, const Shape& shape) {
  const int rank = shape.size();
  t.shape.resize(rank);
  t.strides.resize(rank);
  std::int64_t step = 1, numel = 1;
  for (int i = rank; i-- > 0;) {
    t.shape[i] = shape[i];
    t.strides[i] = step;
    step *= shape[i] > 1 ? shape[i] : 1;
    numel *= shape[i];
  }
  t.numel = numel;
}
}  // namespace detail

/// A contiguous tensor over `storage`.
inline ImplRef make_impl(const Shape& shape, DType dtype, StorageRef storage) {
  auto* p = new (memory::allocate(sizeof(TensorImpl))) TensorImpl;
  p->dtype = dtype;
  p->storage = std::move(storage);
  p->data = p->storage->data;
  detail::lay_out(*p, shape);
  return ImplRef::adopt(p);
}

/// Bytes of a tensor without gaps; throws ShapeError if int64 does not hold their number.
inline std::size_t byte_count(const Shape& shape, DType dtype) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(shape.numel(), std::int64_t(item_size(dtype)), &bytes)) {
    throw ShapeError(text({"tensor: ", shape, " of ", name(dtype), " has more bytes than int64 can count"}));
  }
  return std::size_t(bytes);
}

/// A contiguous tensor over fresh, uninitialized CPU memory.
inline ImplRef make_impl(const Shape& shape, DType dtype) {
  return make_impl(shape, dtype, make_storage(byte_count(shape, dtype)));
}

/// Another look at the memory of `base`: the caller keeps shape, strides and offset (in elements from the
/// first element of `base`) inside it. The result has no gradient state.
inline ImplRef make_alias(const TensorImpl& base, const Shape& shape, const Strides& strides, std::int64_t offset) {
  auto* p = new (memory::allocate(sizeof(TensorImpl))) TensorImpl;
  p->dtype = base.dtype;
  p->storage = base.storage;
  p->data = static_cast<char*>(base.data) + offset * std::int64_t(item_size(base.dtype));
  p->shape = shape;
  p->strides = strides;
  p->numel = shape.numel();
  p->contiguous = is_contiguous(shape, strides);
  p->seen_changes = base.storage->recorded_changes;
  return ImplRef::adopt(p);
}

}  // namespace TENET_CONFIG

TENET_TAG inline void TensorImpl::destroy() { detail::destroy_impl(this); }

}  // namespace tenet
