// Element types of tensors, and the way from a run-time DType to a compile-time type.
#pragma once

#include <tenet/core/error.hpp>

#include <Eigen/Core>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tenet {

enum class DType : std::uint8_t { float32, float64, bfloat16, float16, int8, uint8, int32, int64, boolean };

using std::int32_t;
using std::int64_t;
using std::int8_t;
using std::uint8_t;
using half = Eigen::half;
using bfloat16 = Eigen::bfloat16;

inline namespace TENET_CONFIG {

template <class T>
struct dtype_trait;  // undefined: T is not an element type of tensors

template <DType D>
struct dtype_is {
  static constexpr DType value = D;
};
template <>
struct dtype_trait<float> : dtype_is<DType::float32> {};
template <>
struct dtype_trait<double> : dtype_is<DType::float64> {};
template <>
struct dtype_trait<bfloat16> : dtype_is<DType::bfloat16> {};
template <>
struct dtype_trait<half> : dtype_is<DType::float16> {};
template <>
struct dtype_trait<std::int8_t> : dtype_is<DType::int8> {};
template <>
struct dtype_trait<std::uint8_t> : dtype_is<DType::uint8> {};
template <>
struct dtype_trait<std::int32_t> : dtype_is<DType::int32> {};
template <>
struct dtype_trait<std::int64_t> : dtype_is<DType::int64> {};
template <>
struct dtype_trait<bool> : dtype_is<DType::boolean> {};

/// The DType of an element type: `dtype_of<float> == DType::float32`.
template <class T>
inline constexpr DType dtype_of = dtype_trait<T>::value;

template <class T>
concept Element = requires {
  dtype_trait<T>::value;
};

/// float, double, half or bfloat16: the types gradients exist for.
template <class T>
concept FloatElement =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

template <class T>
concept IntElement = Element<T> && std::is_integral_v<T> && !std::is_same_v<T, bool>;

/// The type sums are accumulated in: half precision in float, small integers in int64.
template <class T>
using accumulate_t =
    std::conditional_t<std::is_same_v<T, double>, double, std::conditional_t<FloatElement<T>, float, std::int64_t>>;

/// The type of a sum: integers and bool add up in int64, floating types in their own.
template <class T>
using sum_t = std::conditional_t<FloatElement<T>, T, std::int64_t>;

/// Bytes of one element.
constexpr std::size_t item_size(DType d) {
  switch (d) {
    case DType::float64:
    case DType::int64: return 8;
    case DType::float32:
    case DType::int32: return 4;
    case DType::bfloat16:
    case DType::float16: return 2;
    default: return 1;
  }
}

constexpr bool is_floating(DType d) {
  return d == DType::float32 || d == DType::float64 || d == DType::bfloat16 || d == DType::float16;
}

/// "float32", "int64", ...: PyTorch's names.
constexpr const char* name(DType d) {
  switch (d) {
    case DType::float32: return "float32";
    case DType::float64: return "float64";
    case DType::bfloat16: return "bfloat16";
    case DType::float16: return "float16";
    case DType::int8: return "int8";
    case DType::uint8: return "uint8";
    case DType::int32: return "int32";
    case DType::int64: return "int64";
    case DType::boolean: return "bool";
  }
  return "unknown";
}

/// Calls `f(T{})` with the element type that `d` names.
template <class F>
decltype(auto) dispatch(DType d, F&& f) {
  switch (d) {
    case DType::float32: return f(float{});
    case DType::float64: return f(double{});
    case DType::bfloat16: return f(bfloat16{});
    case DType::float16: return f(half{});
    case DType::int8: return f(std::int8_t{});
    case DType::uint8: return f(std::uint8_t{});
    case DType::int32: return f(std::int32_t{});
    case DType::int64: return f(std::int64_t{});
    case DType::boolean: return f(bool{});
  }
  throw DTypeError("dispatch: not an element type");
}

/// As dispatch, for floating types only; throws DTypeError naming `op` for others.
template <class F>
decltype(auto) dispatch_floating(const char* op, DType d, F&& f) {
  switch (d) {
    case DType::float32: return f(float{});
    case DType::float64: return f(double{});
    case DType::bfloat16: return f(bfloat16{});
    case DType::float16: return f(half{});
    default: throw DTypeError(text({op, ": expected a floating type, got ", name(d)}));
  }
}

}  // namespace TENET_CONFIG
}  // namespace tenet
