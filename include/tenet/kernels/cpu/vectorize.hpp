// Compiles one loop for every instruction set and runs the one for this machine.
//
// A kernel is a struct with a static `run(args...)` marked TENET_ALWAYS_INLINE whose loops carry TENET_LOOP.
// `vectorized<Kernel>(args...)` puts it into one leaf function for each instruction set, where the compiler
// vectorizes it under any flags. Products and sums are not contracted to fused ones there, so that an element's
// result depends on neither its place in a vector nor the instruction set, unless the kernel says
// `static constexpr bool fused = true`. One that collects lanes in an array, which is to stay in registers, says
// `static constexpr bool unrolls = true`: it takes the compiler longer. For clang, functions with such expressions
// begin with TENET_NO_CONTRACTION or TENET_MAY_CONTRACT.
#pragma once

#include <tenet/kernels/cpu/isa.hpp>

#if defined(__clang__)
#define TENET_LEAF __attribute__((noinline, flatten))
#define TENET_SPARE_LEAF TENET_LEAF
#define TENET_UNROLLED_LEAF TENET_LEAF
#define TENET_FUSED_LEAF TENET_LEAF
#define TENET_NO_CONTRACTION _Pragma("clang fp contract(off)")
#define TENET_MAY_CONTRACT _Pragma("clang fp contract(fast)")
#define TENET_LOOP _Pragma("clang loop vectorize(assume_safety) interleave(enable)")
// A functor that calls a library cannot be vectorized: no reason to warn.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#else
// Partial redundancy elimination would give each special value of a function its own path through the next one.
#define TENET_LEAF_OPTIONS "no-math-errno", "no-trapping-math", "no-tree-pre"
#define TENET_LEAF                  \
  __attribute__((noinline, flatten, \
                 optimize("O2", "vect-cost-model=dynamic", "unswitch-loops", TENET_LEAF_OPTIONS, "fp-contract=off")))
#define TENET_UNROLLED_LEAF __attribute__((noinline, flatten, optimize("O3", TENET_LEAF_OPTIONS, "fp-contract=off")))
#define TENET_FUSED_LEAF __attribute__((noinline, flatten, optimize("O3", TENET_LEAF_OPTIONS, "fp-contract=fast")))
#define TENET_SPARE_LEAF __attribute__((noinline, flatten, optimize("O2", TENET_LEAF_OPTIONS, "fp-contract=off")))
#define TENET_NO_CONTRACTION
#define TENET_MAY_CONTRACT
#define TENET_LOOP _Pragma("GCC ivdep")
#endif

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {
namespace detail {

// g++ gives a function without floating-point code of its own the floating-point options of what it inlines, in place
// of those that TENET_LEAF asks for. So each leaf has some, though no instruction comes of it.
#if TENET_X86 && !defined(__clang__)
#define TENET_FLOATING_POINT \
  float own;                 \
  asm volatile("" : "=x"(own));
#else
#define TENET_FLOATING_POINT
#endif

#define TENET_RUN_AS(name, ...)       \
  template <class Kernel, class... A> \
  __VA_ARGS__ void name(A... args) {  \
    TENET_FLOATING_POINT              \
    Kernel::run(args...);             \
  }
TENET_RUN_AS(run_baseline, TENET_UNROLLED_LEAF)
// The baseline of a kernel that has better ones: it is seldom run, and costs every program time to compile.
TENET_RUN_AS(run_spare, TENET_SPARE_LEAF)
TENET_RUN_AS(run_avx2, TENET_LEAF TENET_TARGET_AVX2)
TENET_RUN_AS(run_avx512, TENET_LEAF TENET_TARGET_AVX512)
TENET_RUN_AS(run_avx2_unrolled, TENET_UNROLLED_LEAF TENET_TARGET_AVX2)
TENET_RUN_AS(run_avx512_unrolled, TENET_UNROLLED_LEAF TENET_TARGET_AVX512)
TENET_RUN_AS(run_avx2_fused, TENET_FUSED_LEAF TENET_TARGET_AVX2)
TENET_RUN_AS(run_avx512_fused, TENET_FUSED_LEAF TENET_TARGET_AVX512)
#undef TENET_RUN_AS

template <class Kernel>
concept Fused = requires {
  requires Kernel::fused;
};

template <class Kernel>
concept Unrolls = requires {
  requires Kernel::unrolls;
};

template <class Kernel>
inline constexpr Isa widest = [] {
  if constexpr (requires { Kernel::widest; }) return Kernel::widest;
  else return Isa::avx512;
}();

}  // namespace detail

/// Runs `Kernel::run(args...)`, compiled for the instruction set that isa() names. Arguments go by value. A kernel that
/// waits for memory rather than computes says `static constexpr Isa widest = Isa::avx2`, which saves compiling one
/// more.
template <class Kernel, class... A>
void vectorized(A... args) {
#if TENET_X86
  const Isa set = isa();
  if constexpr (detail::Fused<Kernel>) {
    if (set == Isa::avx512) return detail::run_avx512_fused<Kernel>(args...);
    if (set != Isa::baseline) return detail::run_avx2_fused<Kernel>(args...);
  } else if constexpr (detail::Unrolls<Kernel>) {
    if constexpr (detail::widest<Kernel> == Isa::avx512) {
      if (set == Isa::avx512) return detail::run_avx512_unrolled<Kernel>(args...);
    }
    if (set != Isa::baseline) return detail::run_avx2_unrolled<Kernel>(args...);
  } else {
    if constexpr (detail::widest<Kernel> == Isa::avx512) {
      if (set == Isa::avx512) return detail::run_avx512<Kernel>(args...);
    }
    if (set != Isa::baseline) return detail::run_avx2<Kernel>(args...);
  }
  detail::run_spare<Kernel>(args...);
#else
  detail::run_baseline<Kernel>(args...);
#endif
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet

#if defined(__clang__)
#pragma clang diagnostic pop
#endif
