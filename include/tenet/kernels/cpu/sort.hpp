// Sorting along one dimension: the order of the elements, as indices.
//
// Elements become integer keys of the same order, so that one sort serves every type. A NaN is the greatest; -0 and
// 0 are equal; equal elements keep their order.
#pragma once

#include <tenet/core/dtype.hpp>
#include <tenet/core/memory.hpp>
#include <tenet/core/parallel.hpp>
#include <tenet/kernels/cpu/index_space.hpp>
#include <tenet/kernels/cpu/pointwise.hpp>

#include <algorithm>
#include <bit>
#include <limits>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// The first `count` elements in order, ascending or not; `sorted`: these few are in order themselves.
struct Order {
  bool descending;
  int64_t count;
  bool sorted = true;
};

namespace detail {

/// An integer that orders as x does.
template <class T>
int64_t order_key(T x) {
  if constexpr (std::is_integral_v<T>) {
    return int64_t(x);
  } else if constexpr (sizeof(T) == 2) {
    return order_key(float(x));
  } else {
    using Bits = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    if (x != x) return std::numeric_limits<int64_t>::max();
    const Bits bits = std::bit_cast<Bits>(x), magnitude = bits & std::numeric_limits<Bits>::max();
    return bits < 0 ? -magnitude : magnitude;
  }
}

struct Entry {
  int64_t key, index;
  friend bool operator<(const Entry& a, const Entry& b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
  }
};

/// Room for the entries of one line.
struct Line {
  explicit Line(int64_t n)
      : bytes(std::size_t(n) * sizeof(Entry)), entries(static_cast<Entry*>(memory::allocate(bytes))) {}
  ~Line() { memory::deallocate(entries, bytes); }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  std::size_t bytes;
  Entry* entries;
};

TENET_NOINLINE inline void sort_line(Entry* e, int64_t n, Order order) {
  if (order.count * 64 <= n) return std::partial_sort(e, e + order.count, e + n);  // a few of many
  if (order.count < n) std::nth_element(e, e + order.count, e + n);
  if (order.sorted) std::sort(e, e + order.count);
}

}  // namespace detail

/// For each line of `in` along `dim` (of `shape`), the indices of its first elements in the given order, to `out`,
/// whose size along `dim` is order.count.
template <class T>
void argsort(int rank, const int64_t* shape, int dim, Strided<const T> in, Strided<int64_t> out, Order order) {
  int64_t sizes[max_rank], steps[2][max_rank];  // without `dim`
  int kept = 0;
  for (int d = 0; d < rank; ++d) {
    if (d == dim) continue;
    sizes[kept] = shape[d];
    steps[0][kept] = out.strides[d];
    steps[1][kept++] = in.strides[d];
  }
  const int64_t* const operands[] = {steps[0], steps[1]};
  const IndexSpace space(kept, sizes, 2, operands);
  const int64_t n = shape[dim], to_step = out.strides[dim], from_step = in.strides[dim];
  if (n == 0 || order.count == 0) return;
  parallel_for(space.numel, std::max<int64_t>(1, detail::map_grain / 8 / n), [&](int64_t begin, int64_t end) {
    const detail::Line line(n);
    int64_t at[max_rank];
    for (int64_t i = begin; i < end; ++i) {
      space.locate(i, at);
      const T* from = in.data + space.offset(1, at);
      for (int64_t k = 0; k < n; ++k) {
        const int64_t key = detail::order_key(from[k * from_step]);
        new (line.entries + k) detail::Entry{order.descending ? ~key : key, k};
      }
      detail::sort_line(line.entries, n, order);
      int64_t* to = out.data + space.offset(0, at);
      for (int64_t k = 0; k < order.count; ++k) to[k * to_step] = line.entries[k].index;
    }
  });
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
