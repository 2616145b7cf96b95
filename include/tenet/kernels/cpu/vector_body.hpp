// Vectors of the instruction set being compiled: load, widen, store, transpose, sum. Included by for_each_isa.hpp.
#include <tenet/core/config.hpp>

#ifdef TENET_KERNEL_NAMESPACE

// Widening as text: the built-in functions have other names and types in each compiler, and GCC would widen the halves
// of a vector one by one.
#if TENET_X86 && (TENET_KERNEL_BYTES == 32 || (TENET_KERNEL_BYTES == 64 && !defined(TENET_WIDE_VECTORS_ON_AVX2)))
#define TENET_WIDENING_INSTRUCTIONS 1
#else
#define TENET_WIDENING_INSTRUCTIONS 0
#endif

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace TENET_KERNEL_NAMESPACE {

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(TENET_KERNEL_BYTES)));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
inline constexpr int lanes = int(TENET_KERNEL_BYTES / sizeof(T));

// Heights of tiles that are compiled, as bits (height - 1): 2 vectors a row, and both operands, fit the registers. Few,
// where they are large: the compiler's time is the user's.
inline constexpr unsigned tile_heights = TENET_KERNEL_REGISTERS == 32 ? 0b10000010101001
                                         : TENET_KERNEL_BYTES == 16   ? 0b1001
                                                                      : 0b111011;

template <class T>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<T> load(const T* p) {
  Vector<T> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// Makes the compiler hold v in a register: GCC likes to load it again for every use.
template <class T>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE void hold([[maybe_unused]] Vector<T>& v) {
#if TENET_X86 && !defined(TENET_WIDE_VECTORS_ON_AVX2)
  asm("" : "+v"(v));
#endif
}

template <class T>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE void store(T* p, const Vector<T>& v) {
  __builtin_memcpy(p, &v, sizeof v);
}

// As many narrower elements as a vector of T has, wherever they lie.
template <class T, class Narrow>
struct NarrowVectorOf {
  typedef Narrow type __attribute__((vector_size(lanes<T> * sizeof(Narrow)), aligned(1), may_alias));
};

// A vector of To from consecutive elements From.
template <class To, class From>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<To> load_widened(const void* p) {
  const auto& in = *static_cast<const typename NarrowVectorOf<To, From>::type*>(p);
#if TENET_WIDENING_INSTRUCTIONS
  Vector<To> v;
  if constexpr (sizeof(From) == 2) asm("vpmovzxwd {%1, %0|%0, %1}" : "=v"(v) : "m"(in));
  else if constexpr (sizeof(To) == 2 && std::is_signed_v<From>) asm("vpmovsxbw {%1, %0|%0, %1}" : "=v"(v) : "m"(in));
  else if constexpr (sizeof(To) == 2) asm("vpmovzxbw {%1, %0|%0, %1}" : "=v"(v) : "m"(in));
  else if constexpr (std::is_signed_v<From>) asm("vpmovsxbd {%1, %0|%0, %1}" : "=v"(v) : "m"(in));
  else asm("vpmovzxbd {%1, %0|%0, %1}" : "=v"(v) : "m"(in));
  return v;
#else
  return __builtin_convertvector(in, Vector<To>);
#endif
}

// The numbers that 16 bits stand for.
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<float> bfloat16_to_float(const Vector<std::uint32_t>& bits) {
  return reinterpret_cast<Vector<float>>(bits << 16);
}
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<float> load_half(const half* p) {
#if TENET_WIDENING_INSTRUCTIONS
  Vector<float> v;
  const auto& in = *reinterpret_cast<const typename NarrowVectorOf<float, std::uint16_t>::type*>(p);
  asm("vcvtph2ps {%1, %0|%0, %1}" : "=v"(v) : "m"(in));
  return v;
#else
  using Bits = Vector<std::uint32_t>;
  const Bits bits = load_widened<std::uint32_t, std::uint16_t>(p);
  const Bits magnitude = bits & 0x7fffu, sign = (bits & 0x8000u) << 16;
  const Bits small = reinterpret_cast<Bits>(magnitude < 0x400u), huge = reinterpret_cast<Bits>(magnitude > 0x7bffu);
  const Bits normal = (magnitude << 13) + (112u << 23);
  // Denormal: 2^-14 is added and taken away.
  const Vector<float> denormal = reinterpret_cast<Vector<float>>((magnitude << 13) + (113u << 23)) - 0x1p-14f;
  return reinterpret_cast<Vector<float>>((reinterpret_cast<Bits>(denormal) & small) | (normal & ~small) |
                                         (huge & 0x7f800000u) | sign);
#endif
}

// Within each 16 bytes: alternates blocks of `block` lanes of a and b, from their lower (hi = 0) or upper halves.
template <class T, int block, int hi, int... lane>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<T> interleave(const Vector<T>& a, const Vector<T>& b,
                                                             std::integer_sequence<int, lane...>) {
  constexpr int unit = int(16 / sizeof(T)), w = lanes<T>;
  return __builtin_shufflevector(a, b,
                                 (lane % unit / block % 2 * w + lane / unit * unit +
                                  (lane % unit / block / 2 + hi * (unit / (2 * block))) * block + lane % block)...);
}

// Blocks of `block` lanes: the even (odd = 0) or odd ones of a, each followed by its neighbour in b.
template <class T, int block, int odd, int... lane>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<T> exchange(const Vector<T>& a, const Vector<T>& b,
                                                           std::integer_sequence<int, lane...>) {
  constexpr int w = lanes<T>;
  return __builtin_shufflevector(a, b, ((lane & block ? w + lane - block : lane) + odd * block)...);
}

// Transposes the square v[lanes][lanes].
template <class T>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE void transpose(Vector<T>* v) {
  constexpr int w = lanes<T>, unit = int(16 / sizeof(T));
  constexpr std::make_integer_sequence<int, w> all{};
  if constexpr (unit == 4) {
#pragma GCC unroll 4
    for (int i = 0; i < w; i += 4) {
      const Vector<T> a = interleave<T, 1, 0>(v[i], v[i + 1], all), b = interleave<T, 1, 1>(v[i], v[i + 1], all);
      const Vector<T> c = interleave<T, 1, 0>(v[i + 2], v[i + 3], all),
                      d = interleave<T, 1, 1>(v[i + 2], v[i + 3], all);
      v[i] = interleave<T, 2, 0>(a, c, all);
      v[i + 1] = interleave<T, 2, 1>(a, c, all);
      v[i + 2] = interleave<T, 2, 0>(b, d, all);
      v[i + 3] = interleave<T, 2, 1>(b, d, all);
    }
  } else {
#pragma GCC unroll 4
    for (int i = 0; i < w; i += 2) {
      const Vector<T> a = v[i], b = v[i + 1];
      v[i] = interleave<T, 1, 0>(a, b, all);
      v[i + 1] = interleave<T, 1, 1>(a, b, all);
    }
  }
  if constexpr (w > unit) {
#pragma GCC unroll 16
    for (int i = 0; i < w; ++i) {
      if (i & unit) continue;
      const Vector<T> a = v[i], b = v[i + unit];
      v[i] = exchange<T, unit, 0>(a, b, all);
      v[i + unit] = exchange<T, unit, 1>(a, b, all);
    }
  }
  if constexpr (w > 2 * unit) {
#pragma GCC unroll 16
    for (int i = 0; i < w; ++i) {
      if (i & 2 * unit) continue;
      const Vector<T> a = v[i], b = v[i + 2 * unit];
      v[i] = exchange<T, 2 * unit, 0>(a, b, all);
      v[i + 2 * unit] = exchange<T, 2 * unit, 1>(a, b, all);
    }
  }
}

// Within each `span` lanes: the even (odd = 0) or odd blocks of `block` lanes of a, then those of b.
template <class T, int block, int span, int odd, int... lane>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<T> every_other(const Vector<T>& a, const Vector<T>& b,
                                                              std::integer_sequence<int, lane...>) {
  constexpr int w = lanes<T>, half = span / 2;
  return __builtin_shufflevector(
      a, b, (lane / span * span + lane % span / half * w + (lane % half / block * 2 + odd) * block + lane % block)...);
}

// Makes v[0] the sums over the lanes of v[0, count). Each step adds up neighbouring blocks, within 16 bytes first, and
// puts what is left of two vectors into one.
template <class T, int step = 1>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE void add_neighbours(Vector<T>* v, int64_t count) {
  constexpr int w = lanes<T>, unit = int(16 / sizeof(T));
  if constexpr (step < w) {
    constexpr int block = step < unit ? 1 : unit, span = step < unit ? unit : w;
    constexpr std::make_integer_sequence<int, w> all{};
#pragma GCC unroll 8
    for (int i = 0; i < w / (2 * step); ++i) {
      if (2 * i >= count) continue;
      const Vector<T> a = v[2 * i], b = v[2 * i + 1];
      v[i] = every_other<T, block, span, 0>(a, b, all) + every_other<T, block, span, 1>(a, b, all);
    }
    add_neighbours<T, 2 * step>(v, (count + 1) / 2);
  }
}

// The sums over the lanes of `count` vectors.
template <class T>
TENET_KERNEL_TARGET TENET_NOINLINE void sum_lanes(const T* vectors, int64_t count, T* out) {
  constexpr int w = lanes<T>;
  for (int64_t first = 0; first < count; first += w) {
    const int64_t left = count - first < w ? count - first : w;
    Vector<T> v[w];
#pragma GCC unroll 16
    for (int q = 0; q < w; ++q) v[q] = q < left ? load(vectors + (first + q) * w) : Vector<T>{};
    add_neighbours<T>(v, left);
    T sums[w];
    store(sums, v[0]);
    for (int64_t q = 0; q < left; ++q) out[first + q] = sums[q];
  }
}

}  // namespace TENET_KERNEL_NAMESPACE
}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#undef TENET_WIDENING_INSTRUCTIONS

#endif
