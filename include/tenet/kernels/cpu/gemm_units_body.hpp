// Units of products in vectors: how they are read and multiplied. Included by for_each_isa.hpp.
#ifdef TENET_KERNEL_NAMESPACE

// The instructions stand as text: their built-in functions have other names and types in each compiler. Where tests
// compile the widest kernels for machines without them, they are spelled out.
#if TENET_X86 && TENET_KERNEL_BYTES == 64 && !defined(TENET_WIDE_VECTORS_ON_AVX2)
#define TENET_DOT_INSTRUCTIONS 1
#else
#define TENET_DOT_INSTRUCTIONS 0
#endif

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace TENET_KERNEL_NAMESPACE {

template <class V>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE V load_vector(const void* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

template <class V>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE void store_vector(void* p, const V& v) {
  __builtin_memcpy(p, &v, sizeof v);
}

// A lane for each element, from consecutive ones: its number for units of one element, else its bits.
template <class U, class S>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<unit_lane_t<U>> load_elements(const S* p) {
  if constexpr (std::is_same_v<U, S>) {
    return load(p);
  } else if constexpr (std::is_same_v<S, half>) {
    return load_half(p);
  } else if constexpr (std::is_same_v<S, bfloat16>) {
    const auto bits = load_widened<std::uint32_t, std::uint16_t>(p);
    if constexpr (std::is_floating_point_v<U>) return bfloat16_to_float(bits);
    else return bits;
  } else {
    // Quads need the bits, pairs the sign too.
    using Bits = std::conditional_t<std::is_same_v<U, ShortPair>, S, uint8_t>;
    const auto bits = load_widened<std::uint32_t, Bits>(p);
    if constexpr (is_raised<U, S>) return bits ^ 0x80u;
    else if constexpr (std::is_same_v<U, ShortPair> && std::is_signed_v<S>) return bits & 0xffffu;
    else return bits;
  }
}

// A vector of units from consecutive elements.
template <class U, class S>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<unit_lane_t<U>> load_units(const S* p) {
  if constexpr (unit_depth<U> == 1) {
    return load_elements<U>(p);
  } else if constexpr (std::is_same_v<U, ShortPair>) {
    return reinterpret_cast<Vector<std::uint32_t>>(load_widened<std::int16_t, S>(p));
  } else {
    const auto units = load_vector<Vector<std::uint32_t>>(p);
    return is_raised<U, S> ? units ^ 0x80808080u : units;
  }
}

// A vector of units from rows that follow each other along k, of which there are `left`.
template <class U, class S>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE Vector<unit_lane_t<U>> load_columns(const S* p, int64_t row, int64_t left) {
  auto units = load_elements<U>(p);
  if constexpr ((unit_depth<U>) > 1) {
#pragma GCC unroll 4
    for (int e = 1; e < unit_depth<U>; ++e) {
      if (e < left) units |= load_elements<U>(p + e * row) << (32 / unit_depth<U> * e);
    }
  }
  return units;
}

// sum += products of the elements of a and b. A lane of a is a unit A, or a scalar one serves all lanes.
template <class A, class B>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE void add_products(Vector<unit_sum_t<A>>& sum, const Vector<unit_lane_t<A>>& a,
                                                          const Vector<unit_lane_t<B>>& b) {
  if constexpr (std::is_floating_point_v<A>) {
    sum += a * b;
  } else if constexpr (std::is_same_v<A, BfloatPair> && TENET_DOT_INSTRUCTIONS) {
    asm("vdpbf16ps {%2, %1, %0|%0, %1, %2}" : "+v"(sum) : "v"(a), "v"(b));
  } else if constexpr (is_bfloat16_pair<A>) {
    constexpr std::uint32_t upper = 0xffff0000u;
    sum += reinterpret_cast<Vector<float>>(a & upper) * reinterpret_cast<Vector<float>>(b & upper);
    sum += bfloat16_to_float(a) * bfloat16_to_float(b);
  } else if constexpr (std::is_same_v<A, ShortPair>) {
#if TENET_X86 && TENET_KERNEL_BYTES == 16
    using Shorts = Vector<std::int16_t>;
    sum += reinterpret_cast<Vector<std::uint32_t>>(
        __builtin_ia32_pmaddwd128(reinterpret_cast<Shorts>(a), reinterpret_cast<Shorts>(b)));
#elif TENET_X86 && TENET_KERNEL_BYTES == 32
    using Shorts = Vector<std::int16_t>;
    sum += reinterpret_cast<Vector<std::uint32_t>>(
        __builtin_ia32_pmaddwd256(reinterpret_cast<Shorts>(a), reinterpret_cast<Shorts>(b)));
#elif TENET_DOT_INSTRUCTIONS
    Vector<std::uint32_t> pairs;
    asm("vpmaddwd {%2, %1, %0|%0, %1, %2}" : "=v"(pairs) : "v"(a), "v"(b));
    sum += pairs;
#else
    const auto signed_a = reinterpret_cast<Vector<std::int32_t>>(a),
               signed_b = reinterpret_cast<Vector<std::int32_t>>(b);
    sum += reinterpret_cast<Vector<std::uint32_t>>((signed_a >> 16) * (signed_b >> 16));
    sum += reinterpret_cast<Vector<std::uint32_t>>((signed_a << 16 >> 16) * (signed_b << 16 >> 16));
#endif
  } else {
    // The instruction takes the unsigned operand first. It adds up without saturating.
    constexpr bool in_order = std::is_same_v<A, UnsignedQuad>;
    const Vector<std::uint32_t>&u = in_order ? a : b, &s = in_order ? b : a;
#if TENET_DOT_INSTRUCTIONS
    asm("vpdpbusd {%2, %1, %0|%0, %1, %2}" : "+v"(sum) : "v"(u), "v"(s));
#else
#pragma GCC unroll 4
    for (int e = 0; e < 4; ++e) {
      const auto last = reinterpret_cast<Vector<std::int32_t>>(s << (24 - 8 * e)) >> 24;
      sum += (u >> (8 * e) & 0xffu) * reinterpret_cast<Vector<std::uint32_t>>(last);
    }
#endif
  }
}
template <class A, class B>
TENET_KERNEL_TARGET TENET_ALWAYS_INLINE void add_scaled(Vector<unit_sum_t<A>>& sum, A a,
                                                        const Vector<unit_lane_t<B>>& b) {
  if constexpr (std::is_floating_point_v<A>) sum += b * a;
  else add_products<A, B>(sum, Vector<std::uint32_t>{} + a.bits, b);
}

}  // namespace TENET_KERNEL_NAMESPACE
}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#undef TENET_DOT_INSTRUCTIONS

#endif
