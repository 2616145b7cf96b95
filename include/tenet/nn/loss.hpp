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

/// The divergence of logarithms of probabilities from a target; see kl_div(). See torch.nn.KLDivLoss.
struct KLDivLoss : Module<KLDivLoss> {
  KlDivOptions options;
  TENET_MODULE()
  TENET_TAG explicit KLDivLoss(KlDivOptions o = {}) : options(o) {}
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(const X& x, const tensor_t<X>& target) const {
    return kl_div(x, target, options);
  }
};

struct DistillationOptions {
  double temperature = 4;
  double alpha = 0.9;  ///< in [0, 1]: the teacher's part; the labels have the rest
};

/// What a student learns from a teacher: alpha temperature^2 KL(softmax(teacher / temperature) | softmax(student /
/// temperature)) + (1 - alpha) cross_entropy(student, labels), averaged over the batch. Logits are [n, classes]; the
/// teacher's get no gradient. Throws Error for options out of range. Hinton, Vinyals and Dean, "Distilling the
/// Knowledge in a Neural Network", 2015.
struct DistillationLoss : Module<DistillationLoss> {
  DistillationOptions options;
  TENET_MODULE()
  TENET_TAG explicit DistillationLoss(DistillationOptions o = {}) : options(o) {
    if (!(o.temperature > 0) || !(o.alpha >= 0 && o.alpha <= 1)) {
      throw Error(text(
          {"DistillationLoss: expected temperature > 0 and alpha in [0, 1], got ", o.temperature, " and ", o.alpha}));
    }
  }
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(const X& student, const tensor_t<X>& teacher,
                                const Tensor<std::int64_t>& labels) const {
    using T = element_t<X>;
    const auto soft = [&](const tensor_t<X>& logits) { return log_softmax(logits * T(1 / options.temperature), 1); };
    const tensor_t<X> divergence =
        kl_div(soft(student), soft(teacher.detach()), {.reduction = Reduction::sum, .log_target = true});
    const double rows = double(student.size(0));
    const double weight = options.alpha * options.temperature * options.temperature / rows;
    return divergence * T(weight) + cross_entropy(student, labels) * T(1 - options.alpha);
  }
};

}  // namespace tenet::nn
