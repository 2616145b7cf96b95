// Exceptions of the library. The text names the operation, what it expected and what it got:
//   conv2d: expected 3 input channels, got input [8, 1, 28, 28]
#pragma once

#include <tenet/core/config.hpp>

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tenet {

/// Base of everything the library throws on a wrong argument, file or state.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Sizes that do not fit an operation or each other.
struct ShapeError : Error {
  using Error::Error;
};
/// An index, dimension or label outside its range.
struct IndexError : Error {
  using Error::Error;
};
/// An element type an operation does not take.
struct DTypeError : Error {
  using Error::Error;
};
/// Tensors on a device an operation cannot reach, or on different ones.
struct DeviceError : Error {
  using Error::Error;
};
/// A file or stream that is not what it claims to be.
struct FormatError : Error {
  using Error::Error;
};
/// A combination that is legal but that the library does not offer.
struct NotImplemented : Error {
  using Error::Error;
};

inline namespace TENET_CONFIG {

/// One piece of an error text: a string, a number, or a value with `str()` (a shape, a type).
struct Piece {
  std::string text;
  Piece(const char* s) : text(s) {}
  Piece(std::string s) : text(std::move(s)) {}
  Piece(std::string_view s) : text(s) {}
  Piece(std::integral auto v) : text(std::to_string(v)) {}
  Piece(std::floating_point auto v) : text(number(double(v))) {}
  template <class X>
  requires requires(const X& x) { std::string(x.str()); }
  Piece(const X& x) : text(x.str()) {}

 private:
  static std::string number(double v) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.7g", v);  // 0.1f as 0.1
    return digits;
  }
};

/// Joins pieces: `throw ShapeError(text({"view: cannot see ", a, " as ", b}))`.
TENET_COLD inline std::string text(std::initializer_list<Piece> pieces) {
  std::string all;
  for (const Piece& p : pieces) all += p.text;
  return all;
}

}  // namespace TENET_CONFIG
}  // namespace tenet
