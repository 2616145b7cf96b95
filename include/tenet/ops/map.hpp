// map(f, x, y, ...): a function of numbers, applied to every element of tensors that broadcast, in one pass.
//
//   auto y = map([](auto x, auto b) { return x * tanh(x + b) + 0.5; }, x, bias);
//
// The loop is compiled for each instruction set and vectorized under any compiler flags, and so is the loop of the
// gradients: f is called with dual numbers, so that its derivatives come out of the same expression, exactly. Compared
// with x * tanh(x + bias) + 0.5, nothing is written between the operations and one node is recorded.
//
// What f is: a generic lambda or functor of one to seven parameters, with one result.
// - It works on Dual<T> (ops/dual.hpp), which behaves as a number. Plain numbers mix with it and take its precision:
//   x * 0.5 is a float if x is. half and bfloat16 are computed in float.
// - + - * / and comparisons; exp, expm1, log, log1p, sqrt, tanh, sigmoid, erf, sin, cos, pow, abs, square, relu,
//   maximum or max, minimum or min, where. Call them without a namespace, as above, or with tenet::, but not std::.
// - No branches: where(x > 0, x, 0.1 * x) vectorizes, if does not. The derivatives are those of the value chosen alone.
//   sin, cos, pow, and in double all transcendental functions are calls of the standard library, one element a time;
//   so goes sqrt with g++, though without a call.
// - Declare variables with auto, and a new one for each step: the type tells what inputs a value depends on, and those
//   of a + b are more than those of a.
// - Captures are numbers, by value: [slope](auto x) {...}. A lambda is copied as bytes, to run again in backward, so
//   what it refers to would be gone by then.
// - Helpers that f calls are templates themselves, and TENET_ALWAYS_INLINE where they are not tiny.
#pragma once

#include <tenet/ops/dual.hpp>
#include <tenet/ops/grad_math.hpp>

namespace tenet {
inline namespace TENET_CONFIG {

namespace detail {

/// f itself.
template <class F>
struct MapValue {
  F f;
  template <class T, class... X>
  TENET_ALWAYS_INLINE cpu::Values<T, 1> operator()(T x, X... rest) const {
    return {{as_dual<T>(f(Dual<T>(x), Dual<T>(rest)...)).value}};
  }
};

/// g times the derivatives of f by all inputs. Where f does not depend on an input, 0 for any g.
template <class F, std::size_t... I>
struct MapSlopes {
  static constexpr bool vectorize = !requires { F::once_more; };  // second derivatives are rare: one loop is enough
  F f;

  template <class T, class... X>
  TENET_ALWAYS_INLINE cpu::Values<T, sizeof...(I)> operator()(T g, X... x) const {
    const auto y = as_dual<T>(f(Dual<T, 1u << I>(x, T(1))...));
    return {{scaled(g, y.template slope<int(I)>())...}};
  }
  template <class T>
  TENET_ALWAYS_INLINE static T scaled(T g, T slope) {
    return slope == 0 ? T(0) : g * slope;
  }
};

/// The derivative of f by input K, as a function to derive once more.
template <class F, std::size_t K>
struct MapSlope {
  static constexpr bool once_more = true;
  F f;

  template <class... X>
  TENET_ALWAYS_INLINE auto operator()(X... x) const {
    using Inner = Dual<typename std::common_type_t<typename X::Number...>, (X::inputs | ...)>;
    return as_dual<Inner>(f(variable<X::inputs == 1u << K>(Inner(x))...)).template slope<0>();
  }
  template <bool Yes, class T>
  TENET_ALWAYS_INLINE static auto variable(T x) {
    if constexpr (Yes) return Dual<T, 1>(x, T(1));
    else return Dual<T>(x);
  }
};

/// Writes f's outputs: to[k], of the common shape, null where not wanted.
template <std::size_t Outs, class F, class T, class... X>
void run_map(F f, const Tensor<T>& like, T* const* to, const X&... x) {
  Strides strides[sizeof...(X)];
  int k = 0;
  const cpu::Strided<const T> in[] = {broadcast(x, like.shape(), strides[k++])...};
  cpu::map_many<Outs, sizeof...(X)>(f, like.dim(), like.shape().data(), to, like.strides().data(), in);
}

template <class T, std::size_t>
using MapInput = const Tensor<T>&;

}  // namespace detail

namespace op {

/// g times the derivative of f by one input; `then`, if not negative, is the input to derive by once more.
template <class F, class T, class Is>
struct MapGrad;
template <class F, class T, std::size_t... I>
struct MapGrad<F, T, std::index_sequence<I...>> {
  static constexpr const char* name = "map_grad";
  struct Options {
    F f;
    int by, then;
  };

  static Tensor<T> forward(Context& ctx, const Tensor<T>& g, detail::MapInput<T, I>... x, Options o) {
    ctx.keep(g);
    (ctx.keep(x), ...);
    Tensor<T> out = empty<T>(g.shape());
    T* to[sizeof...(I)] = {};
    to[o.then < 0 ? o.by : o.then] = out.data();
    if (o.then < 0) run(o.f, out, to, g, x...);
    else ((o.by == int(I) ? run(detail::MapSlope<F, I>{o.f}, out, to, g, x...) : void()), ...);
    return out;
  }
  /// Of all inputs in one pass.
  template <class Slope>
  static void run(const Slope& f, const Tensor<T>& like, T* const* to, const Tensor<T>& g,
                  detail::MapInput<T, I>... x) {
    detail::run_map<sizeof...(I)>(detail::MapSlopes<Slope, I...>{f}, like, to, g, x...);
  }
  static void backward(Grad grad, const Tensor<T>& gg) {
    const Options o = grad.options<Options>();
    if (o.then >= 0) throw NotImplemented("map: cannot be differentiated a third time");
    const Tensor<T> g = grad.kept<T>(0), x[] = {grad.kept<T>(int(I) + 1)...};
    if (grad.wants(0)) grad[0] = apply<MapGrad>(gg, x[I]..., o);
    for (int k = 0; k < int(sizeof...(I)); ++k) {
      if (grad.wants(k + 1)) grad[k + 1] = apply<MapGrad>(mul(gg, g), x[I]..., Options{o.f, o.by, k});
    }
  }
};

template <class F, class T, class Is>
struct Map;
template <class F, class T, std::size_t... I>
struct Map<F, T, std::index_sequence<I...>> {
  static constexpr const char* name = "map";

  static Tensor<T> forward(Context& ctx, detail::MapInput<T, I>... x, F f) {
    (ctx.keep(x), ...);
    Shape shape;
    ((shape = broadcast_shapes(name, shape, x.shape())), ...);
    Tensor<T> out = empty<T>(shape);
    T* const to[] = {out.data()};
    detail::run_map<1>(detail::MapValue<F>{f}, out, to, x...);
    return out;
  }
  static void backward(Grad grad, const Tensor<T>& g) {
    using Gradient = MapGrad<F, T, std::index_sequence<I...>>;
    const F& f = grad.options<F>();
    const Tensor<T> x[] = {grad.kept<T>(int(I))...};
    if (is_grad_enabled()) {  // recorded, one operation a gradient
      for (int k = 0; k < int(sizeof...(I)); ++k) {
        if (grad.wants(k)) grad[k] = apply<Gradient>(g, x[I]..., typename Gradient::Options{f, k, -1});
      }
      return;
    }
    Tensor<T> out;
    T* to[sizeof...(I)] = {};
    for (int k = 0; k < int(sizeof...(I)); ++k) {
      if (!grad.wants(k)) continue;
      out = empty<T>(g.shape());
      to[k] = out.data();
      grad[k] = out;
    }
    Gradient::run(f, out, to, g, x[I]...);
  }
};

}  // namespace op

/// f(x, y, ...) of every element of the one to seven tensors, which broadcast and are of one floating type; see the top
/// of this file. Differentiable twice; the second time a NaN in one derivative spreads to the others. Throws ShapeError
/// if the shapes do not broadcast.
template <class F, TensorLike X, TensorLike... Rest>
tensor_t<X> map(F f, const X& x, const Rest&... rest) {
  using T = element_t<X>;
  using Number = Dual<cpu::compute_t<T>>;
  static_assert(FloatElement<T>, "map: expected elements of a floating type: convert with to<float>() first");
  static_assert((std::is_same_v<T, element_t<Rest>> && ...),
                "map: tensors of different element types: convert with to<T>()");
  static_assert(sizeof...(Rest) < 7, "map: expected at most seven tensors");
  static_assert(std::is_trivially_copyable_v<F> && alignof(F) <= alignof(void*),
                "map: the function may capture numbers by value, but nothing that owns memory, such as a tensor");
  static_assert(std::is_invocable_v<const F&, Number, typename std::conditional_t<true, Number, Rest>...>,
                "map: expected a function of as many numbers as tensors, of any type: [](auto x, auto y) { ... }");
  return apply<op::Map<F, T, std::index_sequence_for<X, Rest...>>>(static_cast<const tensor_t<X>&>(x),
                                                                   static_cast<const tensor_t<Rest>&>(rest)..., f);
}

}  // namespace TENET_CONFIG
}  // namespace tenet
