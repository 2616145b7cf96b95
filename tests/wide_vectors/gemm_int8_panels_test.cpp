// The tests of 8-bit products again, with the 64-byte kernels compiled for AVX2: their logic is then proven on machines
// without AVX-512 as well.
#define TENET_WIDE_VECTORS_ON_AVX2
#pragma GCC diagnostic ignored "-Wpsabi"

#include "kernels/gemm_int8_panels_test.cpp"
