// Copies between arrays of any strides and element types.
#pragma once

#include <tenet/kernels/cpu/pointwise.hpp>

#include <cstring>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

namespace detail {

// Four by four elements of 4 bytes: the columns at `from`, `stride` bytes apart, become rows at `to`.
TENET_ALWAYS_INLINE void transpose_four(const char* from, int64_t from_stride, char* to, int64_t to_stride) {
  typedef int32_t Four __attribute__((vector_size(16)));
  Four a, b, c, d;
  std::memcpy(&a, from, 16);
  std::memcpy(&b, from + from_stride, 16);
  std::memcpy(&c, from + 2 * from_stride, 16);
  std::memcpy(&d, from + 3 * from_stride, 16);
  const Four ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
  b = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
  c = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5);
  d = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
  std::memcpy(to, &a, 16);
  std::memcpy(to + to_stride, &b, 16);
  std::memcpy(to + 2 * to_stride, &c, 16);
  std::memcpy(to + 3 * to_stride, &d, 16);
}

// out[r * out_stride + c] = in[r + c * in_stride] by square tiles, so that both sides use whole cache lines once.
inline void transpose(int64_t size, int64_t rows, int64_t columns, char* out, int64_t out_stride, const char* in,
                      int64_t in_stride) {
  constexpr int64_t tile = 16;
  char lines[tile * tile * 8];
  const int64_t line = tile * size;
  for (int64_t c = 0; c < columns; c += tile)
    for (int64_t r = 0; r < rows; r += tile) {
      const int64_t height = rows - r < tile ? rows - r : tile, width = columns - c < tile ? columns - c : tile;
      const char* from = in + (r + c * in_stride) * size;
      char* to = out + (r * out_stride + c) * size;
      if (size == 4 && height == tile && width == tile) {
        for (int64_t j = 0; j < tile; ++j) std::memcpy(lines + j * tile * 4, from + j * in_stride * 4, tile * 4);
        for (int64_t i = 0; i < tile; i += 4)
          for (int64_t j = 0; j < tile; j += 4)
            transpose_four(lines + (j * tile + i) * 4, tile * 4, to + (i * out_stride + j) * 4, out_stride * 4);
      } else {
        for (int64_t j = 0; j < width; ++j)
          std::memcpy(lines + j * line, from + j * in_stride * size, std::size_t(height * size));
        for (int64_t i = 0; i < height; ++i)
          copy_strided(size, width, lines + i * size, line, to + i * out_stride * size, size);
      }
    }
}

// Copies elements [begin, end) of the space without looking at them.
inline void copy_piece(const IndexSpace& space, int64_t size, char* out, const char* in, int64_t begin, int64_t end) {
  const int last = space.rank - 1;
  const int64_t to = space.strides[0][last], from = space.strides[1][last];
  int64_t index[max_rank];
  char buffer[map_block * 8];
  for (int64_t i = begin, n; i < end; i += n) {
    space.locate(i, index);
    n = space.inner() - index[last];
    if (to == 1 && from == 1 && n * size >= 64) {
      n = n < end - i ? n : end - i;
      std::memcpy(out + space.offset(0, index) * size, in + space.offset(1, index) * size, std::size_t(n * size));
    } else if (space.dense[0]) {
      n = end - i;
      gather(size, space, 1, i, n, in, out + i * size);
    } else {
      n = end - i < map_block ? end - i : map_block;
      gather(size, space, 1, i, n, in, buffer);
      scatter(size, space, 0, i, n, out, buffer);
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

// Elements of `size` bytes.
TENET_NOINLINE inline void copy_units(int rank, const int64_t* shape, int64_t size, char* out,
                                      const int64_t* out_strides, const char* in, const int64_t* in_strides) {
  if (contiguous(rank, shape, out_strides) && contiguous(rank, shape, in_strides)) {
    return parallel_for(numel(rank, shape), map_grain * 4, [&](int64_t begin, int64_t end) {
      std::memcpy(out + begin * size, in + begin * size, std::size_t((end - begin) * size));
    });
  }
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
      transpose(size, rows - row < strip ? rows - row : strip, columns, out + to * size, space.strides[0][d],
                in + from * size, space.strides[1][last]);
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
    detail::copy_units(rank, shape, int64_t(sizeof(To)), reinterpret_cast<char*>(out.data), out.strides,
                       reinterpret_cast<const char*>(in.data), in.strides);
  } else {
    map(detail::Cast<compute_t<To>, compute_t<From>>{}, rank, shape, out, in);
  }
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
