// Losses as objects that hold their options: `nn::CrossEntropyLoss criterion; auto loss = criterion(outputs, labels);`
#pragma once

#include <tenet/nn/module.hpp>
#include <tenet/ops/loss.hpp>

namespace tenet::nn {

/// The cross-entropy of softmax(logits) and class indices [n] or probabilities; see cross_entropy().
/// See torch.nn.CrossEntropyLoss.
struct CrossEntropyLoss : Module<CrossEntropyLoss> {
  CrossEntropyOptions options;
  TENET_MODULE()
  TENET_TAG explicit CrossEntropyLoss(CrossEntropyOptions o = {}) : options(std::move(o)) {}
  template <TensorLike X, TensorLike Y>
  TENET_TAG tensor_t<X> forward(const X& logits, const Y& targets) const {
    return cross_entropy(logits, targets, options);
  }
};

/// Minus the log-probabilities of the targets' classes; see nll_loss(). See torch.nn.NLLLoss.
struct NLLLoss : Module<NLLLoss> {
  NllLossOptions options;
  TENET_MODULE()
  TENET_TAG explicit NLLLoss(NllLossOptions o = {}) : options(std::move(o)) {}
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(const X& log_probabilities, const Tensor<std::int64_t>& targets) const {
    return nll_loss(log_probabilities, targets, options);
  }
};

/// (x - target)^2. See torch.nn.MSELoss.
struct MSELoss : Module<MSELoss> {
  Reduction reduction;
  TENET_MODULE()
  TENET_TAG explicit MSELoss(Reduction r = Reduction::mean) : reduction(r) {}
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(const X& x, const tensor_t<X>& target) const {
    return mse_loss(x, target, reduction);
  }
};

/// |x - target|. See torch.nn.L1Loss.
struct L1Loss : Module<L1Loss> {
  Reduction reduction;
  TENET_MODULE()
  TENET_TAG explicit L1Loss(Reduction r = Reduction::mean) : reduction(r) {}
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(const X& x, const tensor_t<X>& target) const {
    return l1_loss(x, target, reduction);
  }
};

/// Squares near 0, straight lines beyond; see smooth_l1_loss(). See torch.nn.SmoothL1Loss.
struct SmoothL1Loss : Module<SmoothL1Loss> {
  SmoothL1LossOptions options;
  TENET_MODULE()
  TENET_TAG explicit SmoothL1Loss(SmoothL1LossOptions o = {}) : options(o) {}
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(const X& x, const tensor_t<X>& target) const {
    return smooth_l1_loss(x, target, options);
  }
};

/// Cross-entropy of probabilities of yes and no; see binary_cross_entropy(). See torch.nn.BCELoss.
struct BCELoss : Module<BCELoss> {
  BinaryCrossEntropyOptions options;
  TENET_MODULE()
  TENET_TAG explicit BCELoss(BinaryCrossEntropyOptions o = {}) : options(std::move(o)) {}
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(const X& p, const tensor_t<X>& target) const {
    return binary_cross_entropy(p, target, options);
  }
};

/// The same of logits, without overflow; see binary_cross_entropy_with_logits(). See torch.nn.BCEWithLogitsLoss.
struct BCEWithLogitsLoss : Module<BCEWithLogitsLoss> {
  BinaryCrossEntropyWithLogitsOptions options;
  TENET_MODULE()
  TENET_TAG explicit BCEWithLogitsLoss(BinaryCrossEntropyWithLogitsOptions o = {}) : options(std::move(o)) {}
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(const X& logits, const tensor_t<X>& target) const {
    return binary_cross_entropy_with_logits(logits, target, options);
  }
};

}  // namespace tenet::nn
