// Softmax and its relatives over the rows of contiguous matrices [rows, n].
//
// The greatest element of a row is subtracted first, so that nothing overflows; as in IEEE arithmetic, a row with NaN
// or +inf, or of -inf alone, gives NaN (logsumexp: NaN, +inf and -inf).
#pragma once

#include <tenet/kernels/cpu/pointwise.hpp>
#include <tenet/kernels/cpu/reducers.hpp>
#include <tenet/kernels/cpu/rows.hpp>

#include <algorithm>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

namespace detail {

template <class C>
struct Scale {
  C factor;
  TENET_ALWAYS_INLINE C operator()(C x) const { return x * factor; }
};
template <class C>
struct MinusBoth {
  C first, second;
  TENET_ALWAYS_INLINE C operator()(C x) const { return (x - first) - second; }
};
template <class C>
struct TimesDifference {
  C shift;
  TENET_ALWAYS_INLINE C operator()(C y, C dy) const { return y * (dy - shift); }
};
template <class C>
struct MinusScaledExp {
  C factor;
  TENET_ALWAYS_INLINE C operator()(C y, C dy) const {
    TENET_NO_CONTRACTION
    return dy - math::exp(y) * factor;
  }
};
template <class C>
struct ScaledExp {
  C shift, factor;
  TENET_ALWAYS_INLINE C operator()(C x) const { return math::exp(x - shift) * factor; }
};

// Calls body(row, buffers for three arrays) for each row.
template <class T, class Body>
void each_row(int64_t rows, int64_t n, const Body& body) {
  if (n == 0) return;
  parallel_for(rows, row_grain(n), [&](int64_t begin, int64_t end) {
    Row<T> a(n), b(n), c(n);
    for (int64_t r = begin; r < end; ++r) body(r, a, b, c);
  });
}

}  // namespace detail

/// y = e^x / sum of e^x.
template <class T>
void softmax(int64_t rows, int64_t n, const T* x, T* y) {
  using C = compute_t<T>;
  detail::each_row<T>(rows, n, [&](int64_t r, auto& in, auto& out, auto&) {
    const C* row = in.read(x + r * n);
    C* to = out.write(y + r * n);
    const C sum = detail::row_exp(n, row, detail::row_reduce(Max{}, n, row), to);
    map_contiguous(detail::Scale<C>{1 / sum}, n, to, static_cast<const C*>(to));
    out.commit(y + r * n);
  });
}

/// y = x - log(sum of e^x).
template <class T>
void log_softmax(int64_t rows, int64_t n, const T* x, T* y) {
  using C = compute_t<T>;
  detail::each_row<T>(rows, n, [&](int64_t r, auto& in, auto& out, auto&) {
    const C* row = in.read(x + r * n);
    C* to = out.write(y + r * n);
    const C most = detail::row_reduce(Max{}, n, row), sum = detail::row_exp(n, row, most, static_cast<C*>(nullptr));
    map_contiguous(detail::MinusBoth<C>{most, math::log(sum)}, n, to, row);
    out.commit(y + r * n);
  });
}

/// y[rows] = log(sum of e^x); -inf for empty rows and rows of -inf.
template <class T>
void logsumexp(int64_t rows, int64_t n, const T* x, T* y) {
  using C = compute_t<T>;
  if (n == 0) std::fill_n(y, rows, T(-std::numeric_limits<float>::infinity()));
  detail::each_row<T>(rows, n, [&](int64_t r, auto& in, auto&, auto&) {
    const C* row = in.read(x + r * n);
    C most = detail::row_reduce(Max{}, n, row);
    if (most - most != 0) most = 0;  // infinite
    y[r] = cast<T>(most + math::log(detail::row_exp(n, row, most, static_cast<C*>(nullptr))));
  });
}

/// dx = y * (dy - sum of y * dy), y being the result of softmax.
template <class T>
void softmax_backward(int64_t rows, int64_t n, const T* y, const T* dy, T* dx) {
  using C = compute_t<T>;
  detail::each_row<T>(rows, n, [&](int64_t r, auto& a, auto& b, auto& out) {
    const C *value = a.read(y + r * n), *gradient = b.read(dy + r * n);
    const C shift = detail::row_dot(n, value, gradient);
    map_contiguous(detail::TimesDifference<C>{shift}, n, out.write(dx + r * n), value, gradient);
    out.commit(dx + r * n);
  });
}

/// dx = dy - e^y * sum of dy, y being the result of log_softmax.
template <class T>
void log_softmax_backward(int64_t rows, int64_t n, const T* y, const T* dy, T* dx) {
  using C = compute_t<T>;
  detail::each_row<T>(rows, n, [&](int64_t r, auto& a, auto& b, auto& out) {
    const C *value = a.read(y + r * n), *gradient = b.read(dy + r * n);
    const C factor = detail::row_reduce(Sum{}, n, gradient);
    map_contiguous(detail::MinusScaledExp<C>{factor}, n, out.write(dx + r * n), value, gradient);
    out.commit(dx + r * n);
  });
}

/// dx = e^(x - y) * dy, y[rows] being the result of logsumexp; 0 in rows of -inf.
template <class T>
void logsumexp_backward(int64_t rows, int64_t n, const T* x, const T* y, const T* dy, T* dx) {
  using C = compute_t<T>;
  detail::each_row<T>(rows, n, [&](int64_t r, auto& in, auto& out, auto&) {
    const C shift = cast<C>(y[r]);
    if (shift == -std::numeric_limits<C>::infinity()) return void(std::fill_n(dx + r * n, n, T(0)));
    map_contiguous(detail::ScaledExp<C>{shift, cast<C>(dy[r])}, n, out.write(dx + r * n), in.read(x + r * n));
    out.commit(dx + r * n);
  });
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
