// Steps of optimizers over contiguous arrays, each array read and written once.
#pragma once

#include <tenet/kernels/cpu/integer.hpp>
#include <tenet/kernels/cpu/math.hpp>
#include <tenet/kernels/cpu/pointwise.hpp>

#include <bit>

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

/// `value` where a term is switched on, else 0, also for what times 0 would be NaN. By its bits: over a condition, g++
/// makes two loops.
template <class C>
TENET_ALWAYS_INLINE C only_if(bool on, C value) {
  using Bits = std::conditional_t<sizeof(C) == 4, uint32_t, uint64_t>;
  return std::bit_cast<C>(std::bit_cast<Bits>(value) & (Bits(0) - Bits(on)));
}

template <class C>
struct SgdLoop {
  static constexpr Isa widest = Isa::avx2;
  TENET_ALWAYS_INLINE static void run(const SgdStep* s, int64_t n, C* p, const C* grad, C* buffer, C*, C*) {
    TENET_NO_CONTRACTION
    const C lr = C(s->lr), decay = C(s->weight_decay), sign = s->maximize ? C(-1) : C(1);
    // The first step takes the gradient itself, undamped.
    const C momentum = C(s->momentum), fresh = s->first ? C(1) : C(1 - s->dampening);
    const bool decays = s->weight_decay != 0, first = s->first, nesterov = s->nesterov;
    if (!buffer) {
      TENET_LOOP
      for (int64_t i = 0; i < n; ++i) p[i] -= lr * (sign * grad[i] + only_if(decays, decay * p[i]));
      return;
    }
    const C ahead = nesterov ? momentum : C(1);
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) {
      const C g = sign * grad[i] + only_if(decays, decay * p[i]), old = first ? C(0) : buffer[i];
      const C b = momentum * old + fresh * g;
      buffer[i] = b;
      p[i] -= lr * (only_if(nesterov, g) + ahead * b);
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
    const bool decays = !s->decoupled && s->weight_decay != 0;
    const C decay = C(s->weight_decay), sign = s->maximize ? C(-1) : C(1);
    const C keep = s->decoupled ? C(1 - s->lr * s->weight_decay) : C(1), step = C(s->lr / s->correction1);
    const C beta1 = C(s->beta1), rest1 = C(1 - s->beta1), beta2 = C(s->beta2), rest2 = C(1 - s->beta2);
    const C scale = C(1 / std::sqrt(s->correction2)), eps = C(s->eps);
    C root[block];
    for (int64_t i = 0; i < n; i += block, p += block, grad += block, mean += block, square += block) {
      const int64_t k = n - i < block ? n - i : block;
      TENET_LOOP
      for (int64_t j = 0; j < k; ++j) {
        const C g = sign * grad[j] + only_if(decays, decay * p[j]);
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

// Parameters of half precision round the master they are kept in. Where they do not, somebody changed them: then they
// count.
struct FollowChanges {
  static constexpr Isa widest = Isa::avx2;
  TENET_ALWAYS_INLINE static void run(int64_t n, float* master, const float* rounded, const float* now) {
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) master[i] = rounded[i] == now[i] ? master[i] : now[i];
  }
};

template <class T>
void follow_changes(int64_t n, float* master, const T* p) {
  T low[map_block];
  float rounded[map_block], now[map_block];
  convert(n, low, static_cast<const float*>(master));
  convert(n, rounded, static_cast<const T*>(low));
  convert(n, now, p);
  vectorized<FollowChanges>(n, master, static_cast<const float*>(rounded), static_cast<const float*>(now));
}

// Runs a loop over parameters, gradients and up to three states (some null).
template <template <class> class Loop, class Step, class T, class C = compute_t<T>>
void update(const Step& step, int64_t n, T* p, const T* grad, [[maybe_unused]] C* master, C* s1, C* s2, C* s3) {
  parallel_for(n, map_grain, [&](int64_t begin, int64_t end) {
    const auto run = [&](int64_t i, int64_t k, C* values, const C* g) {
      vectorized<Loop<C>>(&step, k, values, g, s1 ? s1 + i : s1, s2 ? s2 + i : s2, s3 ? s3 + i : s3);
    };
    if constexpr (std::is_same_v<C, T>) {
      run(begin, end - begin, p + begin, grad + begin);
    } else {
      C g[map_block];
      for (int64_t i = begin, k; i < end; i += k) {
        k = end - i < map_block ? end - i : map_block;
        convert(k, g, grad + i);
        follow_changes(k, master + i, static_cast<const T*>(p + i));
        run(i, k, master + i, g);
        convert(k, p + i, static_cast<const C*>(master + i));
      }
    }
  });
}

struct AddInto {
  template <class C>
  TENET_ALWAYS_INLINE C operator()(C a, C b) const {
    return wrapping_add(a, b);
  }
};

}  // namespace detail

/// One step of stochastic gradient descent on n parameters `p` with gradients `grad`. `buffer` holds the momentum;
/// null when momentum is 0. Parameters of half and bfloat16 have a `master`: it is what the step changes, and they
/// round it; it begins with zeros. Where they were changed otherwise since the last step, the master follows.
template <class T>
void sgd_update(const SgdStep& step, int64_t n, T* p, const T* grad, compute_t<T>* buffer,
                compute_t<T>* master = nullptr) {
  compute_t<T>* const none = nullptr;
  detail::update<detail::SgdLoop>(step, n, p, grad, master, buffer, none, none);
}

/// One step of Adam on n parameters `p` with gradients `grad`, their running means `mean` and running mean squares
/// `square`. `most`, the greatest mean squares so far, makes it AMSGrad; else null. `master` is that of sgd_update.
template <class T>
void adam_update(const AdamStep& step, int64_t n, T* p, const T* grad, compute_t<T>* mean, compute_t<T>* square,
                 compute_t<T>* most, compute_t<T>* master = nullptr) {
  detail::update<detail::AdamLoop>(step, n, p, grad, master, mean, square, most);
}

/// dst[i] += src[i] for n elements.
template <class T>
void add_into(int64_t n, T* dst, const T* src) {
  map_contiguous(detail::AddInto{}, n, dst, static_cast<const T*>(dst), src);
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
