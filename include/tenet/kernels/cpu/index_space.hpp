// The index space of a kernel: how its operands lie over a common shape, in as few dimensions as possible.
#pragma once

#include <tenet/core/error.hpp>

#include <cstring>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

using std::int64_t;

inline constexpr int max_rank = 8;      // dimensions a kernel takes
inline constexpr int max_operands = 9;  // arrays a kernel walks at once, its output first

/// Data and its strides, in elements, one a dimension; 0 repeats an element along the dimension.
template <class T>
struct Strided {
  T* data;
  const int64_t* strides;
};

/// Number of elements of a shape.
inline int64_t numel(int rank, const int64_t* shape) {
  int64_t n = 1;
  for (int d = 0; d < rank; ++d) n *= shape[d];
  return n;
}

/// Whether the strides are those of a row-major array without gaps.
TENET_NOINLINE inline bool contiguous(int rank, const int64_t* shape, const int64_t* strides) {
  int64_t expected = 1;
  for (int d = rank - 1; d >= 0; --d) {
    if (shape[d] != 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

/// Shape and strides of up to max_operands arrays, the dimensions reordered so that the strides of the first
/// array fall, and merged where all arrays allow it. Rank is at least 1; the last dimension is the innermost.
struct IndexSpace {
  int rank = 0;
  int operands = 0;
  int64_t numel = 1;
  int64_t shape[max_rank];
  int64_t strides[max_operands][max_rank];
  bool dense[max_operands];  // element i of the space is element i of the array

  /// Throws ShapeError when `dims` is over max_rank.
  IndexSpace(int dims, const int64_t* sizes, int count, const int64_t* const* steps) : operands(count) {
    if (dims > max_rank) throw ShapeError(text({"expected at most ", max_rank, " dimensions, got ", dims}));
    int order[max_rank];
    for (int d = 0; d < dims; ++d) {
      numel *= sizes[d];
      if (sizes[d] == 1) continue;
      int at = rank++;
      for (; at > 0 && magnitude(steps[0][order[at - 1]]) < magnitude(steps[0][d]); --at) order[at] = order[at - 1];
      order[at] = d;
    }
    int merged = 0;
    for (int k = 0; k < rank; ++k) {
      const int d = order[k];
      if (merged > 0 && follows(merged - 1, d, sizes[d], steps)) {
        shape[merged - 1] *= sizes[d];
      } else {
        shape[merged++] = sizes[d];
      }
      for (int a = 0; a < operands; ++a) strides[a][merged - 1] = steps[a][d];
    }
    rank = merged;
    if (rank == 0) {
      rank = 1;
      shape[0] = 1;
      for (int a = 0; a < operands; ++a) strides[a][0] = 1;
    }
    for (int a = 0; a < operands; ++a) dense[a] = contiguous(rank, shape, strides[a]);
  }

  int64_t inner() const { return shape[rank - 1]; }

  /// Fills `index` with the coordinates of element i.
  void locate(int64_t i, int64_t* index) const {
    for (int d = rank - 1; d > 0; --d) {
      const int64_t outer = i / shape[d];
      index[d] = i - outer * shape[d];
      i = outer;
    }
    index[0] = i;
  }

  /// Where the element at `index` lies in array `a`, in elements.
  int64_t offset(int a, const int64_t* index) const {
    int64_t at = 0;
    for (int d = 0; d < rank; ++d) at += index[d] * strides[a][d];
    return at;
  }

  /// Calls `run(offset, stride, n)` for each run of array `a` along the innermost dimension, from element `begin` of
  /// the space on, until `count` elements are covered.
  template <class Run>
  void runs(int a, int64_t begin, int64_t count, Run run) const {
    int64_t index[max_rank];
    locate(begin, index);
    const int last = rank - 1;
    int64_t at = offset(a, index);
    while (count > 0) {
      const int64_t rest = shape[last] - index[last], n = rest < count ? rest : count;
      run(at, strides[a][last], n);
      count -= n;
      at -= index[last] * strides[a][last];
      index[last] = 0;
      for (int d = last - 1; d >= 0; --d) {
        at += strides[a][d];
        if (++index[d] < shape[d]) break;
        at -= shape[d] * strides[a][d];
        index[d] = 0;
      }
    }
  }

 private:
  static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

  bool follows(int outer, int d, int64_t size, const int64_t* const* steps) const {
    for (int a = 0; a < operands; ++a)
      if (strides[a][outer] != steps[a][d] * size) return false;
    return true;
  }
};

namespace detail {

template <int Size>
void copy_strided_sized(int64_t n, const char* from, int64_t from_step, char* to, int64_t to_step) {
  for (; n > 0; --n, from += from_step, to += to_step) std::memcpy(to, from, Size);
}

// Copies n elements of `size` bytes whose places are that many bytes apart.
TENET_NOINLINE inline void copy_strided(int64_t size, int64_t n, const char* from, int64_t from_step, char* to,
                                        int64_t to_step) {
  constexpr int64_t few = 16;
  if (n > few && to_step == size && from_step == size) {
    std::memcpy(to, from, std::size_t(n * size));
  } else if (n > few && to_step == size && from_step == 0) {
    copy_strided(size, few, from, 0, to, size);
    for (int64_t done = few; done < n; done *= 2)
      std::memcpy(to + done * size, to, std::size_t((done < n - done ? done : n - done) * size));
  } else {
    switch (size) {
      case 1: return copy_strided_sized<1>(n, from, from_step, to, to_step);
      case 2: return copy_strided_sized<2>(n, from, from_step, to, to_step);
      case 4: return copy_strided_sized<4>(n, from, from_step, to, to_step);
      default: return copy_strided_sized<8>(n, from, from_step, to, to_step);
    }
  }
}

// Copies `count` elements of `size` bytes, from element `begin` of the space on, into a contiguous buffer.
TENET_NOINLINE inline void gather(int64_t size, const IndexSpace& space, int a, int64_t begin, int64_t count,
                                  const char* data, char* buffer) {
  space.runs(a, begin, count, [&](int64_t at, int64_t stride, int64_t n) {
    copy_strided(size, n, data + at * size, stride * size, buffer, size);
    buffer += n * size;
  });
}

// The way back of gather.
TENET_NOINLINE inline void scatter(int64_t size, const IndexSpace& space, int a, int64_t begin, int64_t count,
                                   char* data, const char* buffer) {
  space.runs(a, begin, count, [&](int64_t at, int64_t stride, int64_t n) {
    copy_strided(size, n, buffer, size, data + at * size, stride * size);
    buffer += n * size;
  });
}

}  // namespace detail
}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
