// Maximum over windows of images, and its gradient.
//
// The forward keeps, for each output, the place of the winner within its window (a "tap": ky * kw + kx), which is
// all that the backward needs. A tap takes a byte, or four where windows have more than 256 elements (tap_size()).
#pragma once

#include <tenet/core/parallel.hpp>
#include <tenet/kernels/cpu/convert.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

#if TENET_X86
#include <emmintrin.h>
#endif

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Geometry of a pooling: `planes` images (batch times channels) of h x w give as many of oh x ow. Output (i, j) sees
/// the rows i * stride_h - pad_h + ky * dil_h, 0 <= ky < kh, and columns alike, as far as they are inside the image;
/// the caller sees to it that each window has an element inside.
struct Pool2dShape {
  int64_t planes, h, w, oh, ow, kh, kw, stride_h, stride_w, pad_h, pad_w, dil_h, dil_w;
};

/// Bytes of a tap.
inline int64_t tap_size(const Pool2dShape& s) { return s.kh * s.kw <= 256 ? 1 : 4; }

namespace detail {

inline int64_t tap_at(const uint8_t* taps, int64_t size, int64_t i) {
  if (size == 1) return taps[i];
  int32_t tap;
  std::memcpy(&tap, taps + 4 * i, sizeof tap);
  return tap;
}

// The taps along one dimension that fall inside [0, size) for a window that starts at `start`.
struct TapRange {
  int64_t begin, end;
  TapRange(int64_t start, int64_t taps, int64_t dilation, int64_t size)
      : begin(start < 0 ? (-start + dilation - 1) / dilation : 0),
        end(start >= size ? 0 : std::min(taps, (size - 1 - start) / dilation + 1)) {}
};

// One image by the definition. NaN wins, the last of several; of equal values the first.
template <class T>
void max_pool_plane(const Pool2dShape& s, const T* x, T* y, uint8_t* taps) {
  const int64_t size = tap_size(s);
  for (int64_t i = 0; i < s.oh; ++i) {
    const int64_t top = i * s.stride_h - s.pad_h;
    const TapRange rows(top, s.kh, s.dil_h, s.h);
    for (int64_t j = 0; j < s.ow; ++j) {
      const int64_t left = j * s.stride_w - s.pad_w;
      const TapRange columns(left, s.kw, s.dil_w, s.w);
      int32_t best = int32_t(rows.begin * s.kw + columns.begin);
      T most = x[(top + rows.begin * s.dil_h) * s.w + left + columns.begin * s.dil_w];
      for (int64_t ky = rows.begin; ky < rows.end; ++ky)
        for (int64_t kx = columns.begin; kx < columns.end; ++kx) {
          const T v = x[(top + ky * s.dil_h) * s.w + left + kx * s.dil_w];
          if (v > most || v != v) {
            most = v;
            best = int32_t(ky * s.kw + kx);
          }
        }
      y[i * s.ow + j] = most;
      if (!taps) continue;
      if (size == 1) taps[i * s.ow + j] = uint8_t(best);
      else std::memcpy(taps + 4 * (i * s.ow + j), &best, sizeof best);
    }
  }
}

template <class T>
void max_pool_plane_backward(const Pool2dShape& s, const T* dy, const uint8_t* taps, T* dx) {
  const int64_t size = tap_size(s);
  std::fill_n(dx, s.h * s.w, T(0));
  for (int64_t i = 0; i < s.oh; ++i)
    for (int64_t j = 0; j < s.ow; ++j) {
      const int64_t o = i * s.ow + j, t = tap_at(taps, size, o), ky = t / s.kw, kx = t - ky * s.kw;
      T& to = dx[(i * s.stride_h - s.pad_h + ky * s.dil_h) * s.w + j * s.stride_w - s.pad_w + kx * s.dil_w];
      to = T(to + dy[o]);
    }
}

// Windows of 2 x 2 side by side, the usual case, go by vectors of outputs; the last vector of a row may overlap the one
// before it.
inline bool is_two_by_two(const Pool2dShape& s) {
  return s.kh == 2 && s.kw == 2 && s.stride_h == 2 && s.stride_w == 2 && s.pad_h == 0 && s.pad_w == 0 && s.dil_h == 1 &&
         s.dil_w == 1 && 2 * s.oh <= s.h && 2 * s.ow <= s.w && s.ow >= 4;
}

typedef int32_t Places4 __attribute__((vector_size(16)));
typedef int32_t Places8 __attribute__((vector_size(32)));

// Winners as numbers to bytes and back: g++ 12 does not vectorize the conversion.
#if TENET_X86
TENET_ALWAYS_INLINE __m128i pack_places(__m128i low, __m128i high) {
  const __m128i words = _mm_packs_epi32(low, high);
  return _mm_packus_epi16(words, words);
}
TENET_ALWAYS_INLINE void store_places(uint8_t* to, const Places4& from) {
  const __m128i bytes = pack_places(__m128i(from), __m128i(from));
  __builtin_memcpy(to, &bytes, 4);
}
TENET_ALWAYS_INLINE void store_places(uint8_t* to, const Places8& from) {
  const Places4 low = __builtin_shufflevector(from, from, 0, 1, 2, 3),
                high = __builtin_shufflevector(from, from, 4, 5, 6, 7);
  const __m128i bytes = pack_places(__m128i(low), __m128i(high));
  __builtin_memcpy(to, &bytes, 8);
}
TENET_ALWAYS_INLINE void load_places(Places4& to, const uint8_t* from) {
  int32_t bytes;
  __builtin_memcpy(&bytes, from, 4);
  const __m128i zero = _mm_setzero_si128(), words = _mm_unpacklo_epi8(_mm_cvtsi32_si128(bytes), zero);
  to = Places4(_mm_unpacklo_epi16(words, zero));
}
TENET_ALWAYS_INLINE void load_places(Places8& to, const uint8_t* from) {
  const __m128i zero = _mm_setzero_si128();
  const __m128i words = _mm_unpacklo_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)), zero);
  const Places4 low = Places4(_mm_unpacklo_epi16(words, zero)), high = Places4(_mm_unpackhi_epi16(words, zero));
  to = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}
#else
template <class Places>
void store_places(uint8_t* to, const Places& from) {
  for (int i = 0; i < int(sizeof(Places) / 4); ++i) to[i] = uint8_t(from[i]);
}
template <class Places>
void load_places(Places& to, const uint8_t* from) {
  for (int i = 0; i < int(sizeof(Places) / 4); ++i) to[i] = from[i];
}
#endif

template <class Indices>
struct TwoByTwo;

// Within, outputs stand in the order that shuffles inside of 16-byte lanes make: element i of a vector is output
// (i % 4 / 2) * width / 2 + i / 4 * 2 + i % 2.
template <int... I>
struct TwoByTwo<std::integer_sequence<int, I...>> {
  static constexpr int width = sizeof...(I);
  typedef float Values __attribute__((vector_size(4 * width)));
  using Places = std::conditional_t<width == 4, Places4, Places8>;

  static constexpr int column(int i, int odd) { return i % 4 / 2 * width + i / 4 * 4 + i % 2 * 2 + odd; }
  static constexpr int output(int i) { return i % 4 / 2 * (width / 2) + i / 4 * 2 + i % 2; }
  static constexpr int element(int o) { return o % (width / 2) / 2 * 4 + o / (width / 2) * 2 + o % 2; }
  static constexpr int zipped(int i, int second) { return i % 2 * width + i / 4 * 4 + i % 4 / 2 + 2 * second; }

  TENET_ALWAYS_INLINE static void forward(const float* top, const float* bottom, float* y, uint8_t* tap) {
    Values u0, u1, v0, v1;
    __builtin_memcpy(&u0, top, sizeof u0);
    __builtin_memcpy(&u1, top + width, sizeof u1);
    __builtin_memcpy(&v0, bottom, sizeof v0);
    __builtin_memcpy(&v1, bottom + width, sizeof v1);
    const Values right = __builtin_shufflevector(u0, u1, column(I, 1)...);
    const Values below = __builtin_shufflevector(v0, v1, column(I, 0)...);
    const Values last = __builtin_shufflevector(v0, v1, column(I, 1)...);
    Values most = __builtin_shufflevector(u0, u1, column(I, 0)...);
    const Places better1 = (right > most) | (right != right);
    most = better1 ? right : most;
    const Places better2 = (below > most) | (below != below);
    most = better2 ? below : most;
    const Places better3 = (last > most) | (last != last);
    most = better3 ? last : most;
    most = __builtin_shufflevector(most, most, element(I)...);
    __builtin_memcpy(y, &most, sizeof most);
    if (tap) {
      Places place = better1 & 1;
      place = better2 ? Places{} + 2 : place;
      place = better3 ? Places{} + 3 : place;
      place = __builtin_shufflevector(place, place, element(I)...);
      store_places(tap, place);
    }
  }

  // Puts the values of two neighbouring columns side by side.
  TENET_ALWAYS_INLINE static void zip(const Values& left, const Values& right, float* to) {
    const Values u = __builtin_shufflevector(left, right, zipped(I, 0)...);
    const Values v = __builtin_shufflevector(left, right, zipped(I, 1)...);
    __builtin_memcpy(to, &u, sizeof u);
    __builtin_memcpy(to + width, &v, sizeof v);
  }

  TENET_ALWAYS_INLINE static void backward(const float* dy, const uint8_t* tap, float* top, float* bottom) {
    const Values zero = {};
    Values g;
    Places place;
    __builtin_memcpy(&g, dy, sizeof g);
    load_places(place, tap);
    g = __builtin_shufflevector(g, g, output(I)...);
    place = __builtin_shufflevector(place, place, output(I)...);
    zip(place == 0 ? g : zero, place == 1 ? g : zero, top);
    zip(place == 2 ? g : zero, place == 3 ? g : zero, bottom);
  }
};

using FourWindows = TwoByTwo<std::make_integer_sequence<int, 4>>;
using EightWindows = TwoByTwo<std::make_integer_sequence<int, 8>>;

// Calls f(first output, row of it) for all vectors of an image's outputs.
template <int64_t Width, class F>
TENET_ALWAYS_INLINE void each_windows(const Pool2dShape& s, const F& f) {
  for (int64_t i = 0; i < s.oh; ++i) {
    int64_t j = 0;
    for (; j + Width <= s.ow; j += Width) f(i, j);
    if (j < s.ow) f(i, s.ow - Width);
  }
}

template <class Windows>
struct TwoByTwoForward {
  TENET_ALWAYS_INLINE static void run(const Pool2dShape* shape, const float* x, float* y, uint8_t* tap,
                                      int64_t planes) {
    const Pool2dShape s = *shape;
    for (int64_t p = 0; p < planes; ++p, x += s.h * s.w, y += s.oh * s.ow, tap += tap ? s.oh * s.ow : 0) {
      each_windows<Windows::width>(
          s, [=](int64_t i, int64_t j) __attribute__((always_inline)) {
            const float* top = x + 2 * (i * s.w + j);
            Windows::forward(top, top + s.w, y + i * s.ow + j, tap ? tap + i * s.ow + j : nullptr);
          });
    }
  }
};

template <class Windows>
struct TwoByTwoBackward {
  TENET_ALWAYS_INLINE static void run(const Pool2dShape* shape, const float* dy, const uint8_t* tap, float* dx,
                                      int64_t planes) {
    const Pool2dShape s = *shape;
    const bool whole = 2 * s.ow == s.w && 2 * s.oh == s.h;
    for (int64_t p = 0; p < planes; ++p, dx += s.h * s.w, dy += s.oh * s.ow, tap += s.oh * s.ow) {
      if (!whole) std::memset(dx, 0, std::size_t(s.h * s.w) * sizeof(float));
      each_windows<Windows::width>(
          s, [=](int64_t i, int64_t j) __attribute__((always_inline)) {
            float* top = dx + 2 * (i * s.w + j);
            Windows::backward(dy + i * s.ow + j, tap + i * s.ow + j, top, top + s.w);
          });
    }
  }
};

// Vectors of 32 bytes only where the processor has them: g++ would take them apart.
template <template <class> class Kernel, class... A>
void two_by_two(const Pool2dShape& s, A... args) {
#if TENET_X86
  if (s.ow >= 8 && isa() != Isa::baseline) return run_avx2<Kernel<EightWindows>>(&s, args...);
#endif
  run_baseline<Kernel<FourWindows>>(&s, args...);
}

// The maxima of bytes, without their places.
template <class Indices>
struct TwoByTwoBytes;

template <int... I>
struct TwoByTwoBytes<std::integer_sequence<int, I...>> {
  static constexpr int width = sizeof...(I);
  typedef uint8_t Bytes __attribute__((vector_size(2 * width)));
  typedef uint8_t Half __attribute__((vector_size(width)));

  TENET_ALWAYS_INLINE static void run(const Pool2dShape* shape, const uint8_t* x, uint8_t* y, int64_t planes) {
    const Pool2dShape s = *shape;
    for (int64_t p = 0; p < planes; ++p, x += s.h * s.w, y += s.oh * s.ow) {
      each_windows<width>(
          s, [=](int64_t i, int64_t j) __attribute__((always_inline)) {
            const uint8_t* top = x + 2 * (i * s.w + j);
            Bytes u, v;
            __builtin_memcpy(&u, top, sizeof u);
            __builtin_memcpy(&v, top + s.w, sizeof v);
            u = u > v ? u : v;
            const Half left = __builtin_shufflevector(u, u, (2 * I)...);
            const Half right = __builtin_shufflevector(u, u, (2 * I + 1)...);
            const Half most = left > right ? left : right;
            __builtin_memcpy(y + i * s.ow + j, &most, sizeof most);
          });
    }
  }
};

template <int width>
void two_by_two_bytes(const Pool2dShape& s, const uint8_t* x, uint8_t* y, int64_t planes) {
#if TENET_X86
  if (isa() != Isa::baseline) return run_avx2<TwoByTwoBytes<std::make_integer_sequence<int, width>>>(&s, x, y, planes);
#endif
  run_baseline<TwoByTwoBytes<std::make_integer_sequence<int, width>>>(&s, x, y, planes);
}

// Planes for one piece of parallel work.
inline int64_t pool_grain(const Pool2dShape& s) {
  const int64_t work = s.h * s.w + s.oh * s.ow * s.kh * s.kw;
  return work < 65536 ? 65536 / std::max<int64_t>(work, 1) : 1;
}

}  // namespace detail

/// y[planes, oh, ow] = the maxima of the windows over x[planes, h, w], and taps[planes, oh, ow], unless null, the
/// place of each within its window. In a window with NaN the last NaN wins, else the first of the equal maxima.
template <class T>
void max_pool2d_forward(const Pool2dShape& s, const T* x, T* y, uint8_t* taps) {
  parallel_for(s.planes, detail::pool_grain(s), [&](int64_t begin, int64_t end) {
    const int64_t in = s.h * s.w, out = s.oh * s.ow;
    const int64_t size = taps ? tap_size(s) : 0;
    if constexpr (std::is_same_v<T, float>) {
      if (detail::is_two_by_two(s)) {
        return detail::two_by_two<detail::TwoByTwoForward>(s, x + begin * in, y + begin * out,
                                                           taps + begin * out * size, end - begin);
      }
    }
    if constexpr (std::is_same_v<T, uint8_t>) {
      if (!taps && detail::is_two_by_two(s)) {
        const auto run = s.ow >= 8 ? detail::two_by_two_bytes<8> : detail::two_by_two_bytes<4>;
        return run(s, x + begin * in, y + begin * out, end - begin);
      }
    }
    for (int64_t p = begin; p < end; ++p) {
      detail::max_pool_plane(s, x + p * in, y + p * out, taps + p * out * size);
    }
  });
}

/// dx[planes, h, w] = the gradient dy[planes, oh, ow] taken to the winners that max_pool2d_forward named in `taps`;
/// zero elsewhere.
template <class T>
void max_pool2d_backward(const Pool2dShape& s, const T* dy, const uint8_t* taps, T* dx) {
  parallel_for(s.planes, detail::pool_grain(s), [&](int64_t begin, int64_t end) {
    const int64_t in = s.h * s.w, out = s.oh * s.ow;
    if constexpr (std::is_same_v<T, float>) {
      if (detail::is_two_by_two(s)) {
        return detail::two_by_two<detail::TwoByTwoBackward>(s, dy + begin * out, taps + begin * out, dx + begin * in,
                                                            end - begin);
      }
    }
    for (int64_t p = begin; p < end; ++p) {
      detail::max_pool_plane_backward(s, dy + p * out, taps + p * out * tap_size(s), dx + p * in);
    }
  });
}

/// y[planes, oh, ow] = the elements of x[planes, h, w] at the winners that max_pool2d_forward named in `taps`.
template <class T>
void max_pool2d_gather(const Pool2dShape& s, const T* x, const uint8_t* taps, T* y) {
  parallel_for(s.planes, detail::pool_grain(s), [&](int64_t begin, int64_t end) {
    const int64_t size = tap_size(s);
    for (int64_t i = begin * s.oh * s.ow; i < end * s.oh * s.ow; ++i) {
      const int64_t plane = i / (s.oh * s.ow), row = i / s.ow % s.oh, column = i % s.ow;
      const int64_t tap = detail::tap_at(taps, size, i), ky = tap / s.kw, kx = tap % s.kw;
      const int64_t at_row = row * s.stride_h - s.pad_h + ky * s.dil_h;
      const int64_t at_column = column * s.stride_w - s.pad_w + kx * s.dil_w;
      y[i] = x[(plane * s.h + at_row) * s.w + at_column];
    }
  });
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
