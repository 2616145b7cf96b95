// The handles of a tensor: AnyTensor, untyped, and Tensor<T> over it.
//
// Copying a handle shares the tensor; clone() copies it. Methods declared here and not defined are the
// operations of ops/ under another spelling: x.view(s) is view(x, s).
#pragma once

#include <tenet/core/tensor_impl.hpp>

#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenet {

/// How far backward() goes. `create_graph` records the backward itself, for gradients of gradients, and
/// implies `retain_graph`, which keeps the graph for another backward.
struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
};

/// A tensor of any element type, or none ("undefined"): whatever asks that for more than defined(), is() or
/// impl() throws Error.
class AnyTensor {
 public:
  TENET_TAG AnyTensor() = default;
  TENET_TAG explicit AnyTensor(ImplRef impl) : impl_(std::move(impl)) {}

  TENET_TAG bool defined() const { return bool(impl_); }
  TENET_TAG explicit operator bool() const { return bool(impl_); }

  TENET_TAG const Shape& shape() const { return body().shape; }
  TENET_TAG const Strides& strides() const { return body().strides; }
  /// Size of dimension `dim`, counted from the end when negative; throws IndexError.
  TENET_TAG std::int64_t size(std::int64_t dim) const {
    return body().shape.empty() ? throw_no_dims() : body().shape[wrap_dim("size", dim, this->dim())];
  }
  /// The number of dimensions.
  TENET_TAG int dim() const { return body().shape.size(); }
  TENET_TAG std::int64_t numel() const { return body().numel; }
  TENET_TAG DType dtype() const { return body().dtype; }
  TENET_TAG Device device() const { return body().storage->device; }
  TENET_TAG bool is_contiguous() const { return body().contiguous; }
  TENET_TAG void* data_ptr() const { return body().data; }

  /// Whether gradients flow to or through this tensor.
  TENET_TAG bool requires_grad() const { return body().requires_grad || body().node; }
  /// Whether no operation made it: gradients are kept in the .grad() of leaves only.
  TENET_TAG bool is_leaf() const { return !body().node; }
  /// Counts changes in place of the memory.
  TENET_TAG std::uint32_t version() const { return body().storage->version; }
  /// Whether both handles share one tensor.
  TENET_TAG bool is(const AnyTensor& o) const { return impl_.get() == o.impl_.get(); }
  /// The accumulated gradient; undefined if there is none.
  TENET_TAG AnyTensor grad_any() const { return AnyTensor(body().grad); }
  /// Drops the accumulated gradient.
  TENET_TAG void zero_grad() const { body().grad = {}; }

  TENET_TAG TensorImpl* impl() const { return impl_.get(); }
  TENET_TAG const ImplRef& ref() const { return impl_; }
  TENET_TAG ImplRef& ref() { return impl_; }

 protected:
  TENET_TAG TensorImpl& body() const {
    if (!impl_) [[unlikely]]
      throw_undefined();
    return *impl_;
  }
  [[noreturn]] TENET_TAG TENET_COLD static void throw_undefined() {
    throw Error("tensor: expected a defined tensor, got an undefined one");
  }
  [[noreturn]] TENET_TAG TENET_COLD static std::int64_t throw_no_dims() {
    throw IndexError("size: a scalar has no dimensions");
  }
  ImplRef impl_;
};

template <class T>
class Tensor : public AnyTensor {
  static_assert(Element<T>, "Tensor<T>: T is float, double, half, bfloat16, (u)int8_t, int32_t, int64_t or bool");

 public:
  using value_type = T;

  TENET_TAG Tensor() = default;
  TENET_TAG explicit Tensor(ImplRef impl) : AnyTensor(std::move(impl)) {}
  /// The typed handle of an untyped tensor; throws DTypeError if its elements are not T.
  TENET_TAG explicit Tensor(AnyTensor any) : AnyTensor(std::move(any)) {
    if (impl_ && impl_->dtype != dtype_of<T>) wrong_type();
  }

  // ---- elements

  /// Address of the first element. Writing through it is not seen by autograd.
  TENET_TAG T* data() const { return static_cast<T*>(body().data); }

  /// The only element; throws ShapeError if there is not exactly one.
  TENET_TAG T item() const {
    if (body().numel != 1) throw ShapeError(text({"item: expected one element, got shape ", shape()}));
    return *host("item");
  }

  /// The element at an index a dimension; throws IndexError outside. Writing is not seen by autograd.
  template <class... Index>
  requires(sizeof...(Index) > 0 && (std::is_integral_v<Index> && ...)) TENET_TAG T& operator()(Index... index) const {
    const std::int64_t at[] = {std::int64_t(index)...};
    return host("element")[offset(at, int(sizeof...(Index)))];
  }

  /// The elements in row-major order, copied out.
  TENET_TAG std::vector<T> to_vector() const {
    const T* from = host("to_vector");
    std::vector<T> out;
    out.reserve(std::size_t(numel()));
    std::int64_t index[max_rank] = {};
    for (std::int64_t i = 0; i < numel(); ++i) {
      std::int64_t at = 0;
      for (int d = 0; d < dim(); ++d) at += index[d] * impl_->strides[d];
      out.push_back(from[at]);
      for (int d = dim(); d-- > 0 && ++index[d] == impl_->shape[d];) index[d] = 0;
    }
    return out;
  }

  /// The sub-tensor at `index` of the first dimension, as select(0, index).
  TENET_TAG Tensor operator[](std::int64_t index) const { return select(0, index); }

  /// Walks the first dimension: `for (Tensor<float> row : matrix)`.
  class Iterator {
   public:
    TENET_TAG Iterator(const Tensor& t, std::int64_t i) : t_(t), i_(i) {}
    TENET_TAG Tensor operator*() const { return t_[i_]; }
    TENET_TAG Iterator& operator++() {
      ++i_;
      return *this;
    }
    TENET_TAG bool operator==(const Iterator& o) const { return i_ == o.i_; }

   private:
    const Tensor& t_;
    std::int64_t i_;
  };
  TENET_TAG Iterator begin() const { return Iterator(*this, 0); }
  TENET_TAG Iterator end() const { return Iterator(*this, size(0)); }

  // ---- gradients (autograd/)

  /// The accumulated gradient; undefined if there is none.
  TENET_TAG Tensor grad() const { return Tensor(body().grad); }
  /// Makes this leaf collect gradients (or not); throws DTypeError unless T is floating, Error if not a leaf.
  TENET_TAG Tensor& requires_grad_(bool on = true) {
    if (!FloatElement<T>) {
      throw DTypeError(text({"requires_grad_: expected a floating type, got ", name(dtype_of<T>)}));
    }
    if (!is_leaf()) throw Error("requires_grad_: expected a leaf, got the output of an operation");
    body().requires_grad = on;
    return *this;
  }
  /// Gradients of this scalar with respect to the leaves it was made of, added to their .grad().
  TENET_TAG void backward(BackwardOptions options = {}) const;
  /// The same with `gradient`, of this tensor's shape, to start from.
  TENET_TAG void backward(const Tensor& gradient, BackwardOptions options = {}) const;
  /// Keeps .grad() of a tensor that is not a leaf.
  TENET_TAG void retain_grad() const;
  /// Calls `hook(gradient)` in every backward, with the gradient of this tensor; what it returns, if defined,
  /// takes the gradient's place.
  template <class Hook>
  TENET_TAG void register_hook(Hook hook) const;

  // ---- views and copies (ops/view.hpp, ops/copy.hpp)

  TENET_TAG Tensor view(const Dims& sizes) const;
  TENET_TAG Tensor reshape(const Dims& sizes) const;
  TENET_TAG Tensor flatten(std::int64_t start_dim = 0, std::int64_t end_dim = -1) const;
  TENET_TAG Tensor transpose(std::int64_t dim0, std::int64_t dim1) const;
  TENET_TAG Tensor t() const;
  TENET_TAG Tensor permute(const Dims& dims) const;
  TENET_TAG Tensor squeeze() const;
  TENET_TAG Tensor squeeze(std::int64_t dim) const;
  TENET_TAG Tensor unsqueeze(std::int64_t dim) const;
  TENET_TAG Tensor expand(const Dims& sizes) const;
  TENET_TAG Tensor select(std::int64_t dim, std::int64_t index) const;
  TENET_TAG Tensor narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const;
  TENET_TAG Tensor slice(std::int64_t dim, std::int64_t start = 0,
                         std::int64_t end = std::numeric_limits<std::int64_t>::max(), std::int64_t step = 1) const;
  TENET_TAG Tensor detach() const;
  TENET_TAG Tensor clone() const;
  TENET_TAG Tensor contiguous() const;
  template <class U>
  TENET_TAG Tensor<U> to() const;

  // ---- changes in place (ops/inplace.hpp); each returns *this

  TENET_TAG const Tensor& add_(const Tensor& other) const;
  TENET_TAG const Tensor& add_(T value) const;
  TENET_TAG const Tensor& sub_(const Tensor& other) const;
  TENET_TAG const Tensor& sub_(T value) const;
  TENET_TAG const Tensor& mul_(const Tensor& other) const;
  TENET_TAG const Tensor& mul_(T value) const;
  TENET_TAG const Tensor& div_(const Tensor& other) const;
  TENET_TAG const Tensor& div_(T value) const;
  TENET_TAG const Tensor& fill_(T value) const;
  TENET_TAG const Tensor& zero_() const;
  TENET_TAG const Tensor& copy_(const Tensor& source) const;

  // ---- reductions and products (ops/reduce.hpp, ops/matmul.hpp)

  TENET_TAG Tensor<sum_t<T>> sum() const;
  TENET_TAG Tensor<sum_t<T>> sum(const Dims& dims, bool keepdim = false) const;
  TENET_TAG Tensor mean() const;
  TENET_TAG Tensor mean(const Dims& dims, bool keepdim = false) const;
  TENET_TAG Tensor max() const;
  TENET_TAG Tensor min() const;
  TENET_TAG Tensor<std::int64_t> argmax(std::int64_t dim, bool keepdim = false) const;
  TENET_TAG Tensor<std::int64_t> argmin(std::int64_t dim, bool keepdim = false) const;
  TENET_TAG Tensor matmul(const Tensor& other) const;

 private:
  TENET_TAG T* host(const char* op) const {
    if (!device().is_cpu()) throw DeviceError(text({op, ": the tensor is on ", device(), ", not on the CPU"}));
    return data();
  }
  TENET_TAG std::int64_t offset(const std::int64_t* at, int n) const {
    if (n != dim()) throw IndexError(text({"element: expected ", dim(), " indices, got ", n}));
    std::int64_t sum = 0;
    for (int i = 0; i < n; ++i) {
      if (at[i] < 0 || at[i] >= impl_->shape[i]) {
        throw IndexError(text({"element: index ", at[i], " of dimension ", i, " is outside shape ", shape()}));
      }
      sum += at[i] * impl_->strides[i];
    }
    return sum;
  }
  [[noreturn]] TENET_TAG TENET_COLD void wrong_type() const {
    throw DTypeError(text({"tensor: expected elements of ", name(dtype_of<T>), ", got ", name(impl_->dtype)}));
  }
};

inline namespace TENET_CONFIG {

template <class T>
T element_of(const Tensor<T>*);

/// A Tensor<T> or something derived from it, such as a Parameter<T>; references allowed.
template <class X>
concept TensorLike = requires(std::remove_cvref_t<X>* p) {
  element_of(p);
};

/// The element type of a TensorLike.
template <TensorLike X>
using element_t = decltype(element_of(static_cast<std::remove_cvref_t<X>*>(nullptr)));

/// Tensor<element_t<X>>: what an operation on an X gives.
template <TensorLike X>
using tensor_t = Tensor<element_t<X>>;

}  // namespace TENET_CONFIG
}  // namespace tenet
