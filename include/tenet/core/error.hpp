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

/// One piece of an error text: a string, a number, or a value with `str()` (a shape, a type). It looks at its value and
/// owns nothing, so that the many places that throw cost little code.
class Piece {
 public:
  Piece(const char* s) : Piece(std::string_view(s)) {}
  Piece(const std::string& s) : Piece(std::string_view(s)) {}
  Piece(std::string_view s) : object_(s.data()), size_(s.size()), append_(append_chars) {}
  Piece(std::signed_integral auto v) : signed_(v), append_(append_signed) {}
  Piece(std::unsigned_integral auto v) : unsigned_(v), append_(append_unsigned) {}
  Piece(float v) : real_(double(v)), append_([](std::string& to, const Piece& p) { append_real(to, p, "%.7g"); }) {}
  Piece(double v) : real_(v), append_([](std::string& to, const Piece& p) { append_real(to, p, "%.15g"); }) {}
  template <class X>
  requires requires(const X& x) { std::string(x.str()); }
  Piece(const X& x)
      : object_(&x), append_([](std::string& to, const Piece& p) { to += static_cast<const X*>(p.object_)->str(); }) {}

  void append_to(std::string& to) const { append_(to, *this); }

 private:
  TENET_COLD static void append_chars(std::string& to, const Piece& p) {
    to.append(static_cast<const char*>(p.object_), p.size_);
  }
  TENET_COLD static void append_signed(std::string& to, const Piece& p) { to += std::to_string(p.signed_); }
  TENET_COLD static void append_unsigned(std::string& to, const Piece& p) { to += std::to_string(p.unsigned_); }
  TENET_COLD static void append_real(std::string& to, const Piece& p, const char* format) {
    char digits[32];
    std::snprintf(digits, sizeof digits, format, p.real_);  // 0.1 as 0.1
    to += digits;
  }

  union {
    const void* object_;
    std::int64_t signed_;
    std::uint64_t unsigned_;
    double real_;
  };
  std::size_t size_ = 0;
  void (*append_)(std::string& to, const Piece& p);
};

/// Joins pieces: `throw ShapeError(text({"view: cannot see ", a, " as ", b}))`.
TENET_COLD inline std::string text(std::initializer_list<Piece> pieces) {
  std::string all;
  for (const Piece& p : pieces) p.append_to(all);
  return all;
}

}  // namespace TENET_CONFIG
}  // namespace tenet
