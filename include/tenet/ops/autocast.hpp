// What autocast puts in the place of operations of float: one table, which amp/autocast.hpp fills.
//
// The operations that it names ask state::autocast before they run. A program that makes no amp::autocast compiles
// none of the operations behind it.
#pragma once

#include <tenet/core/tensor.hpp>

namespace tenet {

struct Conv2dOptions;

/// The operations that run in low precision, on operands whose shapes were checked. A bias may be undefined.
struct AutocastPolicy {
  Tensor<float> (*matmul)(const Tensor<float>& a, const Tensor<float>& b);  ///< two matrices, or two batches of them
  Tensor<float> (*linear)(const Tensor<float>& x, const Tensor<float>& weight, const Tensor<float>& bias);
  Tensor<float> (*conv2d)(const Tensor<float>& x, const Tensor<float>& weight, const Tensor<float>& bias,
                          const Conv2dOptions& options);
};

namespace state {
inline constinit thread_local const AutocastPolicy* autocast = nullptr;  // a new thread starts without
}

}  // namespace tenet
