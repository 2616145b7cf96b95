// Maximum over windows of images, and its gradient.
//
// The forward keeps, for each output, the place of the winner within its window (a "tap": ky * kw + kx), which is
// all that the backward needs.
#pragma once

#include <tenet/core/parallel.hpp>
#include <tenet/kernels/cpu/convert.hpp>

#include <algorithm>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Geometry of a pooling: `planes` images (batch times channels) of h x w give as many of oh x ow. Output (i, j) sees
/// the rows i * stride_h - pad_h + ky * dil_h, 0 <= ky < kh, and columns alike, as far as they are inside the image;
/// the caller sees to it that each window has an element inside.
struct Pool2dShape {
  int64_t planes, h, w, oh, ow, kh, kw, stride_h, stride_w, pad_h, pad_w, dil_h, dil_w;
};

namespace detail {

// The taps along one dimension that fall inside [0, size) for a window that starts at `start`.
struct TapRange {
  int64_t begin, end;
  TapRange(int64_t start, int64_t taps, int64_t dilation, int64_t size)
      : begin(start < 0 ? (-start + dilation - 1) / dilation : 0),
        end(start >= size ? 0 : std::min(taps, (size - 1 - start) / dilation + 1)) {}
};

// One image by the definition. NaN wins, the last of several; of equal values the first.
template <class T, class Tap>
void max_pool_plane(const Pool2dShape& s, const T* x, T* y, Tap* tap) {
  for (int64_t i = 0; i < s.oh; ++i) {
    const int64_t top = i * s.stride_h - s.pad_h;
    const TapRange rows(top, s.kh, s.dil_h, s.h);
    for (int64_t j = 0; j < s.ow; ++j) {
      const int64_t left = j * s.stride_w - s.pad_w;
      const TapRange columns(left, s.kw, s.dil_w, s.w);
      int64_t best = rows.begin * s.kw + columns.begin;
      T most = x[(top + rows.begin * s.dil_h) * s.w + left + columns.begin * s.dil_w];
      for (int64_t ky = rows.begin; ky < rows.end; ++ky)
        for (int64_t kx = columns.begin; kx < columns.end; ++kx) {
          const T v = x[(top + ky * s.dil_h) * s.w + left + kx * s.dil_w];
          if (v > most || v != v) {
            most = v;
            best = ky * s.kw + kx;
          }
        }
      y[i * s.ow + j] = most;
      if (tap) tap[i * s.ow + j] = Tap(best);
    }
  }
}

template <class T, class Tap>
void max_pool_plane_backward(const Pool2dShape& s, const T* dy, const Tap* tap, T* dx) {
  std::fill_n(dx, s.h * s.w, T(0));
  for (int64_t i = 0; i < s.oh; ++i)
    for (int64_t j = 0; j < s.ow; ++j) {
      const int64_t o = i * s.ow + j, t = int64_t(tap[o]), ky = t / s.kw, kx = t - ky * s.kw;
      T& to = dx[(i * s.stride_h - s.pad_h + ky * s.dil_h) * s.w + j * s.stride_w - s.pad_w + kx * s.dil_w];
      to = T(to + dy[o]);
    }
}

// Windows of 2 x 2 side by side, the usual case, go by vectors of W outputs; the last vector of a row may overlap
// the one before it.
inline bool is_two_by_two(const Pool2dShape& s) {
  return s.kh == 2 && s.kw == 2 && s.stride_h == 2 && s.stride_w == 2 && s.pad_h == 0 && s.pad_w == 0 && s.dil_h == 1 &&
         s.dil_w == 1 && 2 * s.oh <= s.h && 2 * s.ow <= s.w && s.ow >= 4;
}

typedef int32_t Places4 __attribute__((vector_size(16)));
typedef int32_t Places8 __attribute__((vector_size(32)));
typedef uint8_t Bytes4 __attribute__((vector_size(4)));
typedef uint8_t Bytes8 __attribute__((vector_size(8)));

// g++ 12 takes __builtin_convertvector outside templates only.
TENET_ALWAYS_INLINE void convert_places(Bytes4& to, const Places4& from) { to = __builtin_convertvector(from, Bytes4); }
TENET_ALWAYS_INLINE void convert_places(Bytes8& to, const Places8& from) { to = __builtin_convertvector(from, Bytes8); }
TENET_ALWAYS_INLINE void convert_places(Places4& to, const Bytes4& from) {
  to = __builtin_convertvector(from, Places4);
}
TENET_ALWAYS_INLINE void convert_places(Places8& to, const Bytes8& from) {
  to = __builtin_convertvector(from, Places8);
}

template <class Indices>
struct TwoByTwo;

template <int... I>
struct TwoByTwo<std::integer_sequence<int, I...>> {
  static constexpr int width = sizeof...(I);
  typedef float Values __attribute__((vector_size(4 * width)));
  typedef float Pairs __attribute__((vector_size(8 * width)));
  using Places = std::conditional_t<width == 4, Places4, Places8>;
  using Bytes = std::conditional_t<width == 4, Bytes4, Bytes8>;

  TENET_ALWAYS_INLINE static void forward(const float* top, const float* bottom, float* y, uint8_t* tap) {
    Pairs u, v;
    __builtin_memcpy(&u, top, sizeof u);
    __builtin_memcpy(&v, bottom, sizeof v);
    const Values right = __builtin_shufflevector(u, u, (2 * I + 1)...);
    const Values below = __builtin_shufflevector(v, v, (2 * I)...),
                 last = __builtin_shufflevector(v, v, (2 * I + 1)...);
    Values most = __builtin_shufflevector(u, u, (2 * I)...);
    const Places better1 = (right > most) | (right != right);
    most = better1 ? right : most;
    const Places better2 = (below > most) | (below != below);
    most = better2 ? below : most;
    const Places better3 = (last > most) | (last != last);
    most = better3 ? last : most;
    __builtin_memcpy(y, &most, sizeof most);
    if (tap) {
      Places place = better1 & 1;
      place = better2 ? Places{} + 2 : place;
      place = better3 ? Places{} + 3 : place;
      Bytes bytes;
      convert_places(bytes, place);
      __builtin_memcpy(tap, &bytes, sizeof bytes);
    }
  }

  TENET_ALWAYS_INLINE static void backward(const float* dy, const uint8_t* tap, float* top, float* bottom) {
    Values g;
    Bytes bytes;
    __builtin_memcpy(&g, dy, sizeof g);
    __builtin_memcpy(&bytes, tap, sizeof bytes);
    Places place;
    convert_places(place, bytes);
    const Values zero = {};
    const Values left = place == 0 ? g : zero, right = place == 1 ? g : zero;
    const Values below = place == 2 ? g : zero, last = place == 3 ? g : zero;
    const Pairs u =
        __builtin_shufflevector(left, right, (I % 2 * width + I / 2)..., (I % 2 * width + (I + width) / 2)...);
    const Pairs v =
        __builtin_shufflevector(below, last, (I % 2 * width + I / 2)..., (I % 2 * width + (I + width) / 2)...);
    __builtin_memcpy(top, &u, sizeof u);
    __builtin_memcpy(bottom, &v, sizeof v);
  }
};

using FourWindows = TwoByTwo<std::make_integer_sequence<int, 4>>;
using EightWindows = TwoByTwo<std::make_integer_sequence<int, 8>>;

// Planes [begin, end).
struct TwoByTwoForward {
  template <class Windows>
  TENET_ALWAYS_INLINE static void rows(const Pool2dShape& s, const float* x, float* y, uint8_t* tap, int64_t planes) {
    constexpr int64_t width = Windows::width;
    for (int64_t p = 0; p < planes; ++p, x += s.h * s.w)
      for (int64_t i = 0; i < s.oh; ++i, y += s.ow, tap += tap ? s.ow : 0) {
        const float *top = x + 2 * i * s.w, *bottom = top + s.w;
        int64_t j = 0;
        for (; j + width <= s.ow; j += width) Windows::forward(top + 2 * j, bottom + 2 * j, y + j, tap ? tap + j : tap);
        if (j == s.ow) continue;
        j = s.ow - width;
        Windows::forward(top + 2 * j, bottom + 2 * j, y + j, tap ? tap + j : tap);
      }
  }
  TENET_ALWAYS_INLINE static void run(const Pool2dShape* s, const float* x, float* y, uint8_t* tap, int64_t planes) {
    if (s->ow >= 8) {
      rows<EightWindows>(*s, x, y, tap, planes);
    } else {
      rows<FourWindows>(*s, x, y, tap, planes);
    }
  }
};

struct TwoByTwoBackward {
  template <class Windows>
  TENET_ALWAYS_INLINE static void rows(const Pool2dShape& s, const float* dy, const uint8_t* tap, float* dx,
                                       int64_t planes) {
    constexpr int64_t width = Windows::width;
    for (int64_t p = 0; p < planes; ++p, dx += s.h * s.w) {
      for (int64_t i = 0; i < s.oh; ++i, dy += s.ow, tap += s.ow) {
        float *top = dx + 2 * i * s.w, *bottom = top + s.w;
        int64_t j = 0;
        for (; j + width <= s.ow; j += width) Windows::backward(dy + j, tap + j, top + 2 * j, bottom + 2 * j);
        if (j < s.ow) {
          j = s.ow - width;
          Windows::backward(dy + j, tap + j, top + 2 * j, bottom + 2 * j);
        }
        for (int64_t k = 2 * s.ow; k < s.w; ++k) top[k] = bottom[k] = 0;
      }
      for (int64_t k = 2 * s.oh * s.w; k < s.h * s.w; ++k) dx[k] = 0;
    }
  }
  TENET_ALWAYS_INLINE static void run(const Pool2dShape* s, const float* dy, const uint8_t* tap, float* dx,
                                      int64_t planes) {
    if (s->ow >= 8) {
      rows<EightWindows>(*s, dy, tap, dx, planes);
    } else {
      rows<FourWindows>(*s, dy, tap, dx, planes);
    }
  }
};

// Planes for one piece of parallel work.
inline int64_t pool_grain(const Pool2dShape& s) {
  const int64_t work = s.h * s.w + s.oh * s.ow * s.kh * s.kw;
  return work < 65536 ? 65536 / std::max<int64_t>(work, 1) : 1;
}

}  // namespace detail

/// y[planes, oh, ow] = the maxima of the windows over x[planes, h, w], and tap[planes, oh, ow], unless null, the
/// place of each within its window. In a window with NaN the last NaN wins, else the first of the equal maxima.
/// Tap: uint8_t while kh * kw <= 256, else int32_t.
template <class T, class Tap>
void max_pool2d_forward(const Pool2dShape& s, const T* x, T* y, Tap* tap) {
  parallel_for(s.planes, detail::pool_grain(s), [&](int64_t begin, int64_t end) {
    const int64_t in = s.h * s.w, out = s.oh * s.ow;
    if constexpr (std::is_same_v<T, float> && std::is_same_v<Tap, uint8_t>) {
      if (detail::is_two_by_two(s)) {
        return vectorized<detail::TwoByTwoForward>(&s, x + begin * in, y + begin * out, tap ? tap + begin * out : tap,
                                                   end - begin);
      }
    }
    for (int64_t p = begin; p < end; ++p) detail::max_pool_plane(s, x + p * in, y + p * out, tap ? tap + p * out : tap);
  });
}

/// dx[planes, h, w] = the gradient dy[planes, oh, ow] taken to the winners that max_pool2d_forward named in `tap`;
/// zero elsewhere.
template <class T, class Tap>
void max_pool2d_backward(const Pool2dShape& s, const T* dy, const Tap* tap, T* dx) {
  parallel_for(s.planes, detail::pool_grain(s), [&](int64_t begin, int64_t end) {
    const int64_t in = s.h * s.w, out = s.oh * s.ow;
    if constexpr (std::is_same_v<T, float> && std::is_same_v<Tap, uint8_t>) {
      if (detail::is_two_by_two(s)) {
        return vectorized<detail::TwoByTwoBackward>(&s, dy + begin * out, tap + begin * out, dx + begin * in,
                                                    end - begin);
      }
    }
    for (int64_t p = begin; p < end; ++p) detail::max_pool_plane_backward(s, dy + p * out, tap + p * out, dx + p * in);
  });
}

/// y[planes, oh, ow] = the elements of x[planes, h, w] at the winners that max_pool2d_forward named in `tap`.
template <class T, class Tap>
void max_pool2d_gather(const Pool2dShape& s, const T* x, const Tap* tap, T* y) {
  parallel_for(s.planes, detail::pool_grain(s), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * s.oh * s.ow; i < end * s.oh * s.ow; ++i) {
      const int64_t plane = i / (s.oh * s.ow), row = i / s.ow % s.oh, column = i % s.ow;
      const int64_t at_row = row * s.stride_h - s.pad_h + tap[i] / s.kw * s.dil_h;
      const int64_t at_column = column * s.stride_w - s.pad_w + tap[i] % s.kw * s.dil_w;
      y[i] = x[(plane * s.h + at_row) * s.w + at_column];
    }
  });
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
