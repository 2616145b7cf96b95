// Steps of optimizers over contiguous arrays, each array read and written once.
#pragma once

#include <tenet/kernels/cpu/math.hpp>
#include <tenet/kernels/cpu/pointwise.hpp>

#if TENET_X86
#include <xmmintrin.h>
#endif

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Options of sgd_update; see torch.optim.SGD.
struct SgdStep {
  double lr, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
  bool first = false;  ///< the momentum buffer holds nothing yet
};

/// Options of adam_update; see torch.optim.Adam and AdamW.
struct AdamStep {
  double lr, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  double correction1 = 1, correction2 = 1;  ///< 1 - beta1^t and 1 - beta2^t at step t = 1, 2, ...
  bool decoupled = false;                   ///< AdamW: weights decay by themselves, not through the gradient
  bool maximize = false;
};

namespace detail {

template <class C>
struct SgdLoop {
  static constexpr Isa widest = Isa::avx2;
  TENET_ALWAYS_INLINE static void run(const SgdStep* s, int64_t n, C* p, const C* grad, C* buffer, C*, C*) {
    TENET_NO_CONTRACTION
    const C lr = C(s->lr), decay = C(s->weight_decay), sign = s->maximize ? C(-1) : C(1);
    // The first step takes the gradient itself, undamped.
    const C momentum = C(s->momentum), fresh = s->first ? C(1) : C(1 - s->dampening);
    if (!buffer) {
      TENET_LOOP
      for (int64_t i = 0; i < n; ++i) p[i] -= lr * (sign * grad[i] + decay * p[i]);
      return;
    }
    const bool first = s->first;
    const C through = s->nesterov ? C(1) : C(0), ahead = s->nesterov ? momentum : C(1);
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) {
      const C g = sign * grad[i] + decay * p[i], old = first ? C(0) : buffer[i], b = momentum * old + fresh * g;
      buffer[i] = b;
      p[i] -= lr * (through * g + ahead * b);
    }
  }
};

// g++ does not vectorize the library's square root, which may set errno.
TENET_ALWAYS_INLINE void square_roots(int64_t n, double* x) {
  for (int64_t i = 0; i < n; ++i) x[i] = math::sqrt(x[i]);
}
TENET_ALWAYS_INLINE void square_roots(int64_t n, float* x) {
  int64_t i = 0;
#if TENET_X86
  for (; i + 4 <= n; i += 4) _mm_storeu_ps(x + i, _mm_sqrt_ps(_mm_loadu_ps(x + i)));
#endif
  for (; i < n; ++i) x[i] = math::sqrt(x[i]);
}

template <class C>
struct AdamLoop {
  static constexpr Isa widest = Isa::avx2;
  TENET_ALWAYS_INLINE static void run(const AdamStep* s, int64_t n, C* p, const C* grad, C* mean, C* square, C* most) {
    TENET_NO_CONTRACTION
    constexpr int64_t block = 64;
    const C decay = s->decoupled ? C(0) : C(s->weight_decay), sign = s->maximize ? C(-1) : C(1);
    const C keep = s->decoupled ? C(1 - s->lr * s->weight_decay) : C(1), step = C(s->lr / s->correction1);
    const C beta1 = C(s->beta1), rest1 = C(1 - s->beta1), beta2 = C(s->beta2), rest2 = C(1 - s->beta2);
    const C scale = C(1 / std::sqrt(s->correction2)), eps = C(s->eps);
    C root[block];
    for (int64_t i = 0; i < n; i += block, p += block, grad += block, mean += block, square += block) {
      const int64_t k = n - i < block ? n - i : block;
      TENET_LOOP
      for (int64_t j = 0; j < k; ++j) {
        const C g = sign * grad[j] + decay * p[j];
        mean[j] = beta1 * mean[j] + rest1 * g;
        root[j] = square[j] = beta2 * square[j] + rest2 * g * g;
      }
      if (most) {
        TENET_LOOP
        for (int64_t j = 0; j < k; ++j) {
          const C seen = most[j];
          root[j] = most[j] = ((root[j] > seen) | (root[j] != root[j])) ? root[j] : seen;
        }
        most += block;
      }
      square_roots(k, root);
      TENET_LOOP
      for (int64_t j = 0; j < k; ++j) p[j] = p[j] * keep - step * (mean[j] / (root[j] * scale + eps));
    }
  }
};

// Runs a loop over parameters, gradients and up to three states (some null); halves pass through float.
template <template <class> class Loop, class Step, class T>
void update(const Step& step, int64_t n, T* p, const T* grad, T* s1, T* s2, T* s3) {
  using C = compute_t<T>;
  parallel_for(n, map_grain, [&](int64_t begin, int64_t end) {
    T* const arrays[] = {p, s1, s2, s3};
    if constexpr (std::is_same_v<C, T>) {
      vectorized<Loop<C>>(&step, end - begin, p + begin, grad + begin, s1 ? s1 + begin : s1, s2 ? s2 + begin : s2,
                          s3 ? s3 + begin : s3);
    } else {
      C values[4][map_block], g[map_block];
      for (int64_t i = begin, k; i < end; i += k) {
        k = end - i < map_block ? end - i : map_block;
        for (int a = 0; a < 4; ++a)
          if (arrays[a]) convert(k, values[a], static_cast<const T*>(arrays[a] + i));
        convert(k, g, grad + i);
        vectorized<Loop<C>>(&step, k, &values[0][0], static_cast<const C*>(g), s1 ? values[1] : nullptr,
                            s2 ? values[2] : nullptr, s3 ? values[3] : nullptr);
        for (int a = 0; a < 4; ++a)
          if (arrays[a]) convert(k, arrays[a] + i, static_cast<const C*>(values[a]));
      }
    }
  });
}

struct AddInto {
  template <class C>
  TENET_ALWAYS_INLINE C operator()(C a, C b) const {
    return C(a + b);
  }
};

}  // namespace detail

/// One step of stochastic gradient descent on n parameters `p` with gradients `grad`. `buffer` holds the momentum;
/// null when momentum is 0.
template <class T>
void sgd_update(const SgdStep& step, int64_t n, T* p, const T* grad, T* buffer) {
  detail::update<detail::SgdLoop>(step, n, p, grad, buffer, static_cast<T*>(nullptr), static_cast<T*>(nullptr));
}

/// One step of Adam on n parameters `p` with gradients `grad`, their running means `mean` and running mean squares
/// `square`. `most`, the greatest mean squares so far, makes it AMSGrad; else null.
template <class T>
void adam_update(const AdamStep& step, int64_t n, T* p, const T* grad, T* mean, T* square, T* most) {
  detail::update<detail::AdamLoop>(step, n, p, grad, mean, square, most);
}

/// dst[i] += src[i] for n elements.
template <class T>
void add_into(int64_t n, T* dst, const T* src) {
  map_contiguous(detail::AddInto{}, n, dst, static_cast<const T*>(dst), src);
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
