// autocast: heavy products of float in low precision, in a scope:
//   { amp::autocast low(DType::bfloat16); y = model(data); }
//
// Types of tensors are static, so results stay Tensor<float>. What runs low rounds its operands to the low type and
// sums their products in float; a result is not rounded. This is the policy, PyTorch's for the CPU:
//
//   low     matmul (and what is made of it, as einsum and attention), linear, conv2d
//   float   all the rest: softmax, losses, norms, reductions, exp, log, pow, ...
//   widest  operations of several tensors, as cat, stack, where: their operands are of one type already
//
// Tensors of other types than float are left alone. Gradients come in the precision of their forward, also after the
// scope's end. Its end forgets the low copies of weights, which serve all uses of a weight until it changes.
#pragma once

#include <tenet/amp/low_ops.hpp>

namespace tenet::amp {
inline namespace TENET_CONFIG {

/// The one table of what runs low.
template <class Low>
inline constexpr AutocastPolicy autocast_policy{
    .matmul = [](const Tensor<float>& a, const Tensor<float>& b) { return apply<op::LowMatMul<Low>>(a, b); },
    .linear = [](const Tensor<float>& x, const Tensor<float>& w,
                 const Tensor<float>& b) { return apply<op::LowLinear<Low>>(x, w, b); },
    .conv2d =
        [](const Tensor<float>& x, const Tensor<float>& w, const Tensor<float>& b, const Conv2dOptions& o) {
          return apply<op::LowConv2d<Low>>(x, w, b, tenet::detail::conv2d_shape(x.shape(), w.shape(), o));
        },
};

/// While it lives, products of float of this thread run in low precision, by the policy above; scopes nest, and the end
/// of one restores what was before. A thread started inside begins without. See torch.autocast.
class autocast {
 public:
  // Templates, so that a program without autocast compiles none of the policy.

  /// bfloat16 or float16; throws DTypeError for others. `{dtype, false}` is off.
  template <std::same_as<DType> D>
  explicit autocast(D low, bool enabled = true) : autocast(Begin{}) {
    if (low == DType::bfloat16) state::autocast = &autocast_policy<bfloat16>;
    else if (low == DType::float16) state::autocast = &autocast_policy<half>;
    else throw DTypeError(text({"autocast: expected bfloat16 or float16, got ", name(low)}));
    if (!enabled) state::autocast = nullptr;
  }
  /// bfloat16, as PyTorch's default on the CPU; `amp::autocast off(false)` computes in float inside an outer scope.
  template <std::same_as<bool> B>
  explicit autocast(B enabled) : autocast(DType::bfloat16, enabled) {}

  ~autocast() {
    state::autocast = before_;
    if (state::low_weights == &weights_) state::low_weights = nullptr;
  }
  autocast(const autocast&) = delete;
  autocast& operator=(const autocast&) = delete;

 private:
  struct Begin {};
  explicit autocast(Begin) : before_(state::autocast) {
    if (!state::low_weights) state::low_weights = &weights_;
  }

  const AutocastPolicy* before_;
  LowWeights weights_;  // used if this is the outermost
};

/// Whether products of this thread run in low precision.
inline bool is_autocast_enabled() { return state::autocast != nullptr; }

}  // namespace TENET_CONFIG
}  // namespace tenet::amp
