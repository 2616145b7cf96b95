// Includes the file TENET_KERNEL_FILE once for each instruction set, so that one source serves all of them.
//
// The file puts its functions into TENET_KERNEL_NAMESPACE, marks each with TENET_KERNEL_TARGET, computes on vectors of
// TENET_KERNEL_BYTES bytes, of which TENET_KERNEL_REGISTERS fit the registers.
// Templates cannot carry the target attribute of their instantiation, and inlining a function without the attribute
// would split its vectors first: hence the repeated inclusion.
//
// GCC compiles the kernels with optimization even in debug builds, where they would crawl.
#include <tenet/core/config.hpp>
#include <tenet/kernels/cpu/isa.hpp>

#ifdef TENET_KERNEL_FILE

#ifndef __clang__
#pragma GCC push_options
#pragma GCC optimize("O2", "fp-contract=fast")
#endif

#define TENET_KERNEL_NAMESPACE baseline
#define TENET_KERNEL_TARGET
#define TENET_KERNEL_BYTES 16
#define TENET_KERNEL_REGISTERS 16
#include TENET_KERNEL_FILE
#undef TENET_KERNEL_NAMESPACE
#undef TENET_KERNEL_TARGET
#undef TENET_KERNEL_BYTES
#undef TENET_KERNEL_REGISTERS

#if TENET_X86

#define TENET_KERNEL_NAMESPACE avx2
#define TENET_KERNEL_TARGET TENET_TARGET_AVX2
#define TENET_KERNEL_BYTES 32
#define TENET_KERNEL_REGISTERS 16
#include TENET_KERNEL_FILE
#undef TENET_KERNEL_NAMESPACE
#undef TENET_KERNEL_TARGET
#undef TENET_KERNEL_BYTES
#undef TENET_KERNEL_REGISTERS

#define TENET_KERNEL_NAMESPACE avx512
#define TENET_KERNEL_TARGET TENET_TARGET_AVX512
#define TENET_KERNEL_BYTES 64
#define TENET_KERNEL_REGISTERS 32
#include TENET_KERNEL_FILE
#undef TENET_KERNEL_NAMESPACE
#undef TENET_KERNEL_TARGET
#undef TENET_KERNEL_BYTES
#undef TENET_KERNEL_REGISTERS

#endif

#ifndef __clang__
#pragma GCC pop_options
#endif

#endif
