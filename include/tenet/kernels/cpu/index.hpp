// Elements named by an index along one dimension: gather reads them, scatter writes or adds to them.
//
// The index is an array over the index space `shape`, of positions along dimension `dim` of the indexed array.
// They are not checked here, but by find_outside(). A position equal to `skip` names no element.
#pragma once

#include <tenet/core/parallel.hpp>
#include <tenet/kernels/cpu/index_space.hpp>
#include <tenet/kernels/cpu/integer.hpp>
#include <tenet/kernels/cpu/pointwise.hpp>
#include <tenet/kernels/cpu/vectorize.hpp>

#include <algorithm>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// An index over a space, and where its positions lead.
struct Positions {
  Strided<const int64_t> index;
  int dim;
  int64_t skip;  // -1, or what else is no position of the array: nothing is skipped
};

/// The first position outside [0, size), in the order of memory, that is not `*skip` (if given); null if there is
/// none.
inline const int64_t* find_outside(int rank, const int64_t* shape, Strided<const int64_t> index, int64_t size,
                                   const int64_t* skip) {
  if (numel(rank, shape) == 0) return nullptr;
  int64_t sizes[max_rank];  // each position once, however often it is repeated
  for (int d = 0; d < rank; ++d) sizes[d] = index.strides[d] == 0 ? 1 : shape[d];
  const IndexSpace space(rank, sizes, 1, &index.strides);
  const int64_t* found = nullptr;
  space.runs(0, 0, space.numel, [&](int64_t at, int64_t stride, int64_t n) {
    const int64_t* first = index.data + at;
    bool outside = false;
    for (int64_t i = 0; i < n; ++i) outside |= std::uint64_t(first[i * stride]) >= std::uint64_t(size);
    for (int64_t i = 0; i < n && outside && !found; ++i) {
      const int64_t* p = first + i * stride;
      if ((*p < 0 || *p >= size) && !(skip && *p == *skip)) found = p;
    }
  });
  return found;
}

/// index[i] where order[i] == kept[i], else -1: what was overwritten leads nowhere.
struct KeepLast {
  static constexpr bool vectorize = false;
  int64_t operator()(int64_t index, int64_t order, int64_t kept) const { return order == kept ? index : -1; }
};

/// Writes the coordinates of the true elements of a row-major array, one after the other, to `out`, if it is not
/// null. Returns their number.
inline int64_t locate_true(int rank, const int64_t* shape, const bool* in, int64_t* out) {
  const int64_t n = numel(rank, shape);
  int64_t at[max_rank] = {}, found = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (in[i]) {
      if (out) std::memcpy(out + found * rank, at, std::size_t(rank) * sizeof(int64_t));
      ++found;
    }
    for (int d = rank; d-- > 0 && ++at[d] == shape[d];) at[d] = 0;
  }
  return found;
}

namespace detail {

/// Elements of `Size` bytes are moved as they are.
template <int Size>
struct Assign {
  static constexpr int64_t size = Size;
  static void one(char* to, const char* from) { std::memcpy(to, from, Size); }
  static void row(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n) {
    if (to_step == Size && from_step == Size && n >= 8) {
      std::memcpy(to, from, std::size_t(n * Size));
    } else {
      for (int64_t i = 0; i < n; ++i) one(to + i * to_step, from + i * from_step);
    }
  }
};

template <class T>
struct AddRow {
  TENET_ALWAYS_INLINE static void run(T* to, const T* from, int64_t n) {
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) to[i] += from[i];
  }
};

template <class T>
struct AddTo {
  static constexpr int64_t size = sizeof(T);
  static void one(char* to, const char* from) {
    T& sum = *reinterpret_cast<T*>(to);
    sum = wrapping_add(sum, *reinterpret_cast<const T*>(from));
  }
  static void row(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n) {
    if constexpr (FloatElement<T>) {
      if (to_step == size && from_step == size && n >= 16) {
        return vectorized<AddRow<T>>(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), n);
      }
    }
    for (int64_t i = 0; i < n; ++i) one(to + i * to_step, from + i * from_step);
  }
};

/// Calls f(offsets, n) for the runs of elements [begin, end) along the innermost dimension, with the place of their
/// first elements in each of three arrays.
template <class F>
void each_run(const IndexSpace& space, int64_t begin, int64_t end, const F& f) {
  const int last = space.rank - 1;
  int64_t at[max_rank], offsets[3];
  space.locate(begin, at);
  for (int a = 0; a < 3; ++a) offsets[a] = space.offset(a, at);
  for (int64_t i = begin, n; i < end; i += n) {
    n = std::min(space.inner() - at[last], end - i);
    f(offsets, n);
    for (int a = 0; a < 3; ++a) offsets[a] -= at[last] * space.strides[a][last];
    at[last] = 0;
    for (int d = last - 1; d >= 0; --d) {
      const bool carries = ++at[d] == space.shape[d];
      if (carries) at[d] = 0;
      for (int a = 0; a < 3; ++a) offsets[a] += space.strides[a][d] * (carries ? 1 - space.shape[d] : 1);
      if (!carries) break;
    }
  }
}

/// Steps of a run of elements, in bytes; of the index, in positions.
struct Steps {
  int64_t out, in, index;
};

template <int Size>
void gather_run(char* out, const char* in, const int64_t* index, int64_t along, int64_t skip, Steps s, int64_t n) {
  if (s.index == 0 && *index != skip) {
    return Assign<Size>::row(out, s.out, in + *index * along, s.in, n);
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = index[i * s.index];
    if (at == skip) std::memset(out + i * s.out, 0, Size);
    else Assign<Size>::one(out + i * s.out, in + i * s.in + at * along);
  }
}

/// A block of `lines` lines of `n` elements each: along a line the index tells where elements go. For every target
/// the order is that of the line, whichever loop is the inner.
template <class Combine>
void scatter_block(char* out, const char* in, const int64_t* index, int64_t along, int64_t skip, Steps line,
                   int64_t lines, Steps element, int64_t n, bool lines_inside) {
  if (!lines_inside) {
    for (int64_t j = 0; j < lines; ++j) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = index[j * line.index + i * element.index];
        if (at != skip) Combine::one(out + j * line.out + at * along, in + j * line.in + i * element.in);
      }
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i, in += element.in, index += element.index) {
    if (line.index == 0) {
      if (*index != skip) Combine::row(out + *index * along, line.out, in, line.in, lines);
      continue;
    }
    for (int64_t j = 0; j < lines; ++j) {
      const int64_t at = index[j * line.index];
      if (at != skip) Combine::one(out + j * line.out + at * along, in + j * line.in);
    }
  }
}

template <class Combine>
void scatter(int rank, const int64_t* shape, char* out, const int64_t* out_strides, const char* in,
             const int64_t* in_strides, Positions to) {
  int64_t sizes[max_rank], steps[3][max_rank];  // without `dim`
  int kept = 0;
  for (int d = 0; d < rank; ++d) {
    if (d == to.dim) continue;
    sizes[kept] = shape[d];
    steps[0][kept] = out_strides[d];
    steps[1][kept] = in_strides[d];
    steps[2][kept++] = to.index.strides[d];
  }
  const int64_t* const operands[] = {steps[0], steps[1], steps[2]};
  const IndexSpace space(kept, sizes, 3, operands);
  const int last = space.rank - 1;
  const int64_t n = shape[to.dim], along = out_strides[to.dim] * Combine::size;
  const Steps line{space.strides[0][last] * Combine::size, space.strides[1][last] * Combine::size,
                   space.strides[2][last]};
  const Steps element{0, in_strides[to.dim] * Combine::size, to.index.strides[to.dim]};
  const bool lines_inside = space.inner() > 1 && line.in <= element.in;
  // A line goes to one piece whole: no two pieces write to the same target.
  const int64_t grain = std::max<int64_t>(lines_inside ? 64 : 1, map_grain / std::max<int64_t>(n, 1));
  parallel_for(space.numel, grain, [&](int64_t begin, int64_t end) {
    each_run(space, begin, end, [&](const int64_t* at, int64_t lines) {
      scatter_block<Combine>(out + at[0] * Combine::size, in + at[1] * Combine::size, to.index.data + at[2], along,
                             to.skip, line, lines, element, n, lines_inside);
    });
  });
}

template <int Size>
void gather(int rank, const int64_t* shape, char* out, const int64_t* out_strides, const char* in,
            const int64_t* in_strides, Positions from) {
  int64_t steps[max_rank];  // along `dim` the index moves
  for (int d = 0; d < rank; ++d) steps[d] = d == from.dim ? 0 : in_strides[d];
  const int64_t* const strides[] = {out_strides, steps, from.index.strides};
  const IndexSpace space(rank, shape, 3, strides);
  const int last = space.rank - 1;
  const int64_t along = in_strides[from.dim] * Size;
  const Steps run{space.strides[0][last] * Size, space.strides[1][last] * Size, space.strides[2][last]};
  parallel_for(space.numel, map_grain, [&](int64_t begin, int64_t end) {
    each_run(space, begin, end, [&](const int64_t* at, int64_t n) {
      gather_run<Size>(out + at[0] * Size, in + at[1] * Size, from.index.data + at[2], along, from.skip, run, n);
    });
  });
}

}  // namespace detail

/// out[p] = in[q] over the index space `shape`, q being p with index[p] as its coordinate along `dim`; 0 where that
/// is to be skipped. The arrays do not overlap.
template <class T>
void gather(int rank, const int64_t* shape, Strided<T> out, Strided<const T> in, Positions from) {
  detail::gather<sizeof(T)>(rank, shape, reinterpret_cast<char*>(out.data), out.strides,
                            reinterpret_cast<const char*>(in.data), in.strides, from);
}

/// out[q] = in[p], with q as in gather. Of several p that lead to one q the last along `dim` stays.
template <class T>
void scatter(int rank, const int64_t* shape, Strided<T> out, Strided<const T> in, Positions to) {
  detail::scatter<detail::Assign<sizeof(T)>>(rank, shape, reinterpret_cast<char*>(out.data), out.strides,
                                             reinterpret_cast<const char*>(in.data), in.strides, to);
}

/// out[q] += in[p], with q as in gather, in the order of p along `dim`: the same sums for any number of threads.
template <class T>
void scatter_add(int rank, const int64_t* shape, Strided<T> out, Strided<const T> in, Positions to) {
  detail::scatter<detail::AddTo<T>>(rank, shape, reinterpret_cast<char*>(out.data), out.strides,
                                    reinterpret_cast<const char*>(in.data), in.strides, to);
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
