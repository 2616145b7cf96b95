// Weights of low rank: two thin layers in place of one.
#pragma once

#include <tenet/kernels/cpu/svd.hpp>
#include <tenet/ops/binary.hpp>
#include <tenet/ops/unary.hpp>
#include <tenet/prune/mask.hpp>

#include <algorithm>

namespace tenet::prune {

/// A weight [out, in, ...] that is the product of up [out, rank] and down [rank, in, ...]. Both train. Linear and
/// Conv2d of one group multiply by one after the other; a convolution of several groups by their product.
template <class T = float>
struct LowRank final : nn::WeightFormat<T> {
  nn::Parameter<T> up, down;

  /// Throws ShapeError unless the ranks agree.
  TENET_TAG LowRank(Tensor<T> u, Tensor<T> d) : up(std::move(u)), down(std::move(d)) {
    if (up.dim() != 2 || down.dim() < 2 || up.size(1) != down.size(0)) {
      throw ShapeError(text({"low_rank: cannot multiply ", up.shape(), " by ", down.shape()}));
    }
  }
  TENET_TAG std::string_view name() const override { return "low_rank"; }
  TENET_TAG Shape shape() const override {
    Dims sizes = down.shape();
    sizes[0] = up.size(0);
    return sizes;
  }
  TENET_TAG Tensor<T> dense(const Tensor<T>&) const override { return reshape(matmul(up, flatten(down, 1)), shape()); }
  TENET_TAG std::shared_ptr<nn::WeightFormat<T>> clone() const override { return std::make_shared<LowRank>(*this); }
  TENET_TAG void collect(const std::string& prefix, std::vector<nn::StateSlot>& slots) override {
    slots.push_back(this->slot(prefix, "up", up));
    slots.push_back(this->slot(prefix, "down", down));
  }
  TENET_TAG bool fits(const nn::StateDict& part) const override {
    const AnyTensor* u = nn::detail::find(part, "up");
    return u && u->shape() == up.shape();
  }

  TENET_TAG Tensor<T> linear(const Tensor<T>& x, const Tensor<T>&, const Tensor<T>& bias) const override {
    return tenet::linear(tenet::linear(x, down), up, bias);
  }
  TENET_TAG Tensor<T> conv2d(const Tensor<T>& x, const Tensor<T>& parameter, const Tensor<T>& bias,
                             const tenet::Conv2dOptions& options) const override {
    if (options.groups != 1) return tenet::conv2d(x, dense(parameter), bias, options);
    return tenet::conv2d(tenet::conv2d(x, down, Tensor<T>(), options), view(up, {up.size(0), up.size(1), 1, 1}), bias);
  }

  /// Factors of the stored sizes, to be filled from the state. Throws Error where they do not fit.
  TENET_TAG static std::shared_ptr<nn::WeightFormat<T>> read(const Shape& shape, const nn::StateDict& part) {
    const AnyTensor *u = nn::detail::find(part, "up"), *d = nn::detail::find(part, "down");
    if (!u || !d) throw Error("low_rank: expected up and down");
    auto format = std::make_shared<LowRank>(zeros<T>(u->shape()), zeros<T>(d->shape()));
    if (!(format->shape() == shape)) {
      throw ShapeError(text({"low_rank: expected factors of ", shape, ", got ", u->shape(), " and ", d->shape()}));
    }
    return format;
  }
};

struct LowRankOptions {
  std::int64_t rank = 0;  ///< of the factors; 0: as `energy` asks
  double energy = 0;      ///< in (0, 1]: the part of the sum of squares that is kept at least
};

inline namespace TENET_CONFIG {

namespace detail {

template <class T>
std::shared_ptr<nn::WeightFormat<T>> low_rank_of(const Tensor<T>& weight, const LowRankOptions& o) {
  const Tensor<double> w = to<double>(flatten(weight, 1));
  const bool wide = w.size(0) <= w.size(1);
  const Tensor<double> rows = contiguous(wide ? w : t(w)).clone();
  const std::int64_t m = rows.size(0), n = rows.size(1);
  const Tensor<double> u = empty<double>({m, m});
  cpu::orthogonal_rows(m, n, rows.data(), u.data());
  const std::vector<double> squares = sum(square(rows), {1}).to_vector();
  std::int64_t rank = o.rank;
  if (!rank) {
    double all = 0, kept = 0;
    for (const double s : squares) all += s;
    while (rank < m && (!rank || kept < o.energy * all)) kept += squares[std::size_t(rank++)];
  }
  if (rank > m) throw Error(text({"low_rank: expected a rank of 1 to ", m, " for ", weight.shape(), ", got ", rank}));
  // Both factors as long as each other: they learn alike.
  const Tensor<double> roots = pow(clamp_min(sum(square(rows), {1}, true), 1e-300), 0.25);
  const Tensor<double> left = narrow(u * roots, 0, 0, rank), right = narrow(rows / roots, 0, 0, rank);
  Dims down = weight.shape();
  down[0] = rank;
  return std::make_shared<LowRank<T>>(to<T>(t(wide ? left : right)).clone(),
                                      reshape(to<T>(wide ? right : left), down).clone());
}

}  // namespace detail

/// Keeps each weight of `x`, dense or pruned, as the product of two factors from now on, the best of their rank (by
/// singular values); they train on, and weights that are tied and pruned alike have the same. It costs rank (out + in)
/// in place of out in. Make optimizers afterwards. Throws Error unless rank or energy is given in its range, and for a
/// weight in another format; nothing is changed then.
template <class X>
void low_rank(X& x, const LowRankOptions& o) {
  const no_grad guard;
  if (o.rank < 0 || (o.rank != 0) == (o.energy != 0) || !(o.energy >= 0 && o.energy <= 1)) {
    throw Error(text({"low_rank: expected a rank >= 1 or an energy in (0, 1], got ", o.rank, " and ", o.energy}));
  }
  std::vector<std::pair<const TensorImpl*, const void*>> of;  // parameters and their masks
  std::vector<std::shared_ptr<void>> factors;                 // tied weights share theirs
  detail::each_weight(x, [&](const std::string& name, auto& weight) {
    detail::masked("low_rank", name, weight);
    const std::pair<const TensorImpl*, const void*> what{weight.impl(), weight.format()};
    const auto first = std::size_t(std::find(of.begin(), of.end(), what) - of.begin());
    factors.push_back(first < of.size() ? factors[first] : detail::low_rank_of(weight.dense(), o));
    of.push_back(what);
  });
  std::size_t i = 0;
  detail::each_weight(x, [&]<class T>(const std::string&, nn::Weight<T>& weight) {
    weight.set_format(std::static_pointer_cast<nn::WeightFormat<T>>(factors[i++]));
  });
}

}  // namespace TENET_CONFIG
}  // namespace tenet::prune
