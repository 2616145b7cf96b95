// Tensors of random numbers.
//
// Element i depends on the generator's state and on i only: the same numbers for any number of threads.
// Each function takes its numbers from the default generator unless given another. The in-place forms are
// not recorded by autograd: they start a history.
#pragma once

#include <tenet/core/factories.hpp>
#include <tenet/core/generator.hpp>
#include <tenet/core/parallel.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace tenet {
inline namespace TENET_CONFIG {
namespace detail {

inline constexpr std::int64_t random_grain = std::int64_t{1} << 15;

/// The type random floats are computed in, and how many of them one block gives.
template <FloatElement T>
using uniform_t = accumulate_t<T>;
template <FloatElement T>
inline constexpr int per_block = std::is_same_v<T, double> ? 2 : 4;

/// The i-th number of a block in [0, 1), with as many bits as T holds: converting it to T does not round.
template <FloatElement T>
uniform_t<T> uniform(const RandomBlock& block, int i) {
  if constexpr (std::is_same_v<T, double>) {
    return double(block.word64(i) >> 11) * 0x1p-53;
  } else {
    constexpr int bits = std::numeric_limits<T>::digits;
    return float(block.word[i] >> (32 - bits)) * (1.0f / float(1 << bits));
  }
}

/// Numbers 2i and 2i + 1 of a block from the standard normal distribution (Box and Muller, A note on the
/// generation of random normal deviates, 1958).
template <class Real>
void normal_pair(const RandomBlock& block, int i, Real& first, Real& second) {
  Real u, v;  // u in (0, 1], v in [0, 1)
  if constexpr (std::is_same_v<Real, double>) {
    u = (double(block.word64(0) >> 11) + 0.5) * 0x1p-53;
    v = double(block.word64(1) >> 11) * 0x1p-53;
  } else {
    u = (float(block.word[2 * i]) + 0.5f) * 0x1p-32f;
    v = float(block.word[2 * i + 1] >> 8) * 0x1p-24f;
  }
  const Real radius = std::sqrt(Real(-2) * std::log(u)), angle = Real(2 * std::numbers::pi) * v;
  first = radius * std::cos(angle);
  second = radius * std::sin(angle);
}

/// The i-th (of two) whole number in [0, range) of the block at `counter`, each equally likely. The few draws
/// that would favour some numbers are repeated in the counter's high half: other elements do not shift.
inline std::uint64_t below(std::uint64_t range, const GeneratorState& at, std::uint64_t counter, int i) {
  const std::uint64_t unfair = (0 - range) % range;  // 2^64 mod range
  for (std::uint64_t attempt = 0;; ++attempt) {
    const std::uint64_t x = philox(at.seed, at.offset + counter, attempt).word64(i);
    if (x >= unfair) return x % range;
  }
}

/// Fills p[0, n): `make(block, out)` writes the N elements of a block.
template <int N, class T, class Make>
void fill_random(T* p, std::int64_t n, Generator& generator, const Make& make) {
  const GeneratorState at = generator.reserve(std::uint64_t(n / N + (n % N != 0)));
  parallel_for(n, random_grain, [&](std::int64_t begin, std::int64_t end) {
    constexpr int side_by_side = 4, step = side_by_side * N;
    RandomBlock blocks[side_by_side];
    T last[step];
    for (std::int64_t i = begin; i < end; i += step) {
      philox(at.seed, at.offset + std::uint64_t(i / N), 0, blocks);
      T* out = end - i >= step ? p + i : last;
      for (int b = 0; b < side_by_side; ++b) make(blocks[b], out + b * N);
      if (out == last) std::copy_n(last, end - i, p + i);
    }
  });
}

/// Throws unless `t` can be filled element by element, whatever it held before.
inline void check_fill(const char* op, const AnyTensor& t) {
  if (!t.device().is_cpu()) throw DeviceError(text({op, ": the tensor is on ", t.device(), ", not on the CPU"}));
  if (!t.is_leaf()) throw Error(text({op, ": expected a leaf, got the output of an operation"}));
  for (int d = 0; d < t.dim(); ++d) {
    if (t.shape()[d] > 1 && t.strides()[d] == 0) {
      throw Error(text({op, ": several elements share memory, shape ", t.shape(), " with strides ", t.strides()}));
    }
  }
}

/// fill_random for any strides, in row-major order; counts as a change in place.
template <int N, class T, class Make>
void fill_random(const Tensor<T>& t, Generator& generator, const Make& make) {
  ++t.impl()->storage->version;
  if (t.is_contiguous()) return fill_random<N>(t.data(), t.numel(), generator, make);
  const Tensor<T> row_major = empty<T>(t.shape());
  fill_random<N>(row_major.data(), t.numel(), generator, make);
  std::int64_t index[max_rank] = {};
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    std::int64_t at = 0;
    for (int d = 0; d < t.dim(); ++d) at += index[d] * t.strides()[d];
    t.data()[at] = row_major.data()[i];
    for (int d = t.dim(); d-- > 0 && ++index[d] == t.shape()[d];) index[d] = 0;
  }
}

/// The largest T below x.
template <FloatElement T>
T next_below(T x) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
  const Bits bits = std::bit_cast<Bits>(x);
  if (x == T(0)) return -std::numeric_limits<T>::denorm_min();
  return std::bit_cast<T>(Bits(x > T(0) ? bits - 1 : bits + 1));
}

}  // namespace detail

/// Fills `t`, of any shape and strides, with numbers in [low, high), each equally likely (all `low` if the
/// bounds are equal). Throws Error unless low <= high and their distance is finite in T, if `t` is not a
/// leaf, or if its elements share memory.
template <FloatElement T>
Tensor<T> uniform_(const Tensor<T>& t, double low = 0, double high = 1, Generator& generator = default_generator()) {
  detail::check_fill("uniform_", t);
  const T lowest = T(low), limit = T(high);
  const double from = double(lowest), range = double(limit) - from;
  if (!(range >= 0) || double(T(range)) > double(std::numeric_limits<T>::max())) {
    throw Error(text({"uniform_: expected low <= high at a finite distance, got ", low, " and ", high}));
  }
  const T highest = range > 0 ? detail::next_below(limit) : lowest;
  detail::fill_random<detail::per_block<T>>(t, generator, [=](const RandomBlock& block, T* out) {
    for (int j = 0; j < detail::per_block<T>; ++j) {
      const T x = T(from + range * double(detail::uniform<T>(block, j)));
      out[j] = x < limit ? x : highest;  // rounding may have reached the limit
    }
  });
  return t;
}

/// Fills `t`, of any shape and strides, from the normal distribution. Throws Error unless std >= 0 and both
/// parameters are finite, if `t` is not a leaf, or if its elements share memory.
template <FloatElement T>
Tensor<T> normal_(const Tensor<T>& t, double mean = 0, double std = 1, Generator& generator = default_generator()) {
  detail::check_fill("normal_", t);
  if (!(std >= 0) || !std::isfinite(std) || !std::isfinite(mean)) {
    throw Error(text({"normal_: expected a finite mean and std >= 0, got ", mean, " and ", std}));
  }
  using Real = detail::uniform_t<T>;
  detail::fill_random<detail::per_block<T>>(t, generator,
                                            [m = Real(mean), s = Real(std)](const RandomBlock& block, T* out) {
                                              for (int j = 0; j < detail::per_block<T>; j += 2) {
                                                Real a, b;
                                                detail::normal_pair(block, j / 2, a, b);
                                                out[j] = T(m + s * a);
                                                out[j + 1] = T(m + s * b);
                                              }
                                            });
  return t;
}

/// Numbers in [0, 1), each equally likely.
template <FloatElement T = float>
Tensor<T> rand(const Shape& shape, Generator& generator = default_generator()) {
  return uniform_(empty<T>(shape), 0, 1, generator);
}

/// Numbers from the normal distribution of mean 0 and standard deviation 1.
template <FloatElement T = float>
Tensor<T> randn(const Shape& shape, Generator& generator = default_generator()) {
  return normal_(empty<T>(shape), 0, 1, generator);
}

template <TensorLike X>
tensor_t<X> rand_like(const X& x, Generator& generator = default_generator()) {
  return rand<element_t<X>>(x.shape(), generator);
}
template <TensorLike X>
tensor_t<X> randn_like(const X& x, Generator& generator = default_generator()) {
  return randn<element_t<X>>(x.shape(), generator);
}

/// Whole numbers in [low, high), each equally likely. Throws Error if there are none or T does not hold them all.
template <Element T = std::int64_t>
Tensor<T> randint(std::int64_t low, std::int64_t high, const Shape& shape, Generator& generator = default_generator()) {
  if (low >= high) throw Error(text({"randint: expected low < high, got ", low, " and ", high}));
  constexpr int bits = std::numeric_limits<T>::digits;
  constexpr std::int64_t most =
      bits < 63 ? (std::int64_t{1} << bits) - !FloatElement<T> : std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t least = FloatElement<T> ? -most : std::int64_t(std::numeric_limits<T>::lowest());
  if (low < least || high - 1 > most) {
    throw Error(text({"randint: ", name(dtype_of<T>), " does not hold [", low, ", ", high, ")"}));
  }
  const std::uint64_t range = std::uint64_t(high) - std::uint64_t(low);
  Tensor<T> t = empty<T>(shape);
  T* p = t.data();
  const GeneratorState at = generator.reserve(std::uint64_t(t.numel() / 2 + t.numel() % 2));
  parallel_for(t.numel(), detail::random_grain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      p[i] = T(std::int64_t(std::uint64_t(low) + detail::below(range, at, std::uint64_t(i / 2), int(i % 2))));
    }
  });
  return t;
}
/// Whole numbers in [0, high).
template <Element T = std::int64_t>
Tensor<T> randint(std::int64_t high, const Shape& shape, Generator& generator = default_generator()) {
  return randint<T>(0, high, shape, generator);
}

/// 0, 1, ..., n - 1 in random order, each order equally likely (the shuffle of Fisher and Yates). Throws
/// ShapeError if n is negative, Error if T does not hold the numbers.
template <IntElement T = std::int64_t>
Tensor<T> randperm(std::int64_t n, Generator& generator = default_generator()) {
  if (n > 0 && std::uint64_t(n - 1) > std::uint64_t(std::numeric_limits<T>::max())) {
    throw Error(text({"randperm: ", name(dtype_of<T>), " does not hold ", n - 1}));
  }
  Tensor<T> t = empty<T>({n});
  T* p = t.data();
  for (std::int64_t i = 0; i < n; ++i) p[i] = T(i);
  const GeneratorState at = generator.reserve(std::uint64_t(n / 2 + n % 2));
  for (std::int64_t i = n - 1; i > 0; --i) {
    std::swap(p[i], p[detail::below(std::uint64_t(i) + 1, at, std::uint64_t(i / 2), int(i % 2))]);
  }
  return t;
}

/// 1 with probability `p` (to 2^-32), else 0. Throws Error unless p is in [0, 1].
template <Element T = float>
Tensor<T> bernoulli(double p, const Shape& shape, Generator& generator = default_generator()) {
  if (!(p >= 0 && p <= 1)) throw Error(text({"bernoulli: expected p in [0, 1], got ", p}));
  const Tensor<T> t = empty<T>(shape);
  const auto limit = std::uint64_t(p * 0x1p32 + 0.5);
  detail::fill_random<4>(t.data(), t.numel(), generator, [=](const RandomBlock& block, T* out) {
    // The sign of the difference: a branch would be guessed wrong as often as not.
    for (int j = 0; j < 4; ++j) out[j] = T(float(std::int32_t((block.word[j] - limit) >> 63)));
  });
  return t;
}

}  // namespace TENET_CONFIG
}  // namespace tenet
