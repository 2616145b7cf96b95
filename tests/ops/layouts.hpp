// Tensors of every layout an operation may be given, for tests.
#pragma once

#include <tenet/core/core.hpp>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace tenet::test {

enum class Layout { row_major, reversed, stepped, narrowed };

inline const char* name(Layout l) {
  switch (l) {
    case Layout::row_major: return "row-major";
    case Layout::reversed: return "reversed dimensions";
    case Layout::stepped: return "every other element";
    case Layout::narrowed: return "inside a wider tensor";
  }
  return "?";
}

/// Calls f(address) for the elements of `t` in row-major order, whatever its strides.
template <class T, class F>
void each_element(const Tensor<T>& t, const F& f) {
  std::int64_t index[max_rank] = {};
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    T* p = t.data();
    for (int d = 0; d < t.dim(); ++d) p += index[d] * t.strides()[d];
    f(p);
    for (int d = t.dim(); d-- > 0 && ++index[d] == t.shape()[d];) index[d] = 0;
  }
}

/// What stands between the elements of a tensor that has gaps: NaN, where the type has one.
template <class T>
T gap() {
  return std::numeric_limits<T>::has_quiet_NaN ? std::numeric_limits<T>::quiet_NaN() : T(77);
}

/// A leaf with the elements of `t` in memory of its own, laid out as told.
template <class T>
Tensor<T> arrange(const Tensor<T>& t, Layout layout) {
  const int rank = t.dim();
  Dims around = t.shape();
  Strides strides = contiguous_strides(t.shape());
  std::int64_t offset = 0, size = 1;
  if (layout == Layout::reversed) {
    for (int d = 0; d < rank; ++d) {
      strides[d] = size;
      size *= t.shape()[d];
    }
  } else {
    for (int d = 0; d < rank; ++d) {
      if (layout == Layout::stepped) around[d] = 2 * t.shape()[d] + 1;
      if (layout == Layout::narrowed) around[d] = t.shape()[d] + 2;
    }
    const Strides outer = contiguous_strides(around);
    for (int d = 0; d < rank; ++d) {
      strides[d] = outer[d] * (layout == Layout::stepped ? 2 : 1);
      if (layout != Layout::row_major) offset += outer[d];
    }
  }
  const Tensor<T> memory = full<T>(around, gap<T>());
  const Tensor<T> out(make_alias(*memory.impl(), t.shape(), strides, offset));
  const std::vector<T> values = t.to_vector();
  std::size_t i = 0;
  each_element(out, [&](T* p) { *p = values[i++]; });
  return out;
}

/// A leaf in which the first slice of `t` along `dim` stands for all of them, by a stride of 0.
template <class T>
Tensor<T> repeat_first(const Tensor<T>& t, int dim) {
  const Tensor<T> memory = arrange(t, Layout::row_major);
  Strides strides = memory.strides();
  strides[dim] = 0;
  return Tensor<T>(make_alias(*memory.impl(), t.shape(), strides, 0));
}

/// The bytes of a tensor's whole storage, gaps included.
inline std::string bytes_of(const AnyTensor& t) {
  const Storage& s = *t.impl()->storage;
  return {static_cast<const char*>(s.data), s.bytes};
}

}  // namespace tenet::test
