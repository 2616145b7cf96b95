// Negative log-likelihood of log-probabilities [rows, classes] and class targets, its gradient, and the weight of all
// rows. Targets have to be valid (find_bad_target).
#pragma once

#include <tenet/kernels/cpu/cross_entropy.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// loss[r] = -w[t] x[r][t] with t the target of row r; 0 where it is ignored.
template <class T>
void nll(int64_t rows, int64_t n, const T* x, const CrossEntropyTargets<T>& targets, T* loss) {
  using C = compute_t<T>;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t t = targets.classes[r];
    if (t == targets.ignore_index) {
      loss[r] = T(0);
    } else {
      loss[r] = cast<T>(-cast<C>(x[r * n + t]) * (targets.weight ? cast<C>(targets.weight[t]) : C(1)));
    }
  }
}

/// dx[r][t] = -w[t] dloss[r * dloss_stride]; 0 elsewhere.
template <class T>
void nll_backward(int64_t rows, int64_t n, const CrossEntropyTargets<T>& targets, const T* dloss, int64_t dloss_stride,
                  T* dx) {
  using C = compute_t<T>;
  std::fill_n(dx, rows * n, T(0));
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t t = targets.classes[r];
    if (t == targets.ignore_index) continue;
    dx[r * n + t] = cast<T>(-cast<C>(dloss[r * dloss_stride]) * (targets.weight ? cast<C>(targets.weight[t]) : C(1)));
  }
}

/// The sum of w[t] over the rows that are not ignored.
template <class T>
double total_weight(int64_t rows, const CrossEntropyTargets<T>& targets) {
  double sum = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t t = targets.classes[r];
    if (t != targets.ignore_index) sum += targets.weight ? cast<double>(targets.weight[t]) : 1;
  }
  return sum;
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
