// Vectors for the kernels of each instruction set: baseline::Vector<T>, avx2::Vector<T>, avx512::Vector<T>.
#pragma once

#include <tenet/core/dtype.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

#define TENET_KERNEL_FILE <tenet/kernels/cpu/vector_body.hpp>
#include <tenet/kernels/cpu/for_each_isa.hpp>
#undef TENET_KERNEL_FILE
