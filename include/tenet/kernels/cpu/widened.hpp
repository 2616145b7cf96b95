// half and bfloat16 operands as float, and the results back: heavy kernels sum in float and round once.
#pragma once

#include <tenet/core/parallel.hpp>
#include <tenet/kernels/cpu/convert.hpp>
#include <tenet/kernels/cpu/gemm_reference.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Converts `count` contiguous elements on several threads.
template <class To, class From>
void convert_all(int64_t count, To* out, const From* in) {
  parallel_for(count, int64_t{1} << 16,
               [&](int64_t begin, int64_t end) { convert(end - begin, out + begin, in + begin); });
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
