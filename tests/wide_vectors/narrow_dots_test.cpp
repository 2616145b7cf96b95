// The tests of products with matrices of few bits again, with the 64-byte kernels compiled for AVX2.
#define TENET_WIDE_VECTORS_ON_AVX2
#pragma GCC diagnostic ignored "-Wpsabi"

#include "kernels/narrow_dots_test.cpp"
