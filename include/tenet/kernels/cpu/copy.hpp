// Copies between arrays of any strides and element types.
#pragma once

#include <tenet/kernels/cpu/pointwise.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

namespace detail {

// A 2-d piece whose rows are contiguous in the output and whose columns are (nearly) contiguous in the input, by
// square tiles: both sides then use whole cache lines.
template <int Size>
void transpose_tiles(int64_t rows, int64_t columns, char* out, int64_t out_stride, const char* in, int64_t row_stride,
                     int64_t column_stride) {
  constexpr int64_t tile = 128 / Size < 32 ? 128 / Size : 32;
  for (int64_t r = 0; r < rows; r += tile)
    for (int64_t c = 0; c < columns; c += tile)
      for (int64_t i = r; i < rows && i < r + tile; ++i) {
        char* to = out + (i * out_stride + c) * Size;
        const char* from = in + (i * row_stride + c * column_stride) * Size;
        const int64_t n = columns - c < tile ? columns - c : tile;
        for (int64_t j = 0; j < n; ++j) std::memcpy(to + j * Size, from + j * column_stride * Size, Size);
      }
}

inline void transpose(std::size_t size, int64_t rows, int64_t columns, char* out, int64_t out_stride, const char* in,
                      int64_t row_stride, int64_t column_stride) {
  const auto tiles = size == 1   ? transpose_tiles<1>
                     : size == 2 ? transpose_tiles<2>
                     : size == 4 ? transpose_tiles<4>
                                 : transpose_tiles<8>;
  tiles(rows, columns, out, out_stride, in, row_stride, column_stride);
}

// Copies elements [begin, end) of the space without looking at them.
inline void copy_piece(const IndexSpace& space, std::size_t size, char* out, const char* in, int64_t begin,
                       int64_t end) {
  const int last = space.rank - 1;
  const int64_t to = space.strides[0][last], from = space.strides[1][last];
  int64_t index[max_rank];
  char buffer[map_block * 8];
  for (int64_t i = begin, n; i < end; i += n) {
    space.locate(i, index);
    n = space.inner() - index[last];
    if (to == 1 && from == 1 && n * int64_t(size) >= 64) {
      n = n < end - i ? n : end - i;
      std::memcpy(out + space.offset(0, index) * int64_t(size), in + space.offset(1, index) * int64_t(size),
                  std::size_t(n) * size);
    } else if (space.dense[0]) {
      n = end - i;
      gather(size, space, 1, index, n, in, out + i * int64_t(size));
    } else {
      n = end - i < map_block ? end - i : map_block;
      gather(size, space, 1, index, n, in, buffer);
      scatter(size, space, 0, index, n, out, buffer);
    }
  }
}

// The dimension along which the input is contiguous, when that is not the innermost and both are long; else -1.
inline int transposed_dimension(const IndexSpace& space) {
  const int last = space.rank - 1;
  if (space.strides[0][last] != 1 || space.strides[1][last] <= 1 || space.inner() < 8) return -1;
  for (int d = 0; d < last; ++d)
    if (space.strides[1][d] == 1 && space.shape[d] >= 8) return d;
  return -1;
}

TENET_NOINLINE inline void copy_units(int rank, const int64_t* shape, std::size_t size, char* out,
                                      const int64_t* out_strides, const char* in, const int64_t* in_strides) {
  const int64_t* const strides[] = {out_strides, in_strides};
  const IndexSpace space(rank, shape, 2, strides);
  const int d = transposed_dimension(space), last = space.rank - 1;
  if (d < 0) {
    return parallel_for(space.numel, map_grain,
                        [&](int64_t begin, int64_t end) { copy_piece(space, size, out, in, begin, end); });
  }
  constexpr int64_t strip = 64;  // rows of one transposition
  const int64_t rows = space.shape[d], strips = (rows - 1) / strip + 1, columns = space.inner();
  const int64_t planes = space.numel / (rows * columns), each = map_grain / (strip * columns);
  parallel_for(planes * strips, each > 0 ? each : 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      int64_t plane = t / strips, to = 0, from = 0;
      const int64_t row = t % strips * strip;
      for (int k = last - 1; k >= 0; --k) {
        if (k == d) continue;
        const int64_t outer = plane / space.shape[k], at = plane - outer * space.shape[k];
        to += at * space.strides[0][k];
        from += at * space.strides[1][k];
        plane = outer;
      }
      to += row * space.strides[0][d];
      from += row;
      transpose(size, rows - row < strip ? rows - row : strip, columns, out + to * int64_t(size), space.strides[0][d],
                in + from * int64_t(size), 1, space.strides[1][last]);
    }
  });
}

template <class To, class From>
struct Cast {
  static constexpr bool vectorize = FloatElement<To> && FloatElement<From>;
  TENET_ALWAYS_INLINE To operator()(From x) const { return cast<To>(x); }
};

}  // namespace detail

/// out[i] = cast<To>(in[i]) over the index space `shape`; the arrays do not overlap. Throws ShapeError when
/// rank > max_rank.
template <class To, class From>
void copy(int rank, const int64_t* shape, Strided<To> out, Strided<const From> in) {
  if constexpr (std::is_same_v<To, From>) {
    if (contiguous(rank, shape, out.strides) && contiguous(rank, shape, in.strides)) {
      const int64_t n = numel(rank, shape), grain = detail::map_grain * 4;
      return parallel_for(n, grain, [&](int64_t begin, int64_t end) {
        std::memcpy(static_cast<void*>(out.data + begin), in.data + begin, std::size_t(end - begin) * sizeof(To));
      });
    }
    detail::copy_units(rank, shape, sizeof(To), reinterpret_cast<char*>(out.data), out.strides,
                       reinterpret_cast<const char*>(in.data), in.strides);
  } else {
    map(detail::Cast<compute_t<To>, compute_t<From>>{}, rank, shape, out, in);
  }
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
