// Ways to choose what is pruned. Each masks some of what earlier pruning left of a layer, a model or weights
// (mask.hpp).
//
// Amounts, their rounding and what is chosen are those of torch.nn.utils.prune; of equal elements the first ones go,
// of equal channels the last ones. All throw Error for an amount that is none or more than what is left, IndexError
// for a dimension that is none, and Error for a weight in another format; nothing is changed then.
#pragma once

#include <tenet/core/random.hpp>
#include <tenet/ops/join.hpp>
#include <tenet/ops/sort.hpp>
#include <tenet/ops/statistics.hpp>
#include <tenet/prune/mask.hpp>

#include <cmath>

namespace tenet::prune {

/// How much to prune of what is left: a fraction in [0, 1] if it is floating, else a number of elements or channels.
class Amount {
 public:
  template <std::floating_point F>
  TENET_TAG Amount(F fraction) : fraction_(double(fraction)) {}
  template <std::integral I>
  TENET_TAG Amount(I count) : count_(std::int64_t(count)), counts_(true) {}

  /// The number of `left` to prune: fractions are rounded, halves to the even number. Throws Error if there are not
  /// as many.
  TENET_TAG std::int64_t of(const char* op, std::int64_t left) const {
    if (counts_) {
      if (count_ < 0 || count_ > left) throw Error(text({op, ": expected 0 to ", left, " to prune, got ", count_}));
      return count_;
    }
    if (!(fraction_ >= 0 && fraction_ <= 1)) {
      throw Error(text({op, ": expected a fraction in [0, 1] or a whole number, got ", fraction_}));
    }
    return std::int64_t(std::nearbyint(fraction_ * double(left)));
  }

 private:
  double fraction_ = 0;
  std::int64_t count_ = 0;
  bool counts_ = false;
};

struct UnstructuredOptions {
  Amount amount;
};

struct RandomStructuredOptions {
  Amount amount;         ///< of channels
  std::int64_t dim = 0;  ///< 0: outputs, 1: inputs
};

struct LnStructuredOptions {
  Amount amount;         ///< of channels
  double n = 2;          ///< the norm, as in norm()
  std::int64_t dim = 0;  ///< 0: outputs, 1: inputs
};

struct SemiStructuredOptions {
  std::int64_t keep = 2, of = 4;  ///< the largest `keep` of each `of` inputs in a row stay
};

inline namespace TENET_CONFIG {

namespace detail {

/// Masks of parameters; tied weights have one.
struct Masks {
  std::vector<const TensorImpl*> of;
  std::vector<Tensor<bool>> masks;

  std::size_t find(const AnyTensor& parameter) const {
    std::size_t i = 0;
    while (i < of.size() && of[i] != parameter.impl()) ++i;
    return i;
  }
  template <class X>
  void set(X& x) const {
    each_weight(x, [&]<class T>(const std::string&, nn::Weight<T>& weight) {
      weight.set_format(std::make_shared<Masked<T>>(masks[find(weight)]));
    });
  }
};

/// Gives each weight of `x` the mask new_mask(weight, its present mask); all or none.
template <class X, class F>
void prune_each(const char* op, X& x, const F& new_mask) {
  const no_grad guard;
  Masks all;
  each_weight(x, [&](const std::string& name, auto& weight) {
    const Tensor<bool> before = mask_of(op, name, weight);
    if (all.find(weight) < all.of.size()) return;
    all.masks.push_back(new_mask(weight, before));
    all.of.push_back(weight.impl());
  });
  all.set(x);
}

/// `masks` without the `amount` least scores of what they hold, all taken together.
template <class T>
std::vector<Tensor<bool>> without_least(const char* op, const std::vector<Tensor<T>>& scores,
                                        const std::vector<Tensor<bool>>& masks, const Amount& amount) {
  std::vector<Tensor<T>> flat_scores;
  std::vector<Tensor<bool>> flat_masks, out;
  for (const auto& s : scores) flat_scores.push_back(flatten(s));
  for (const auto& m : masks) flat_masks.push_back(flatten(m));
  const Tensor<bool> before = cat(flat_masks);
  const Tensor<std::int64_t> left = select(nonzero(before), 1, 0);
  const std::int64_t count = amount.of(op, left.numel());
  const Tensor<std::int64_t> least = topk(index_select(cat(flat_scores), 0, left), count, 0, false, false).indices;
  const Tensor<bool> after = index_fill(before, 0, index_select(left, 0, least), false);
  std::int64_t at = 0;
  for (const auto& m : masks) {
    out.push_back(view(narrow(after, 0, at, m.numel()), m.shape()).clone());
    at += m.numel();
  }
  return out;
}

/// Unstructured pruning of one weight by scores(weight).
template <class X, class F>
void prune_elements(const char* op, X& x, const Amount& amount, const F& scores) {
  prune_each(op, x, [&]<class T>(const nn::Weight<T>& weight, const Tensor<bool>& mask) {
    return without_least<T>(op, {scores(weight)}, {mask}, amount)[0];
  });
}

/// Pruning of the channels along `dim` with the least of scores(weight's channels that are left, their dimension).
template <class X, class F>
void prune_channels(const char* op, X& x, const Amount& amount, std::int64_t dim, const F& scores) {
  prune_each(op, x, [&]<class T>(const nn::Weight<T>& weight, const Tensor<bool>& mask) {
    if (mask.dim() < 2) throw ShapeError(text({op, ": expected a weight with channels, got ", mask.shape()}));
    const int d = wrap_dim(op, dim, mask.dim());
    Dims others, channels;
    for (int i = 0; i < mask.dim(); ++i) {
      if (i != d) others.push_back(i);
      channels.push_back(i == d ? mask.size(d) : 1);
    }
    const Tensor<std::int64_t> left = select(nonzero(any(mask, others)), 1, 0);
    const std::int64_t keep = left.numel() - amount.of(op, left.numel());
    const Tensor<T> score = scores(index_select(weight.dense(), d, left), others);
    const Tensor<std::int64_t> best = index_select(left, 0, topk(score, keep, 0, true, false).indices);
    return mask & view(index_fill(zeros<bool>({mask.size(d)}), 0, best, true), channels);
  });
}

/// Unstructured pruning of all weights of `x` taken together, by scores(weight).
template <class T, class X, class F>
void prune_globally(const char* op, X& x, const Amount& amount, const F& scores) {
  const no_grad guard;
  Masks all;
  std::vector<Tensor<T>> score;
  each_weight(x, [&](const std::string& name, const nn::Weight<T>& weight) {
    const Tensor<bool> before = mask_of(op, name, weight);
    if (all.find(weight) < all.of.size()) return;
    all.masks.push_back(before);
    all.of.push_back(weight.impl());
    score.push_back(scores(weight));
  });
  if (score.empty()) throw Error(text({op, ": there is no weight to prune"}));
  all.masks = without_least(op, score, all.masks, amount);
  all.set(x);
}

}  // namespace detail

/// Prunes the elements of least magnitude of each weight. See torch.nn.utils.prune.l1_unstructured.
template <class X>
void l1_unstructured(X& x, const UnstructuredOptions& o) {
  detail::prune_elements("l1_unstructured", x, o.amount, [](const auto& weight) { return abs(weight.dense()); });
}

/// Prunes elements of each weight by chance. See torch.nn.utils.prune.random_unstructured.
template <class X>
void random_unstructured(X& x, const UnstructuredOptions& o, Generator& generator = default_generator()) {
  detail::prune_elements("random_unstructured", x, o.amount,
                         [&](const auto& weight) { return rand_like(weight, generator); });
}

/// Prunes the elements of least magnitude of all weights taken together, all of element type T. See
/// torch.nn.utils.prune.global_unstructured.
template <class T = float, class X>
void global_unstructured(X& x, const UnstructuredOptions& o) {
  detail::prune_globally<T>("global_unstructured", x, o.amount,
                            [](const nn::Weight<T>& weight) { return abs(weight.dense()); });
}

/// Prunes the channels of least norm of each weight. See torch.nn.utils.prune.ln_structured.
template <class X>
void ln_structured(X& x, const LnStructuredOptions& o) {
  detail::prune_channels("ln_structured", x, o.amount, o.dim,
                         [&](const auto& channels, const Dims& others) { return norm(channels, o.n, others); });
}

/// Prunes channels of each weight by chance. See torch.nn.utils.prune.random_structured.
template <class X>
void random_structured(X& x, const RandomStructuredOptions& o, Generator& generator = default_generator()) {
  const auto scores = [&](const auto& channels, const Dims& others) {
    std::int64_t left = 1;
    for (int d = 0; d < channels.dim(); ++d) left *= others.contains(d) ? 1 : channels.size(d);
    return rand<element_t<decltype(channels)>>({left}, generator);
  };
  detail::prune_channels("random_structured", x, o.amount, o.dim, scores);
}

/// Of each four inputs in a row (dimension 1) of an output, prunes the two of least magnitude: the pattern that some
/// processors skip. Throws ShapeError unless the number of inputs is a multiple of `of`. Mishra et al., "Accelerating
/// Sparse Deep Neural Networks", 2021.
template <class X>
void semi_structured(X& x, const SemiStructuredOptions& o = {}) {
  if (o.of < 1 || o.keep < 0 || o.keep > o.of) {
    throw Error(text({"semi_structured: cannot keep ", o.keep, " of ", o.of}));
  }
  detail::prune_each("semi_structured", x, [&](const auto& weight, const Tensor<bool>& mask) {
    if (mask.dim() < 2 || mask.size(1) % o.of) {
      throw ShapeError(
          text({"semi_structured: expected a weight whose inputs come by ", o.of, ", got ", mask.shape()}));
    }
    const auto inputs_last = movedim(abs(weight.dense()), 1, -1);
    const auto best = topk(reshape(inputs_last, {-1, o.of}), o.keep, 1, true, false).indices;
    const auto groups = scatter(zeros<bool>({mask.numel() / o.of, o.of}), 1, best, true);
    return mask & movedim(view(groups, inputs_last.shape()), -1, 1);
  });
}

/// Prunes where `mask`, of any element type and the weight's shape, is 0. Throws ShapeError for another shape. See
/// torch.nn.utils.prune.custom_from_mask.
template <class X, TensorLike M>
void custom_from_mask(X& x, const M& mask) {
  detail::prune_each("custom_from_mask", x, [&](const auto&, const Tensor<bool>& before) {
    if (!(mask.shape() == before.shape())) {
      throw ShapeError(text({"custom_from_mask: expected a mask of ", before.shape(), ", got ", mask.shape()}));
    }
    return before & to<bool>(mask);
  });
}

}  // namespace TENET_CONFIG
}  // namespace tenet::prune
