// Steps of optimizers over contiguous arrays, each array read and written once.
#pragma once

#include <tenet/kernels/cpu/integer.hpp>
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

/// n parameters `p` of a floating type with their gradients, and what the optimizer remembers of each: up to three
/// states, some null. Parameters of half and bfloat16 have a `master` besides, and master and states are of float: the
/// master is what a step changes, and they round it; it begins with zeros. Where they were changed otherwise since the
/// last step, the master follows.
struct UpdateArrays {
  DType dtype;
  int64_t n;
  void* p;
  const void* grad;
  void* states[3] = {};
  void* master = nullptr;
};

namespace detail {

/// A term where it is switched on, else 0, also for what times 0 would be NaN. By its bits: over a condition, g++ makes
/// two loops. The mask is a variable: of an expression, g++ makes the condition again.
template <class C>
struct Switch {
  using Bits = std::conditional_t<sizeof(C) == 4, uint32_t, uint64_t>;
  Bits mask;
  TENET_ALWAYS_INLINE explicit Switch(bool on) : mask(Bits(0) - Bits(on)) {}
  TENET_ALWAYS_INLINE C operator()(C value) const {
    return __builtin_bit_cast(C, __builtin_bit_cast(Bits, value) & mask);
  }
};

template <class C>
struct SgdLoop {
  static constexpr Isa widest = Isa::avx2;
  TENET_ALWAYS_INLINE static void run(const SgdStep* s, int64_t n, C* p, const C* grad, C* buffer, C*, C*) {
    TENET_NO_CONTRACTION
    const C lr = C(s->lr), decay = C(s->weight_decay), sign = s->maximize ? C(-1) : C(1);
    // The first step takes the gradient itself, undamped.
    const C momentum = C(s->momentum), fresh = s->first ? C(1) : C(1 - s->dampening);
    const bool first = s->first;
    const Switch<C> decays(s->weight_decay != 0), nesterov(s->nesterov);
    if (!buffer) {
      TENET_LOOP
      for (int64_t i = 0; i < n; ++i) p[i] -= lr * (sign * grad[i] + decays(decay * p[i]));
      return;
    }
    const C ahead = s->nesterov ? momentum : C(1);
    TENET_LOOP
    for (int64_t i = 0; i < n; ++i) {
      const C g = sign * grad[i] + decays(decay * p[i]), old = first ? C(0) : buffer[i];
      const C b = momentum * old + fresh * g;
      buffer[i] = b;
      p[i] -= lr * (nesterov(g) + ahead * b);
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
  static constexpr bool unrolls = true;
  static constexpr Isa widest = Isa::avx2;
  TENET_ALWAYS_INLINE static void run(const AdamStep* s, int64_t n, C* p, const C* grad, C* mean, C* square, C* most) {
    TENET_NO_CONTRACTION
    constexpr int64_t block = 64;
    const Switch<C> decays(!s->decoupled && s->weight_decay != 0);
    const C decay = C(s->weight_decay), sign = s->maximize ? C(-1) : C(1);
    const C keep = s->decoupled ? C(1 - s->lr * s->weight_decay) : C(1), step = C(s->lr / s->correction1);
    const C beta1 = C(s->beta1), rest1 = C(1 - s->beta1), beta2 = C(s->beta2), rest2 = C(1 - s->beta2);
    const C scale = C(1 / std::sqrt(s->correction2)), eps = C(s->eps);
    C root[block];
    for (int64_t i = 0; i < n; i += block, p += block, grad += block, mean += block, square += block) {
      const int64_t k = n - i < block ? n - i : block;
      TENET_LOOP
      for (int64_t j = 0; j < k; ++j) {
        const C g = sign * grad[j] + decays(decay * p[j]);
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

// Elements of half precision, by a name for both types.
struct LowFormat {
  void (*widen)(int64_t n, float* out, const void* in);
  void (*round)(int64_t n, void* out, const float* in);
};
template <class T>
inline constexpr LowFormat low_format{
    [](int64_t n, float* out, const void* in) { convert(n, out, static_cast<const T*>(in)); },
    [](int64_t n, void* out, const float* in) { convert(n, static_cast<T*>(out), in); }};

// A step of parameters of half precision: run(i, k, their values, gradients) on pieces that fit the cache.
template <class Run>
void update_low(const LowFormat& format, const UpdateArrays& a, int64_t begin, int64_t end, const Run& run) {
  std::uint16_t low[map_block];
  float grad[map_block], rounded[map_block], now[map_block];
  for (int64_t i = begin, k; i < end; i += k) {
    k = end - i < map_block ? end - i : map_block;
    std::uint16_t* const p = static_cast<std::uint16_t*>(a.p) + i;
    float* const master = static_cast<float*>(a.master) + i;
    format.widen(k, grad, static_cast<const std::uint16_t*>(a.grad) + i);
    format.round(k, low, master);
    format.widen(k, rounded, low);
    format.widen(k, now, p);
    vectorized<FollowChanges>(k, master, static_cast<const float*>(rounded), static_cast<const float*>(now));
    run(i, k, master, grad);
    format.round(k, p, master);
  }
}

// Runs a loop over parameters, gradients and states.
template <template <class> class Loop, class Step>
void update(const Step& step, const UpdateArrays& a) {
  parallel_for(a.n, map_grain, [&](int64_t begin, int64_t end) {
    const auto run = [&]<class C>(int64_t i, int64_t k, C* values, const C* grad) {
      C* states[3];
      for (int s = 0; s < 3; ++s) states[s] = a.states[s] ? static_cast<C*>(a.states[s]) + i : nullptr;
      vectorized<Loop<C>>(&step, k, values, grad, states[0], states[1], states[2]);
    };
    const auto whole = [&]<class C>(C) {
      run(begin, end - begin, static_cast<C*>(a.p) + begin, static_cast<const C*>(a.grad) + begin);
    };
    if (a.dtype == DType::float32) whole(float());
    else if (a.dtype == DType::float64) whole(double());
    else update_low(a.dtype == DType::float16 ? low_format<half> : low_format<bfloat16>, a, begin, end, run);
  });
}

struct AddInto {
  template <class C>
  TENET_ALWAYS_INLINE C operator()(C a, C b) const {
    return wrapping_add(a, b);
  }
};

}  // namespace detail

/// One step of stochastic gradient descent. The first state holds the momentum; null when momentum is 0.
inline void sgd_update(const SgdStep& step, const UpdateArrays& arrays) {
  detail::update<detail::SgdLoop>(step, arrays);
}

/// One step of Adam. The states are the running means of gradients and of their squares, and, which makes it AMSGrad,
/// the greatest mean squares so far; else null.
inline void adam_update(const AdamStep& step, const UpdateArrays& arrays) {
  detail::update<detail::AdamLoop>(step, arrays);
}

/// dst[i] += src[i] for n elements.
template <class T>
void add_into(int64_t n, T* dst, const T* src) {
  map_contiguous(detail::AddInto{}, n, dst, static_cast<const T*>(dst), src);
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
