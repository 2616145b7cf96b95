// Batch normalization: sums over the channels of contiguous arrays [outer, channels, inner] of float or double, and the
// maps whose factors depend on the channel.
#pragma once

#include <tenet/kernels/cpu/reduce.hpp>

#include <algorithm>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// The sizes of an array whose elements belong to channels.
struct ChannelShape {
  int64_t outer, channels, inner;
  /// Elements of one channel.
  int64_t count() const { return outer * inner; }
};

/// Sums over the elements of a channel: of dy, and of dy times the deviation from the channel's mean.
template <class T>
struct ChannelSums {
  T sum, dot;
};

namespace detail {

inline constexpr int64_t channel_run = 32;       // neighbours of one channel that are worth a loop of their own
inline constexpr int64_t channel_piece = 8192;   // elements of such runs that are summed before states are merged
inline constexpr int64_t channel_block = 4096;   // elements of one run that stay in the first-level cache
inline constexpr int64_t channel_rows = 128;     // rows of a piece where runs are shorter
inline constexpr int64_t channel_columns = 512;  // columns of such a piece

// The columns of a matrix: their means, and their sums of squared deviations from them. The deviations from the first
// row are summed, so that a large mean does not cancel: Chan, Golub, LeVeque, "Algorithms for computing the sample
// variance", 1983.
template <class T>
struct ColumnMoments {
  static constexpr Isa widest = Isa::avx2;
  TENET_ALWAYS_INLINE static void run(int64_t rows, int64_t columns, int64_t stride, const T* x, T* mean,
                                      T* deviation) {
    TENET_NO_CONTRACTION
    TENET_LOOP
    for (int64_t j = 0; j < columns; ++j) mean[j] = deviation[j] = 0;
    for (int64_t r = 1; r < rows; ++r) {
      const T* row = x + r * stride;
      TENET_LOOP
      for (int64_t j = 0; j < columns; ++j) {
        const T d = row[j] - x[j];
        mean[j] += d;
        deviation[j] += d * d;
      }
    }
    const T over = 1 / T(rows);
    TENET_LOOP
    for (int64_t j = 0; j < columns; ++j) {
      const T shift = mean[j] * over, left = deviation[j] - shift * mean[j];
      deviation[j] = left < 0 ? T(0) : left;
      mean[j] = x[j] + shift;
    }
  }
};

template <class T>
struct ColumnSums {
  static constexpr Isa widest = Isa::avx2;
  TENET_ALWAYS_INLINE static void run(int64_t rows, int64_t columns, int64_t stride, const T* x, const T* mean,
                                      const T* dy, T* sum, T* dot) {
    TENET_NO_CONTRACTION
    TENET_LOOP
    for (int64_t j = 0; j < columns; ++j) sum[j] = dot[j] = 0;
    for (int64_t r = 0; r < rows; ++r, x += stride, dy += stride) {
      TENET_LOOP
      for (int64_t j = 0; j < columns; ++j) {
        sum[j] += dy[j];
        dot[j] += dy[j] * (x[j] - mean[j]);
      }
    }
  }
};

template <class T>
struct RunSums {
  static constexpr bool unrolls = true;
  static constexpr Isa widest = Isa::avx2;
  TENET_ALWAYS_INLINE static void run(int64_t n, const T* x, T mean, const T* dy, ChannelSums<T>* out) {
    TENET_NO_CONTRACTION
    T sum[row_lanes] = {}, dot[row_lanes] = {};
    int64_t i = 0;
    for (; i + row_lanes <= n; i += row_lanes) {
      TENET_LOOP
      for (int j = 0; j < row_lanes; ++j) {
        sum[j] += dy[i + j];
        dot[j] += dy[i + j] * (x[i + j] - mean);
      }
    }
    for (int j = 0; i + j < n; ++j) {
      sum[j] += dy[i + j];
      dot[j] += dy[i + j] * (x[i + j] - mean);
    }
    merge_lanes<row_lanes>(Plus{}, sum);
    merge_lanes<row_lanes>(Plus{}, dot);
    *out = {sum[0], dot[0]};
  }
};

// What reduce_channels() computes: the state of a run of elements of one channel, that of equally long columns of one
// channel, and the columns' own.
template <class T>
struct MomentsOf : Var {
  using State = Moments<T>;
  const T* x;

  State of_run(int64_t at, int64_t n, int64_t) const { return block(n, x + at, 0); }
  void of_columns(int64_t at, int64_t rows, int64_t columns, int64_t stride, const ChannelShape&, T* mean,
                  T* deviation) const {
    vectorized<ColumnMoments<T>>(rows, columns, stride, x + at, mean, deviation);
  }
  State join(int64_t rows, int64_t n, const T* mean, const T* deviation) const {
    const State means = block(n, mean, 0);
    return {T(rows * n), means.mean, row_reduce(Sum{}, n, deviation) + T(rows) * means.deviation};
  }
};

template <class T>
struct SumsOf {
  using State = ChannelSums<T>;
  const T *x, *mean, *dy;

  template <class>
  static State identity() {
    return {0, 0};
  }
  static State merge(const State& a, const State& b) { return {a.sum + b.sum, a.dot + b.dot}; }
  State of_run(int64_t at, int64_t n, int64_t channel) const {
    State s;
    vectorized<RunSums<T>>(n, x + at, mean[channel], dy + at, &s);
    return s;
  }
  void of_columns(int64_t at, int64_t rows, int64_t columns, int64_t stride, const ChannelShape& s, T* sum,
                  T* dot) const {
    T means[channel_columns];
    for (int64_t j = 0; j < columns; ++j) means[j] = mean[(at + j) / s.inner % s.channels];
    vectorized<ColumnSums<T>>(rows, columns, stride, x + at, static_cast<const T*>(means), dy + at, sum, dot);
  }
  State join(int64_t, int64_t n, const T* sum, const T* dot) const {
    return {row_reduce(Sum{}, n, sum), row_reduce(Sum{}, n, dot)};
  }
};

// out[channels]: the states of the channels, each merged pairwise from those of pieces that the shape alone determines.
template <class T, class R>
void reduce_channels(const ChannelShape& s, const R& r, typename R::State* out) {
  using State = typename R::State;
  std::fill_n(out, s.channels, R::template identity<T>());
  if (s.count() == 0 || s.channels == 0) return;
  const bool runs = s.inner >= channel_run;
  const int64_t step = runs ? std::max<int64_t>(1, channel_piece / s.inner) : channel_rows;
  const int64_t width = runs ? 1 : channel_columns / s.inner;
  const int64_t pieces = (s.outer - 1) / step + 1, strips = (s.channels - 1) / width + 1;
  const int64_t stride = s.channels * s.inner, work = std::min(step, s.outer) * width * s.inner;
  const States<State> states(pieces * s.channels);
  parallel_for(pieces * strips, work < map_grain ? map_grain / work : 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t / strips * step, rows = std::min(step, s.outer - first);
      const int64_t channel = t % strips * width, channels = std::min(width, s.channels - channel);
      const int64_t at = first * stride + channel * s.inner;
      State* to = states.get() + t / strips * s.channels + channel;
      if (runs) {
        *to = R::template identity<T>();
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t i = 0; i < s.inner; i += channel_block) {
            *to = r.merge(*to, r.of_run(at + row * stride + i, std::min(channel_block, s.inner - i), channel));
          }
        }
      } else {
        T a[channel_columns], b[channel_columns];
        r.of_columns(at, rows, channels * s.inner, stride, s, a, b);
        for (int64_t c = 0; c < channels; ++c) to[c] = r.join(rows, s.inner, a + c * s.inner, b + c * s.inner);
      }
    }
  });
  for (int64_t c = 0; c < s.channels; ++c) {
    merge_pairwise(r, states.get() + c, pieces, s.channels);
    out[c] = states.get()[c];
  }
}

template <class T>
struct ShiftScale {
  T mean, scale, shift;
  TENET_ALWAYS_INLINE T operator()(T x) const {
    TENET_NO_CONTRACTION
    return (x - mean) * scale + shift;
  }
};
struct ShiftScaleBy {
  template <class T>
  TENET_ALWAYS_INLINE T operator()(T x, T mean, T scale, T shift) const {
    TENET_NO_CONTRACTION
    return (x - mean) * scale + shift;
  }
};
template <class T>
struct BatchGradient {
  T mean, scale, slope, shift;
  TENET_ALWAYS_INLINE T operator()(T x, T dy) const {
    TENET_NO_CONTRACTION
    return (dy * scale - (x - mean) * slope) - shift;
  }
};
struct BatchGradientBy {
  template <class T>
  TENET_ALWAYS_INLINE T operator()(T x, T dy, T mean, T scale, T slope, T shift) const {
    TENET_NO_CONTRACTION
    return (dy * scale - (x - mean) * slope) - shift;
  }
};

// Calls plane(offset, channel) for each run of a channel.
template <class Plane>
void each_plane(const ChannelShape& s, const Plane& plane) {
  parallel_for(s.outer * s.channels, row_grain(s.inner), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) plane(p * s.inner, p % s.channels);
  });
}

// The map `f` over arrays `x` of the shape and arrays by channel, whose values are repeated for each column.
template <class T, class F, std::size_t N, std::size_t B>
void map_columns(const ChannelShape& s, F f, T* out, const T* const (&x)[N], const T* const (&by)[B]) {
  const int64_t columns = s.channels * s.inner;
  const States<T> repeated(columns * int64_t{B});
  for (std::size_t k = 0; k < B; ++k) {
    T* to = repeated.get() + int64_t(k) * columns;
    for (int64_t c = 0; c < s.channels; ++c) std::fill_n(to + c * s.inner, s.inner, by[k][c]);
  }
  const int64_t shape[] = {s.outer, columns}, strides[] = {columns, 1}, column[] = {0, 1};
  [&]<std::size_t... I, std::size_t... J>(std::index_sequence<I...>, std::index_sequence<J...>) {
    map(f, 2, shape, Strided<T>{out, strides}, Strided<const T>{x[I], strides}...,
        Strided<const T>{repeated.get() + int64_t(J) * columns, column}...);
  }
  (std::make_index_sequence<N>(), std::make_index_sequence<B>());
}

}  // namespace detail

/// out[channels] = number, mean and sum of squared deviations of each channel's elements.
template <class T>
void channel_moments(const ChannelShape& s, const T* x, Moments<T>* out) {
  detail::reduce_channels<T>(s, detail::MomentsOf<T>{{}, x}, out);
}

/// y = (x - mean) * scale + shift, by channel.
template <class T>
void channel_affine(const ChannelShape& s, const T* x, const T* mean, const T* scale, const T* shift, T* y) {
  if (s.inner < detail::channel_run) {
    return detail::map_columns<T>(s, detail::ShiftScaleBy{}, y, {x}, {mean, scale, shift});
  }
  detail::each_plane(s, [&](int64_t at, int64_t c) {
    map_contiguous(detail::ShiftScale<T>{mean[c], scale[c], shift[c]}, s.inner, y + at, x + at);
  });
}

/// out[channels] = sums of dy and of dy * (x - mean).
template <class T>
void channel_sums(const ChannelShape& s, const T* x, const T* mean, const T* dy, ChannelSums<T>* out) {
  detail::reduce_channels<T>(s, detail::SumsOf<T>{x, mean, dy}, out);
}

/// dx = dy * scale - (x - mean) * slope - shift, by channel.
template <class T>
void channel_gradient(const ChannelShape& s, const T* x, const T* dy, const T* mean, const T* scale, const T* slope,
                      const T* shift, T* dx) {
  if (s.inner < detail::channel_run) {
    return detail::map_columns<T>(s, detail::BatchGradientBy{}, dx, {x, dy}, {mean, scale, slope, shift});
  }
  detail::each_plane(s, [&](int64_t at, int64_t c) {
    map_contiguous(detail::BatchGradient<T>{mean[c], scale[c], slope[c], shift[c]}, s.inner, dx + at, x + at, dy + at);
  });
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
