// Sizes and strides: short lists of int64 held in place, and the arithmetic on them.
#pragma once

#include <tenet/core/error.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>

namespace tenet {

/// The most dimensions a tensor may have.
inline constexpr int max_rank = 8;

/// A list of up to `max_rank` numbers: strides, dimension numbers, or sizes that may hold a -1.
class Dims {
 public:
  TENET_TAG Dims() = default;
  TENET_TAG TENET_NOINLINE Dims(std::initializer_list<std::int64_t> values) {
    for (std::int64_t v : values) push_back(v);
  }

  TENET_TAG int size() const { return size_; }
  TENET_TAG bool empty() const { return size_ == 0; }
  TENET_TAG std::int64_t operator[](int i) const { return values_[i]; }
  TENET_TAG std::int64_t& operator[](int i) { return values_[i]; }
  TENET_TAG const std::int64_t* data() const { return values_; }
  TENET_TAG const std::int64_t* begin() const { return values_; }
  TENET_TAG const std::int64_t* end() const { return values_ + size_; }
  TENET_TAG std::int64_t* begin() { return values_; }
  TENET_TAG std::int64_t* end() { return values_ + size_; }

  /// Keeps or adds (as zeros or what stood there) entries up to `n` <= max_rank.
  TENET_TAG void resize(int n) { size_ = n; }
  /// Throws ShapeError past `max_rank` entries.
  TENET_TAG void push_back(std::int64_t v) {
    if (size_ == max_rank) too_many();
    values_[size_++] = v;
  }
  TENET_TAG void insert(int at, std::int64_t v) {
    push_back(v);
    for (int i = size_ - 1; i > at; --i) values_[i] = values_[i - 1];
    values_[at] = v;
  }
  TENET_TAG void erase(int at) {
    for (int i = at + 1; i < size_ && i < max_rank; ++i) values_[i - 1] = values_[i];
    --size_;
  }
  TENET_TAG bool contains(std::int64_t v) const {
    for (std::int64_t x : *this)
      if (x == v) return true;
    return false;
  }

  TENET_TAG friend bool operator==(const Dims& a, const Dims& b) {
    if (a.size_ != b.size_) return false;
    for (int i = 0; i < a.size_; ++i)
      if (a.values_[i] != b.values_[i]) return false;
    return true;
  }

  /// "[8, 1, 28, 28]"
  TENET_TAG TENET_COLD std::string str() const {
    std::string s = "[";
    for (int i = 0; i < size_; ++i) {
      if (i) s += ", ";
      s += std::to_string(values_[i]);
    }
    return s + "]";
  }

 private:
  [[noreturn]] TENET_TAG TENET_COLD static void too_many() {
    throw ShapeError(text({"tensor: more than ", max_rank, " dimensions"}));
  }

  std::int64_t values_[max_rank] = {};
  std::int32_t size_ = 0;
};

/// The sizes of a tensor: none is negative and their product fits int64 (else throws ShapeError).
class Shape : public Dims {
 public:
  TENET_TAG Shape() = default;
  TENET_TAG Shape(std::initializer_list<std::int64_t> sizes) : Shape(Dims(sizes)) {}
  TENET_TAG Shape(const Dims& sizes) : Dims(sizes) { check(); }

  /// The number of elements; 1 for the empty shape of a scalar.
  TENET_TAG std::int64_t numel() const {
    std::int64_t n = 1;
    for (std::int64_t s : *this) n *= s;
    return n;
  }

 private:
  TENET_TAG TENET_NOINLINE void check() const {
    // The product of the non-zero sizes must fit too: strides are made of it.
    std::int64_t n = 1;
    for (std::int64_t s : *this)
      if (s < 0 || (s && __builtin_mul_overflow(n, s, &n))) fail();
  }
  [[noreturn]] TENET_TAG TENET_COLD void fail() const {
    for (std::int64_t s : *this)
      if (s < 0) throw ShapeError(text({"tensor: negative size in shape ", str()}));
    throw ShapeError(text({"tensor: shape ", str(), " has more elements than int64 can count"}));
  }
};

using Strides = Dims;

inline namespace TENET_CONFIG {

/// Strides, in elements, of a row-major tensor without gaps.
TENET_NOINLINE inline Strides contiguous_strides(const Shape& shape) {
  Strides strides = shape;
  std::int64_t step = 1;
  for (int i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i] > 1 ? shape[i] : 1;
  }
  return strides;
}

/// Whether the elements lie row-major without gaps (dimensions of size 1 do not count, nor does any when
/// there is no element).
TENET_NOINLINE inline bool is_contiguous(const Shape& shape, const Strides& strides) {
  if (shape.contains(0)) return true;
  std::int64_t step = 1;
  for (int i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

/// Dimension `dim` of `rank`, counted from the end when negative; throws IndexError naming `op`.
/// A scalar accepts 0 and -1, as in PyTorch.
TENET_NOINLINE inline int wrap_dim(const char* op, std::int64_t dim, int rank) {
  const int n = rank ? rank : 1;
  if (dim < -n || dim >= n) {
    throw IndexError(text({op, ": expected a dimension in [", -n, ", ", n - 1, "], got ", dim}));
  }
  return int(dim < 0 ? dim + n : dim);
}

/// The shape both broadcast to (NumPy's rules); throws ShapeError naming `op` if there is none.
TENET_NOINLINE inline Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const int rank = a.size() > b.size() ? a.size() : b.size();
  Dims out;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.size()), ib = i - (rank - b.size());
    const std::int64_t x = ia < 0 ? 1 : a[ia], y = ib < 0 ? 1 : b[ib];
    if (x != y && x != 1 && y != 1) {
      throw ShapeError(text({op, ": shapes ", a, " and ", b, " do not broadcast"}));
    }
    out.push_back(x == 1 ? y : x);
  }
  return out;
}

/// Strides that make a tensor of `shape` look like `target`, which it must broadcast to.
TENET_NOINLINE inline Strides broadcast_strides(const Shape& shape, const Strides& strides, const Shape& target) {
  Strides out;
  for (int i = 0; i < target.size(); ++i) {
    const int j = i - (target.size() - shape.size());
    out.push_back(j < 0 || (shape[j] == 1 && target[i] != 1) ? 0 : strides[j]);
  }
  return out;
}

}  // namespace TENET_CONFIG
}  // namespace tenet
