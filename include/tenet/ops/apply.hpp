// apply<Op>(inputs..., options): the one way an operation runs.
//
// An operation is a struct in namespace op, out of the way of a user's own names:
//   struct Mul {
//     static constexpr const char* name = "mul";
//     template <class T> static Tensor<T> forward(Context& ctx, const Tensor<T>& a, const Tensor<T>& b);
//     template <class T> static void backward(Grad grad, const Tensor<T>& g);               // written with operations
//   };
// `forward` checks, and tells `ctx` what backward needs before it computes. Without a `backward` nothing is recorded.
// With `static constexpr bool reuses = true` its forward gets temporaries as such (see reuse_or_empty); else all inputs
// are constant, and one function serves every call.
// Options are one plain struct after the tensors; backward reads them as grad.options<O>().
// A family's header includes ops/grad_math.hpp, the engine's arithmetic, which brings this file with it.
#pragma once

#include <tenet/autograd/backward.hpp>
#include <tenet/autograd/grad.hpp>
#include <tenet/kernels/cpu/pointwise.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

using autograd::Context;
using autograd::Grad;

namespace detail {

template <class X>
struct is_tensor_list : std::false_type {};
template <class T>
struct is_tensor_list<std::vector<Tensor<T>>> : std::true_type {};
template <class X>
concept TensorList = is_tensor_list<std::remove_cvref_t<X>>::value;

/// The tensors among the arguments of an operation, in order; an undefined one is null.
template <class... A>
class Inputs {
 public:
  explicit Inputs(const A&... args) {
    (add(args), ...);
    if constexpr (has_list) data_ = many_.data(), count_ = int(many_.size());
  }
  TensorImpl* const* data() const { return data_; }
  int count() const { return count_; }

 private:
  static constexpr bool has_list = (TensorList<A> || ...);
  static constexpr int fixed = (int(TensorLike<A>) + ... + 0);

  template <class X>
  void add(const X& x) {
    if constexpr (TensorLike<X> && has_list) many_.push_back(x.impl());
    else if constexpr (TensorLike<X>) few_[count_++] = x.impl();
    else if constexpr (TensorList<X>) {
      for (const auto& t : x) many_.push_back(t.impl());
    }
  }

  TensorImpl* few_[fixed ? fixed : 1];
  std::conditional_t<has_list, std::vector<TensorImpl*>, std::nullptr_t> many_;
  TensorImpl* const* data_ = few_;
  int count_ = 0;
};

/// The element type of the first floating tensor: that of the gradients passed back. void if there is none.
template <class X, class... Rest>
struct gradient_element : gradient_element<Rest...> {};
template <TensorLike X, class... Rest>
requires FloatElement<element_t<X>>
struct gradient_element<X, Rest...> {
  using type = element_t<X>;
};
template <FloatElement T, class... Rest>
struct gradient_element<std::vector<Tensor<T>>, Rest...> {
  using type = T;
};
struct End {};
template <>
struct gradient_element<End> {
  using type = void;
};

template <class Op, class T>
void run_backward(autograd::Node& n, AnyTensor&& g, AnyTensor* out) {
  Op::backward(Grad(n, out), static_cast<Tensor<T>&&>(g));  // a handle has no members of its own
}

template <class Op, class T, class In>
inline constexpr autograd::NodeType node_type{Op::name, &run_backward<Op, T>, &autograd::grad_math<In>,
                                              &autograd::grad_math<T>};

template <class Op, class T>
concept Differentiable = FloatElement<T> && requires(Grad grad, Tensor<T>&& g) {
  Op::backward(grad, std::move(g));
};

/// The options among the arguments: at most one, the last, plain data.
template <class Op, class... A>
void record(TensorImpl* y, Context& ctx, const autograd::NodeType& type, const A&... args) {
  const void* options = nullptr;
  std::size_t bytes = 0;
  [[maybe_unused]] const auto take = [&]<class X>(const X& x) {
    if constexpr (!TensorLike<X> && !TensorList<X>) {
      static_assert(std::is_trivially_copyable_v<X>, "the options of an operation are plain data");
      options = &x;
      bytes = sizeof(X);
    }
  };
  (take(args), ...);
  autograd::record(type, y, ctx, options, bytes);
}

template <class Op, class... Args>
auto run(Args&&... args) {
  const Inputs<std::remove_cvref_t<Args>...> in(args...);
  Context ctx(Op::name, in.data(), in.count());
  auto y = Op::forward(ctx, std::forward<Args>(args)...);
  using T = element_t<decltype(y)>;
  using In = typename gradient_element<std::remove_cvref_t<Args>..., End>::type;
  if constexpr (Differentiable<Op, T> && !std::is_void_v<In>) {
    if (ctx.recording()) {
      ctx.check_views(Op::name);
      record<Op>(y.impl(), ctx, node_type<Op, T, In>, args...);
    }
  }
  return y;
}

}  // namespace detail

/// Runs operation `Op`: checks the devices, computes, and records the node that backward() will find.
template <class Op, class... Args>
TENET_ALWAYS_INLINE auto apply(Args&&... args) {
  if constexpr (requires { requires Op::reuses; }) return detail::run<Op>(std::forward<Args>(args)...);
  else return detail::run<Op>(std::as_const(args)...);
}

/// Memory for an output of `shape` that may be that of `x`: taken over if x is a temporary that nothing else
/// refers to (no handle, no view, no backward), else fresh. What is kept for backward is not taken.
template <class X>
tensor_t<X> reuse_or_empty(X&& x, const Shape& shape) {
  if constexpr (!std::is_lvalue_reference_v<X> && !std::is_const_v<std::remove_reference_t<X>>) {
    const TensorImpl& t = *x.impl();
    if (t.count.unique() && t.storage->count.unique() && t.contiguous && !t.requires_grad && !t.storage->borrowed &&
        t.shape == shape) {
      return tensor_t<X>(make_alias(t, t.shape, t.strides, 0));
    }
  }
  return empty<element_t<X>>(shape);
}

/// A tensor as the kernels see it: one to read, one to write.
template <class T>
cpu::Strided<const T> source(const Tensor<T>& t) {
  return {t.data(), t.strides().data()};
}
template <class T>
cpu::Strided<T> target(const Tensor<T>& t) {
  return {t.data(), t.strides().data()};
}
/// A tensor read at every index of `shape`, which its shape broadcasts to; `strides` receives the steps.
template <class T>
cpu::Strided<const T> broadcast(const Tensor<T>& t, const Shape& shape, Strides& strides) {
  strides = broadcast_strides(t.shape(), t.strides(), shape);
  return {t.data(), strides.data()};
}

}  // namespace TENET_CONFIG
}  // namespace tenet
