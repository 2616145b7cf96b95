// Losses of classifiers: cross_entropy of logits, nll_loss of log-probabilities.
//
// Scores are [N, C], [N, C, d1, ...] or [C], with the classes along C; targets are class numbers of the same shape
// without C. A target that is neither in [0, C) nor ignore_index throws IndexError; shapes that do not fit throw
// ShapeError, a weight of another element type DTypeError.
#pragma once

#include <tenet/kernels/cpu/cross_entropy_second.hpp>
#include <tenet/kernels/cpu/nll.hpp>
#include <tenet/ops/reduction.hpp>
#include <tenet/ops/softmax.hpp>

namespace tenet {

struct CrossEntropyOptions {
  AnyTensor weight = {};             ///< [C], a weight a class, of the scores' type; undefined: all 1
  std::int64_t ignore_index = -100;  ///< targets that do not count
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0;  ///< in [0, 1]: the part of the target that is spread over all classes
};

struct NllLossOptions {
  AnyTensor weight = {};             ///< [C], a weight a class, of the scores' type; undefined: all 1
  std::int64_t ignore_index = -100;  ///< targets that do not count
  Reduction reduction = Reduction::mean;
};

inline namespace TENET_CONFIG {

namespace detail {

struct TargetOptions {
  std::int64_t classes, ignore_index;
  double label_smoothing;
};

/// The operands of the kernels: contiguous scores [rows, classes], targets [rows], weight [classes] or undefined.
template <class T>
struct ClassScores {
  Tensor<T> scores;
  Tensor<std::int64_t> targets;
  Tensor<T> weight;
};

template <class T>
cpu::CrossEntropyTargets<T> kernel_targets(const Tensor<std::int64_t>& targets, const Tensor<T>& weight,
                                           TargetOptions o) {
  return {targets.data(), weight ? weight.data() : nullptr, o.ignore_index, o.label_smoothing};
}

/// `x` with the classes of dimension 1 (0 if there is but one) in the last one.
template <class T>
Tensor<T> classes_last(const Tensor<T>& x) {
  return x.dim() < 3 ? x : movedim(x, 1, -1);
}

inline void check_scores(const char* op, const Shape& x, const Shape& targets) {
  Dims expected = x;
  if (!x.empty()) expected.erase(x.size() > 1);
  if (x.empty() || x[x.size() > 1] == 0) {
    throw ShapeError(text({op, ": expected scores [N, C, ...] or [C] of at least one class, got ", x}));
  }
  if (!(targets == expected)) {
    throw ShapeError(text({op, ": expected targets of shape ", expected, " for scores ", x, ", got ", targets}));
  }
}

[[noreturn]] TENET_COLD inline void throw_target(const char* op, std::int64_t target, std::int64_t row,
                                                 std::int64_t classes) {
  throw IndexError(text(
      {op, ": target ", target, " (element ", row, ") is outside of ", classes, " classes, [0, ", classes - 1, "]"}));
}

inline void check_class_weight(const char* op, const AnyTensor& weight, DType scores, std::int64_t classes) {
  if (!weight) return;
  if (!(weight.shape() == Shape{classes})) {
    throw ShapeError(text({op, ": expected a weight for each of ", classes, " classes, got shape ", weight.shape()}));
  }
  if (weight.dtype() != scores) {
    throw DTypeError(text({op, ": expected weights of ", name(scores), ", got ", name(weight.dtype())}));
  }
}

/// The classes' weights for a kernel; undefined if none are given.
template <class T>
Tensor<T> class_weight(const char* op, const AnyTensor& weight, std::int64_t classes) {
  check_class_weight(op, weight, dtype_of<T>, classes);
  return weight ? packed(Tensor<T>(weight)) : Tensor<T>();
}

template <class T>
ClassScores<T> class_scores(const char* op, const Tensor<T>& x, const Tensor<std::int64_t>& targets,
                            const AnyTensor& weight, std::int64_t ignore_index) {
  static_assert(FloatElement<T>, "scores of integers: convert to a floating type first, as to<float>(x)");
  check_scores(op, x.shape(), targets.shape());
  const std::int64_t classes = x.shape()[x.dim() > 1], rows = targets.numel();
  Tensor<T> scores = classes_last(x);
  if (scores.dim() != 2) scores = reshape(scores, {rows, classes});
  const Tensor<std::int64_t> all = packed(targets).view({rows});
  const std::int64_t bad = cpu::find_bad_target(rows, classes, all.data(), ignore_index);
  if (bad >= 0) throw_target(op, all.data()[bad], bad, classes);
  return {contiguous(scores), all, class_weight<T>(op, weight, classes)};
}

}  // namespace detail

namespace op {

/// The gradient of Nll: linear, so that Nll is its own.
struct NllGrad;

/// -weight[t] * x[t] of each row, 0 where the target is ignored.
struct Nll {
  static constexpr const char* name = "nll_loss";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, const Tensor<std::int64_t>& targets,
                           const Tensor<T>& weight, detail::TargetOptions o) {
    ctx.keep(targets);
    ctx.keep(weight, weight.defined());
    Tensor<T> losses = empty<T>(targets.shape());
    cpu::nll(targets.numel(), o.classes, x.data(), detail::kernel_targets(targets, weight, o), losses.data());
    return losses;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<NllGrad>(g, grad.kept<std::int64_t>(0), grad.kept<T>(1), grad.options<detail::TargetOptions>());
  }
};

struct NllGrad {
  static constexpr const char* name = "nll_loss_grad";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& g, const Tensor<std::int64_t>& targets,
                           const Tensor<T>& weight, detail::TargetOptions o) {
    ctx.keep(targets);
    ctx.keep(weight, weight.defined());
    Tensor<T> dx = empty<T>({targets.numel(), o.classes});
    cpu::nll_backward(targets.numel(), o.classes, detail::kernel_targets(targets, weight, o), g.data(), g.strides()[0],
                      dx.data());
    return dx;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& gg) {
    grad[0] =
        apply<Nll>(contiguous(gg), grad.kept<std::int64_t>(0), grad.kept<T>(1), grad.options<detail::TargetOptions>());
  }
};

/// The gradient of CrossEntropyGrad, by the logits or by the gradients of the losses.
struct CrossEntropyGrad2 {
  struct Options {
    detail::TargetOptions targets;
    bool by_logits;
  };
  static constexpr const char* name = "cross_entropy_grad2";
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& gg, const Tensor<T>& g, const Tensor<T>& x,
                           const Tensor<std::int64_t>& targets, const Tensor<T>& weight, Options o) {
    Tensor<T> d = empty<T>(o.by_logits ? x.shape() : targets.shape());
    cpu::cross_entropy_second(targets.numel(), o.targets.classes, x.data(),
                              detail::kernel_targets(targets, weight, o.targets), g.data(), g.strides()[0], gg.data(),
                              o.by_logits ? d.data() : nullptr, o.by_logits ? nullptr : d.data());
    return d;
  }
  template <class T>
  static void backward(Grad, const Tensor<T>&) {
    throw NotImplemented("cross_entropy: cannot be differentiated a third time; nll_loss(log_softmax(x, 1)) can");
  }
};

/// The gradient of CrossEntropy, in one pass.
struct CrossEntropyGrad {
  static constexpr const char* name = "cross_entropy_grad";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& g, const Tensor<T>& x, const Tensor<std::int64_t>& targets,
                           const Tensor<T>& weight, detail::TargetOptions o) {
    ctx.keep(g);
    ctx.keep(x);
    ctx.keep(targets);
    ctx.keep(weight, weight.defined());
    Tensor<T> dx = empty<T>(x.shape());
    cpu::cross_entropy_backward(targets.numel(), o.classes, x.data(), detail::kernel_targets(targets, weight, o),
                                g.data(), g.strides()[0], dx.data());
    return dx;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& gg) {
    const auto by = [&](bool logits) {
      return apply<CrossEntropyGrad2>(contiguous(gg), grad.kept<T>(0), grad.kept<T>(1), grad.kept<std::int64_t>(2),
                                      grad.kept<T>(3),
                                      CrossEntropyGrad2::Options{grad.options<detail::TargetOptions>(), logits});
    };
    if (grad.wants(0)) grad[0] = by(false);
    if (grad.wants(1)) grad[1] = by(true);
  }
};

/// -log(softmax(x)[t]) of each row, weighted and smoothed, 0 where the target is ignored.
struct CrossEntropy {
  static constexpr const char* name = "cross_entropy";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, const Tensor<std::int64_t>& targets,
                           const Tensor<T>& weight, detail::TargetOptions o) {
    ctx.keep(x);
    ctx.keep(targets);
    ctx.keep(weight, weight.defined());
    Tensor<T> losses = empty<T>(targets.shape());
    cpu::cross_entropy(targets.numel(), o.classes, x.data(), detail::kernel_targets(targets, weight, o), losses.data());
    return losses;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    grad[0] = apply<CrossEntropyGrad>(g, grad.kept<T>(0), grad.kept<std::int64_t>(1), grad.kept<T>(2),
                                      grad.options<detail::TargetOptions>());
  }
};

}  // namespace op

namespace detail {

/// The losses of all rows as `reduction` tells; their mean counts each by the weight of its class.
template <class Op, class T>
Tensor<T> class_losses(const Tensor<T>& x, const Tensor<std::int64_t>& targets, const CrossEntropyOptions& options) {
  const auto in = class_scores(Op::name, x, targets, options.weight, options.ignore_index);
  const TargetOptions o{in.scores.shape()[1], options.ignore_index, options.label_smoothing};
  const Tensor<T> losses = apply<Op>(in.scores, in.targets, in.weight, o);
  if (options.reduction == Reduction::none) return view(losses, targets.shape());
  if (options.reduction == Reduction::sum) return sum(losses);
  const double count = cpu::total_weight(losses.numel(), kernel_targets(in.targets, in.weight, o));
  return apply<op::Mean>(losses, op::Mean::Options{{1, false}, count});
}

inline void check_smoothing(double e) {
  if (!(e >= 0 && e <= 1)) throw Error(text({"cross_entropy: expected a label_smoothing in [0, 1], got ", e}));
}

}  // namespace detail

/// The cross-entropy of softmax(logits) and the targets' classes: a scalar, or with Reduction::none the shape of
/// `targets`. The mean is weighted by the classes' weights; of no target that counts it is NaN, and the gradient 0.
/// See torch.nn.functional.cross_entropy; label smoothing: Szegedy et al., "Rethinking the Inception Architecture for
/// Computer Vision", 2016.
template <TensorLike X>
tensor_t<X> cross_entropy(const X& logits, const Tensor<std::int64_t>& targets, const CrossEntropyOptions& o = {}) {
  detail::check_smoothing(o.label_smoothing);
  return detail::class_losses<op::CrossEntropy>(static_cast<const tensor_t<X>&>(logits), targets, o);
}

/// The cross-entropy of softmax(logits) and probabilities `targets`, of the shape of `logits`: a scalar, or with
/// Reduction::none that shape without C. The mean is that over N, d1, ...; ignore_index has no meaning here.
template <TensorLike X>
tensor_t<X> cross_entropy(const X& logits, const tensor_t<X>& targets, const CrossEntropyOptions& o = {}) {
  using T = element_t<X>;
  detail::check_smoothing(o.label_smoothing);
  if (logits.dim() == 0 || !(logits.shape() == targets.shape())) {
    throw ShapeError(text({"cross_entropy: expected probabilities of the shape of logits [N, C, ...] or [C], ",
                           logits.shape(), ", got ", targets.shape()}));
  }
  const auto x = detail::classes_last(static_cast<const Tensor<T>&>(logits)), p = detail::classes_last(targets);
  const std::int64_t classes = x.size(-1);
  const Tensor<T> smooth =
      o.label_smoothing == 0 ? p : p * (1 - o.label_smoothing) + o.label_smoothing / double(classes);
  const Tensor<T> weight = detail::class_weight<T>(op::CrossEntropy::name, o.weight, classes);
  const Tensor<T> log_p = log_softmax(x, -1);
  const Tensor<T> losses = neg(sum(mul(weight ? mul(log_p, weight) : log_p, smooth), {-1}));
  return reduce_losses(losses, o.reduction);
}

/// -log_probabilities at the targets' classes: a scalar, or with Reduction::none the shape of `targets`. Means as for
/// cross_entropy. See torch.nn.functional.nll_loss.
template <TensorLike X>
tensor_t<X> nll_loss(const X& log_probabilities, const Tensor<std::int64_t>& targets, const NllLossOptions& o = {}) {
  return detail::class_losses<op::Nll>(static_cast<const tensor_t<X>&>(log_probabilities), targets,
                                       {o.weight, o.ignore_index, o.reduction});
}

}  // namespace TENET_CONFIG
}  // namespace tenet
