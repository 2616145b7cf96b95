// The instruction set that kernels are chosen by at run time, whatever flags the program is compiled with.
#pragma once

#include <tenet/core/error.hpp>

#include <atomic>
#include <cstdlib>
#include <string_view>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <cpuid.h>
#define TENET_X86 1
#define TENET_TARGET_AVX2 __attribute__((target("avx2,fma")))
#ifdef TENET_WIDE_VECTORS_ON_AVX2  // for tests: the 64-byte kernels run on machines that only have AVX2
#define TENET_TARGET_AVX512 TENET_TARGET_AVX2
#else
#define TENET_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#endif
#else
#define TENET_X86 0
#define TENET_TARGET_AVX2
#define TENET_TARGET_AVX512
#endif

namespace tenet {

namespace state {
inline constinit std::atomic<int> isa{-1};  // -1: not detected yet
inline constinit std::atomic<int> dots{-1};
}  // namespace state

inline namespace TENET_CONFIG {
namespace cpu {

/// Instruction sets with kernels of their own, each containing the ones before it.
enum class Isa { baseline, avx2, avx512 };

#if TENET_X86
namespace detail {

// Conversions of half; clang has no name for them in __builtin_cpu_supports.
inline bool has_f16c() {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

}  // namespace detail
#endif

/// The best set that this processor and its operating system offer.
inline Isa machine_isa() {
#if TENET_X86
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !detail::has_f16c()) return Isa::baseline;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? Isa::avx512 : Isa::avx2;
#else
  return Isa::baseline;
#endif
}

namespace detail {

TENET_COLD inline int detect_isa() {
  Isa best = machine_isa();
  if (const char* cap = std::getenv("TENET_ISA")) {
    const std::string_view name = cap;
    const Isa asked = name == "baseline" ? Isa::baseline : name == "avx2" ? Isa::avx2 : Isa::avx512;
    if (asked < best) best = asked;
  }
  state::isa.store(int(best), std::memory_order_relaxed);
  return int(best);
}

}  // namespace detail

/// The set kernels use: machine_isa(), capped by the environment variable TENET_ISA (baseline, avx2 or avx512).
inline Isa isa() {
  const int known = state::isa.load(std::memory_order_relaxed);
  return Isa(known < 0 ? detail::detect_isa() : known);
}

/// Makes kernels use `wanted`, or the best this machine has if that is less. For tests and measurements; process-wide.
inline void set_isa(Isa wanted) {
  const Isa best = machine_isa();
  state::isa.store(int(wanted < best ? wanted : best), std::memory_order_relaxed);
}

/// Instructions, beside the AVX-512 set, that add up products of small elements: AVX512_BF16 and AVX512_VNNI.
enum class Dots { bfloat16 = 1, int8 = 2 };

/// Those of this processor, as bits.
inline int machine_dots() {
#if TENET_X86 && defined(TENET_WIDE_VECTORS_ON_AVX2)
  return int(Dots::bfloat16) | int(Dots::int8);
#elif TENET_X86
  __builtin_cpu_init();
  return (__builtin_cpu_supports("avx512bf16") ? int(Dots::bfloat16) : 0) |
         (__builtin_cpu_supports("avx512vnni") ? int(Dots::int8) : 0);
#else
  return 0;
#endif
}

/// Whether kernels use `which`.
inline bool has_dots(Dots which) {
  if (isa() != Isa::avx512) return false;
  int known = state::dots.load(std::memory_order_relaxed);
  if (known < 0) state::dots.store(known = machine_dots(), std::memory_order_relaxed);
  return (known & int(which)) != 0;
}

/// Makes kernels use the bits `wanted`, as far as this machine has them. For tests and measurements; process-wide.
inline void set_dots(int wanted) { state::dots.store(wanted & machine_dots(), std::memory_order_relaxed); }

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
