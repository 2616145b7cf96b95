// Losses. Here those of differences; of classes: ops/cross_entropy.hpp; of yes and no: ops/binary_cross_entropy.hpp.
//
// Both tensors have one shape, else ShapeError: nothing broadcasts. Reduction::none gives that shape, the others a
// scalar. Gradients flow into both.
#pragma once

#include <tenet/ops/binary_cross_entropy.hpp>
#include <tenet/ops/cross_entropy.hpp>
#include <tenet/ops/reduction.hpp>
#include <tenet/ops/select.hpp>
#include <tenet/ops/unary.hpp>

namespace tenet {

struct SmoothL1LossOptions {
  double beta = 1;  ///< from where on the loss is linear; 0 gives l1_loss
  Reduction reduction = Reduction::mean;
};

struct KlDivOptions {
  Reduction reduction = Reduction::mean;
  bool log_target = false;  ///< the target holds logarithms of probabilities
};

inline namespace TENET_CONFIG {

namespace op {

/// x^2 / (2 beta) where |x| < beta, else |x| - beta / 2.
struct SmoothAbs : UnaryOp<SmoothAbs> {
  static constexpr const char* name = "smooth_l1_loss";
  static constexpr Keeps keeps = Keeps::input;
  double beta;
  explicit SmoothAbs(double b) : beta(b) {}
  template <class T>
  TENET_ALWAYS_INLINE T f(T x) const {
    const T b = T(beta), a = x < 0 ? -x : x;
    return a < b ? x * x / (2 * b) : a - b / 2;
  }
  template <class T>
  TENET_ALWAYS_INLINE T df(T x, T) const {
    const T b = T(beta), a = x < 0 ? -x : x;
    return a < b ? x / b : T(0 < x) - T(x < 0);
  }
  template <class T>
  T ddf(T x) const {
    const T b = T(beta), a = x < 0 ? -x : x;
    return a < b ? 1 / b : T(0);
  }
};

}  // namespace op

/// (x - target)^2. See torch.nn.functional.mse_loss.
template <TensorLike X>
tensor_t<X> mse_loss(const X& x, const tensor_t<X>& target, Reduction reduction = Reduction::mean) {
  detail::check_same_shape("mse_loss", x.shape(), target.shape());
  return reduce_losses(square(sub(x, target)), reduction);
}

/// |x - target|. See torch.nn.functional.l1_loss.
template <TensorLike X>
tensor_t<X> l1_loss(const X& x, const tensor_t<X>& target, Reduction reduction = Reduction::mean) {
  detail::check_same_shape("l1_loss", x.shape(), target.shape());
  return reduce_losses(abs(sub(x, target)), reduction);
}

/// With d = x - target: d^2 / (2 beta) where |d| < beta, else |d| - beta / 2. Throws Error if beta < 0. See
/// torch.nn.functional.smooth_l1_loss; Girshick, "Fast R-CNN", 2015.
template <TensorLike X>
tensor_t<X> smooth_l1_loss(const X& x, const tensor_t<X>& target, const SmoothL1LossOptions& o = {}) {
  detail::check_same_shape("smooth_l1_loss", x.shape(), target.shape());
  if (!(o.beta >= 0)) throw Error(text({"smooth_l1_loss: expected beta >= 0, got ", o.beta}));
  return reduce_losses(apply_float<op::SmoothAbs>(sub(x, target), op::SmoothAbs(o.beta)), o.reduction);
}

/// target (log(target) - x) for logarithms of probabilities x; 0 where the target is. The mean is over all elements:
/// Reduction::sum over the number of rows is PyTorch's "batchmean". See torch.nn.functional.kl_div.
template <TensorLike X>
tensor_t<X> kl_div(const X& x, const tensor_t<X>& target, const KlDivOptions& o = {}) {
  using T = element_t<X>;
  detail::check_same_shape("kl_div", x.shape(), target.shape());
  if (o.log_target) return reduce_losses(mul(exp(target), sub(target, x)), o.reduction);
  const tensor_t<X> logs = log(where(target == T(0), T(1), target));
  return reduce_losses(mul(target, sub(logs, x)), o.reduction);
}

}  // namespace TENET_CONFIG
}  // namespace tenet
