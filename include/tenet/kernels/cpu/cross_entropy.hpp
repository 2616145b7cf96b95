// Cross-entropy of logits [rows, classes] and class targets, and its gradient, without softmax in between.
//
// With p = softmax(x), class weights w, target t and label smoothing e, the loss of a row is
//   (1 - e) w[t] (-log p[t]) + (e / classes) sum of w[c] (-log p[c]),
// and 0 in a row whose target is ignored, whatever its logits.
#pragma once

#include <tenet/kernels/cpu/softmax.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// What a cross-entropy is computed with.
template <class T>
struct CrossEntropyTargets {
  const int64_t* classes;     ///< one a row; in [0, n) or ignore_index
  const T* weight = nullptr;  ///< n class weights; null: all 1
  int64_t ignore_index = -100;
  double label_smoothing = 0;
};

/// The first row whose target is neither a class of [0, n) nor ignore_index; -1 when there is none.
inline int64_t find_bad_target(int64_t rows, int64_t n, const int64_t* classes, int64_t ignore_index) {
  for (int64_t r = 0; r < rows; ++r)
    if (classes[r] != ignore_index && (classes[r] < 0 || classes[r] >= n)) return r;
  return -1;
}

/// loss[rows] of logits x[rows, n]. Targets have to be valid (find_bad_target).
template <class T>
void cross_entropy(int64_t rows, int64_t n, const T* x, const CrossEntropyTargets<T>& targets, T* loss) {
  using C = compute_t<T>;
  const C smoothing = C(targets.label_smoothing), each = smoothing / C(n);
  detail::Row<T> weights(targets.weight ? n : 0);
  const C* weight = targets.weight ? weights.read(targets.weight) : nullptr;
  detail::each_row<T>(rows, n, [&](int64_t r, auto& in, auto&, auto&) {
    const int64_t t = targets.classes[r];
    if (t == targets.ignore_index) return void(loss[r] = T(0));
    const C* row = in.read(x + r * n);
    const C most = detail::row_reduce(Max{}, n, row);
    const C log_sum = math::log(detail::row_exp(n, row, most, static_cast<C*>(nullptr)));
    C value = (1 - smoothing) * (weight ? weight[t] : C(1)) * (log_sum - (row[t] - most));
    if (smoothing != 0) {
      C sum = 0;
      for (int64_t c = 0; c < n; ++c) sum += (log_sum - (row[c] - most)) * (weight ? weight[c] : C(1));
      value += each * sum;
    }
    loss[r] = cast<T>(value);
  });
}

/// dx[rows, n] = the gradient of the losses with respect to the logits, times dloss[r * dloss_stride]; exactly 0 in
/// ignored rows.
template <class T>
void cross_entropy_backward(int64_t rows, int64_t n, const T* x, const CrossEntropyTargets<T>& targets, const T* dloss,
                            int64_t dloss_stride, T* dx) {
  using C = compute_t<T>;
  const C smoothing = C(targets.label_smoothing), each = smoothing / C(n);
  detail::Row<T> weights(targets.weight ? n : 0);
  const C* weight = targets.weight ? weights.read(targets.weight) : nullptr;
  const C total = weight ? detail::row_reduce(Sum{}, n, weight) : C(n);
  detail::each_row<T>(rows, n, [&](int64_t r, auto& in, auto& out, auto&) {
    const int64_t t = targets.classes[r];
    if (t == targets.ignore_index) return void(std::fill_n(dx + r * n, n, T(0)));
    const C* row = in.read(x + r * n);
    C* to = out.write(dx + r * n);
    const C scale = cast<C>(dloss[r * dloss_stride]), hit = (1 - smoothing) * (weight ? weight[t] : C(1));
    const C sum = detail::row_exp(n, row, detail::row_reduce(Max{}, n, row), to);
    map_contiguous(detail::Scale<C>{scale * (hit + each * total) / sum}, n, to, static_cast<const C*>(to));
    to[t] -= scale * hit;
    if (smoothing != 0)
      for (int64_t c = 0; c < n; ++c) to[c] -= scale * each * (weight ? weight[c] : C(1));
    out.commit(dx + r * n);
  });
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
