// Comparisons and logic, elementwise with broadcasting; each gives a Tensor<bool> and has no gradient.
//
// Both operands have one element type. NaN equals nothing. Each throws ShapeError if the shapes do not broadcast.
#pragma once

#include <tenet/ops/arithmetic.hpp>

#include <cstring>

namespace tenet {
inline namespace TENET_CONFIG {

/// Base of binary operations that give a truth value.
template <class Self>
struct CompareOp : BinaryOp<Self> {
  template <class T>
  using Result = bool;
  static void keep(Context&, const AnyTensor&, const AnyTensor&) {}
};

namespace op {

struct Equal : CompareOp<Equal> {
  static constexpr const char* name = "eq";
  TENET_ALWAYS_INLINE bool f(auto a, auto b) const { return a == b; }
};
struct NotEqual : CompareOp<NotEqual> {
  static constexpr const char* name = "ne";
  TENET_ALWAYS_INLINE bool f(auto a, auto b) const { return a != b; }
};
struct Less : CompareOp<Less> {
  static constexpr const char* name = "lt";
  TENET_ALWAYS_INLINE bool f(auto a, auto b) const { return a < b; }
};
struct LessEqual : CompareOp<LessEqual> {
  static constexpr const char* name = "le";
  TENET_ALWAYS_INLINE bool f(auto a, auto b) const { return a <= b; }
};
struct LogicalAnd : CompareOp<LogicalAnd> {
  static constexpr const char* name = "logical_and";
  template <class T>
  TENET_ALWAYS_INLINE bool f(T a, T b) const {
    return (a != T(0)) & (b != T(0));
  }
};
struct LogicalOr : CompareOp<LogicalOr> {
  static constexpr const char* name = "logical_or";
  template <class T>
  TENET_ALWAYS_INLINE bool f(T a, T b) const {
    return (a != T(0)) | (b != T(0));
  }
};
struct LogicalXor : CompareOp<LogicalXor> {
  static constexpr const char* name = "logical_xor";
  template <class T>
  TENET_ALWAYS_INLINE bool f(T a, T b) const {
    return (a != T(0)) != (b != T(0));
  }
};

}  // namespace op

/// Base of unary operations that give a truth value.
template <class Self>
struct PredicateOp {
  template <class T>
  static Tensor<bool> forward(Context&, const Tensor<T>& x) {
    Tensor<bool> out = empty<bool>(x.shape());
    detail::run_unary(detail::Function<Self>{}, out, x);
    return out;
  }
};

namespace op {

struct IsNan : PredicateOp<IsNan> {
  static constexpr const char* name = "isnan";
  TENET_ALWAYS_INLINE bool f(auto x) const { return x != x; }
};
struct IsInf : PredicateOp<IsInf> {
  static constexpr const char* name = "isinf";
  template <class T>
  TENET_ALWAYS_INLINE bool f(T x) const {
    return std::is_floating_point_v<T> && (x == x) & (x - x != x - x);  // inf - inf is NaN
  }
};
struct IsFinite : PredicateOp<IsFinite> {
  static constexpr const char* name = "isfinite";
  template <class T>
  TENET_ALWAYS_INLINE bool f(T x) const {
    return !std::is_floating_point_v<T> || x - x == x - x;
  }
};
struct LogicalNot : PredicateOp<LogicalNot> {
  static constexpr const char* name = "logical_not";
  template <class T>
  TENET_ALWAYS_INLINE bool f(T x) const {
    return x == T(0);
  }
};

struct IsClose {
  static constexpr const char* name = "isclose";
  double rtol, atol;
  bool equal_nan;
  template <class T>
  bool operator()(T x, T y) const {
    const double a = double(x), b = double(y), distance = std::abs(a - b);
    const bool near = (distance <= atol + rtol * std::abs(b)) & (distance - distance == 0);  // not an infinite one
    return (a == b) | near | (equal_nan & (a != a) & (b != b));
  }
  template <class T>
  static Tensor<bool> forward(Context&, const Tensor<T>& a, const Tensor<T>& b, IsClose op) {
    Tensor<bool> out = empty<bool>(broadcast_shapes(name, a.shape(), b.shape()));
    detail::run_binary(op, out, a, b);
    return out;
  }
};

}  // namespace op

namespace detail {

template <class Op, TensorLike A, TensorLike B>
Tensor<bool> compare(const A& a, const B& b) {
  return apply<Op>(static_cast<const tensor_t<A>&>(a), static_cast<const tensor_t<B>&>(b));
}

/// `v` as a tensor of T to compare with; throws Error if T does not hold it.
template <class T, class V>
Tensor<T> comparable(const char* op, V v) {
  if constexpr (IntElement<T>) {
    if (V(T(v)) != v || (T(v) < T(0)) != (v < V(0))) throw Error(text({op, ": ", name(dtype_of<T>), " holds no ", v}));
  }
  return scalar(T(v));
}

inline bool all_true(const Tensor<bool>& t) {
  return t.numel() == 0 || !std::memchr(t.data(), 0, std::size_t(t.numel()));
}

}  // namespace detail

/// a == b.
template <TensorLike A, TensorLike B>
Tensor<bool> eq(const A& a, const B& b) {
  return detail::compare<op::Equal>(a, b);
}
/// a != b.
template <TensorLike A, TensorLike B>
Tensor<bool> ne(const A& a, const B& b) {
  return detail::compare<op::NotEqual>(a, b);
}
/// a < b.
template <TensorLike A, TensorLike B>
Tensor<bool> lt(const A& a, const B& b) {
  return detail::compare<op::Less>(a, b);
}
/// a <= b.
template <TensorLike A, TensorLike B>
Tensor<bool> le(const A& a, const B& b) {
  return detail::compare<op::LessEqual>(a, b);
}
/// a > b.
template <TensorLike A, TensorLike B>
Tensor<bool> gt(const A& a, const B& b) {
  return detail::compare<op::Less>(b, a);
}
/// a >= b.
template <TensorLike A, TensorLike B>
Tensor<bool> ge(const A& a, const B& b) {
  return detail::compare<op::LessEqual>(b, a);
}
/// Whether both are other than 0.
template <TensorLike A, TensorLike B>
Tensor<bool> logical_and(const A& a, const B& b) {
  return detail::compare<op::LogicalAnd>(a, b);
}
/// Whether one of them is other than 0.
template <TensorLike A, TensorLike B>
Tensor<bool> logical_or(const A& a, const B& b) {
  return detail::compare<op::LogicalOr>(a, b);
}
/// Whether just one of them is other than 0.
template <TensorLike A, TensorLike B>
Tensor<bool> logical_xor(const A& a, const B& b) {
  return detail::compare<op::LogicalXor>(a, b);
}
/// Whether x is 0.
template <TensorLike X>
Tensor<bool> logical_not(const X& x) {
  return apply<op::LogicalNot>(static_cast<const tensor_t<X>&>(x));
}
/// Whether x is NaN.
template <TensorLike X>
Tensor<bool> isnan(const X& x) {
  return apply<op::IsNan>(static_cast<const tensor_t<X>&>(x));
}
/// Whether x is infinite.
template <TensorLike X>
Tensor<bool> isinf(const X& x) {
  return apply<op::IsInf>(static_cast<const tensor_t<X>&>(x));
}
/// Whether x is neither infinite nor NaN.
template <TensorLike X>
Tensor<bool> isfinite(const X& x) {
  return apply<op::IsFinite>(static_cast<const tensor_t<X>&>(x));
}

/// Whether |a - b| <= atol + rtol * |b|, or both are the same infinity, or, with `equal_nan`, both NaN. Throws Error
/// if a tolerance is negative. See torch.isclose.
template <TensorLike A, TensorLike B>
Tensor<bool> isclose(const A& a, const B& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) {
  if (!(rtol >= 0 && atol >= 0)) {
    throw Error(text({"isclose: expected tolerances >= 0, got rtol ", rtol, " and atol ", atol}));
  }
  return apply<op::IsClose>(static_cast<const tensor_t<A>&>(a), static_cast<const tensor_t<B>&>(b),
                            op::IsClose{rtol, atol, equal_nan});
}
/// Whether isclose holds for every element.
template <TensorLike A, TensorLike B>
bool allclose(const A& a, const B& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) {
  return detail::all_true(isclose(a, b, rtol, atol, equal_nan));
}
/// Whether both have one shape and equal elements.
template <TensorLike A, TensorLike B>
bool equal(const A& a, const B& b) {
  return a.shape() == b.shape() && detail::all_true(eq(a, b));
}

template <TensorLike A, TensorLike B>
Tensor<bool> operator==(const A& a, const B& b) {
  return eq(a, b);
}
template <TensorLike A, TensorLike B>
Tensor<bool> operator!=(const A& a, const B& b) {
  return ne(a, b);
}
template <TensorLike A, TensorLike B>
Tensor<bool> operator<(const A& a, const B& b) {
  return lt(a, b);
}
template <TensorLike A, TensorLike B>
Tensor<bool> operator<=(const A& a, const B& b) {
  return le(a, b);
}
template <TensorLike A, TensorLike B>
Tensor<bool> operator>(const A& a, const B& b) {
  return gt(a, b);
}
template <TensorLike A, TensorLike B>
Tensor<bool> operator>=(const A& a, const B& b) {
  return ge(a, b);
}

// Beside a number, which stands on the right; it must be one that the element type holds.
template <TensorLike A, ScalarFor<element_t<A>> V>
Tensor<bool> operator==(const A& a, V v) {
  return eq(a, detail::comparable<element_t<A>>("eq", v));
}
template <TensorLike A, ScalarFor<element_t<A>> V>
Tensor<bool> operator!=(const A& a, V v) {
  return ne(a, detail::comparable<element_t<A>>("ne", v));
}
template <TensorLike A, ScalarFor<element_t<A>> V>
Tensor<bool> operator<(const A& a, V v) {
  return lt(a, detail::comparable<element_t<A>>("lt", v));
}
template <TensorLike A, ScalarFor<element_t<A>> V>
Tensor<bool> operator<=(const A& a, V v) {
  return le(a, detail::comparable<element_t<A>>("le", v));
}
template <TensorLike A, ScalarFor<element_t<A>> V>
Tensor<bool> operator>(const A& a, V v) {
  return gt(a, detail::comparable<element_t<A>>("gt", v));
}
template <TensorLike A, ScalarFor<element_t<A>> V>
Tensor<bool> operator>=(const A& a, V v) {
  return ge(a, detail::comparable<element_t<A>>("ge", v));
}

inline Tensor<bool> operator&(const Tensor<bool>& a, const Tensor<bool>& b) { return logical_and(a, b); }
inline Tensor<bool> operator|(const Tensor<bool>& a, const Tensor<bool>& b) { return logical_or(a, b); }
inline Tensor<bool> operator^(const Tensor<bool>& a, const Tensor<bool>& b) { return logical_xor(a, b); }
inline Tensor<bool> operator!(const Tensor<bool>& x) { return logical_not(x); }

}  // namespace TENET_CONFIG
}  // namespace tenet
