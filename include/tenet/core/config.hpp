// Names the configuration a translation unit is compiled in.
//
// Objects compiled with different flags may be linked into one program. The linker keeps one copy of
// each inline function, so a function compiled for AVX-512 could end up in a program for any machine.
// Hence the rule of this library: functions stand in `inline namespace TENET_CONFIG`, whose name tells
// the instruction set and OpenMP; types and process-wide state stand outside, and no flag changes their
// layout. Member functions of such types carry TENET_TAG, which puts the same name into their symbol.
#pragma once

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "tenet: NaN, infinity and the order of sums are part of its results: compile without -ffast-math"
#endif

#if defined(__AVX512F__)
#define TENET_CONFIG_ISA avx512
#elif defined(__AVX2__)
#define TENET_CONFIG_ISA avx2
#elif defined(__AVX__)
#define TENET_CONFIG_ISA avx
#elif defined(__SSE4_1__)
#define TENET_CONFIG_ISA sse4
#else
#define TENET_CONFIG_ISA base
#endif

#if defined(_OPENMP) && !defined(TENET_NO_OPENMP)
#define TENET_OPENMP 1
#define TENET_CONFIG_THREADS omp
#else
#define TENET_OPENMP 0
#define TENET_CONFIG_THREADS serial
#endif

#define TENET_JOIN_(a, b, c) a##b##_##c
#define TENET_JOIN(a, b, c) TENET_JOIN_(a, b, c)
#define TENET_STRING_(x) #x
#define TENET_STRING(x) TENET_STRING_(x)

#define TENET_CONFIG TENET_JOIN(cfg_, TENET_CONFIG_ISA, TENET_CONFIG_THREADS)
#define TENET_TAG __attribute__((abi_tag(TENET_STRING(TENET_CONFIG))))

// Error paths and slow paths: kept out of line, so that the hot path stays small.
#define TENET_COLD __attribute__((noinline, cold))
#define TENET_NOINLINE __attribute__((noinline))
#define TENET_ALWAYS_INLINE inline __attribute__((always_inline))
