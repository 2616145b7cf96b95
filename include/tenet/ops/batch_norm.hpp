// Batch normalization. Ioffe and Szegedy, "Batch normalization: accelerating deep network training by reducing internal
// covariate shift", 2015.
#pragma once

#include <tenet/kernels/cpu/batch_norm.hpp>
#include <tenet/ops/statistics.hpp>

namespace tenet {

/// The number of a channel's elements, their mean, and the sum of their squared deviations from it.
struct BatchMoments {
  double count, mean, deviation;
};

/// What workers that each hold a part of a batch tell each other, so that batch_norm takes statistics of the whole; see
/// parallel/sync_batch_norm.hpp. All workers call the same, equally often.
struct BatchExchange {
  TENET_TAG BatchExchange() = default;
  BatchExchange(const BatchExchange&) = delete;
  BatchExchange& operator=(const BatchExchange&) = delete;
  TENET_TAG virtual ~BatchExchange() = default;
  /// Moments of the part's channels become those of the whole batch.
  virtual void merge(BatchMoments* moments, std::int64_t channels) = 0;
  /// Sums over this worker's part of so many examples become sums over the whole batch.
  virtual void sum(double* data, std::int64_t n, std::int64_t examples) = 0;
};

inline namespace TENET_CONFIG {

namespace detail {

struct BatchNormOptions {
  double eps;
  double count;             // elements of a channel that the statistics are of; 0: they do not depend on x
  BatchExchange* exchange;  // with the workers that have the other parts of the batch, or null
};

inline cpu::ChannelShape channel_shape(const Shape& x) {
  cpu::ChannelShape s{x[0], x[1], 1};
  for (int d = 2; d < x.size(); ++d) s.inner *= x[d];
  return s;
}

/// [channels]: f(channel).
template <class T, class F>
Tensor<T> by_channel(std::int64_t channels, const F& f) {
  Tensor<T> t = empty<T>({channels});
  for (std::int64_t c = 0; c < channels; ++c) t.data()[c] = T(f(c));
  return t;
}

}  // namespace detail

namespace op {

/// (x - mean) * rstd * weight + bias, by channel. The statistics are given; where they are of x itself, backward knows.
struct BatchNorm {
  static constexpr const char* name = "batch_norm";
  using Options = detail::BatchNormOptions;

  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b,
                           const Tensor<T>& mean, const Tensor<T>& rstd, const Options& o) {
    ctx.keep(x, ctx.wants(1) || ctx.wants(2) || (ctx.wants(0) && o.count > 0));
    ctx.keep(w, ctx.wants(0));
    ctx.keep(mean);
    ctx.keep(rstd);
    const cpu::ChannelShape s = detail::channel_shape(x.shape());
    const Tensor<T> shift = b ? packed(b) : zeros<T>({s.channels}), scale = scales(w, rstd);
    Tensor<T> y = empty<T>(x.shape());
    cpu::channel_affine<T>(s, packed(x).data(), mean.data(), scale.data(), shift.data(), y.data());
    return y;
  }

  template <class T>
  static void backward(Grad grad, const Tensor<T>& gradient) {
    if (is_grad_enabled()) return recorded(grad, gradient);
    const auto& o = grad.options<Options>();
    const Tensor<T> x = grad.kept<T>(0), w = grad.kept<T>(1), mean = grad.kept<T>(2), rstd = grad.kept<T>(3);
    const Tensor<T> g = packed(gradient);
    const cpu::ChannelShape s = detail::channel_shape(g.shape());
    const Tensor<T> in = x ? packed(x) : x;
    std::vector<cpu::ChannelSums<T>> sums(std::size_t(s.channels));
    if (x) cpu::channel_sums<T>(s, in.data(), mean.data(), g.data(), sums.data());
    const auto of = [&](std::int64_t c) -> auto& { return sums[std::size_t(c)]; };
    if (grad.wants(1)) grad[1] = detail::by_channel<T>(s.channels, [&](auto c) { return of(c).dot * rstd.data()[c]; });
    if (grad.wants(2)) grad[2] = detail::by_channel<T>(s.channels, [&](auto c) { return of(c).sum; });
    if (!grad.wants(0)) return;
    const Tensor<T> dx = empty<T>(g.shape()), scale = scales(w, rstd);
    if (o.count > 0) {
      if (o.exchange) exchange(*o.exchange, sums, s.outer);
      const auto mean_of = [&](T sum) { return double(sum) / o.count; };
      const Tensor<T> slope = detail::by_channel<T>(s.channels, [&](auto c) {
        return scale.data()[c] * double(rstd.data()[c]) * rstd.data()[c] * mean_of(of(c).dot);
      });
      const Tensor<T> shift =
          detail::by_channel<T>(s.channels, [&](auto c) { return scale.data()[c] * mean_of(of(c).sum); });
      cpu::channel_gradient<T>(s, in.data(), g.data(), mean.data(), scale.data(), slope.data(), shift.data(),
                               dx.data());
    } else {
      const Tensor<T> none = zeros<T>({s.channels});
      cpu::channel_affine<T>(s, g.data(), none.data(), scale.data(), none.data(), dx.data());
    }
    grad[0] = dx;
  }

 private:
  template <class T>
  static Tensor<T> scales(const Tensor<T>& w, const Tensor<T>& rstd) {
    if (!w) return rstd;
    const Tensor<T> weight = packed(w);
    return detail::by_channel<T>(rstd.numel(), [&](auto c) { return weight.data()[c] * rstd.data()[c]; });
  }

  template <class T>
  static void exchange(BatchExchange& with, std::vector<cpu::ChannelSums<T>>& sums, std::int64_t examples) {
    std::vector<double> data;
    for (const auto& s : sums) data.insert(data.end(), {double(s.sum), double(s.dot)});
    with.sum(data.data(), std::int64_t(data.size()), examples);
    for (std::size_t c = 0; c < sums.size(); ++c) sums[c] = {T(data[2 * c]), T(data[2 * c + 1])};
  }

  /// The gradients written with operations, which can be differentiated again.
  template <class T>
  static void recorded(Grad grad, const Tensor<T>& g) {
    const auto& o = grad.options<Options>();
    if (o.exchange) throw NotImplemented("batch_norm: over several workers it cannot be differentiated twice");
    const Tensor<T> x = grad.kept<T>(0), w = grad.kept<T>(1);
    Dims others{0}, sizes{1, g.size(1)};
    for (int d = 2; d < g.dim(); ++d) others.push_back(d), sizes.push_back(1);
    Tensor<T> h, over = view(grad.kept<T>(3), sizes);  // the normalized x
    if (x && o.count > 0) {
      const Tensor<T> d = x - mean(x, others, true);
      over = rsqrt(mean(d * d, others, true) + T(o.eps));
      h = d * over;
    } else if (x) {
      h = (x - view(grad.kept<T>(2), sizes)) * over;
    }
    if (grad.wants(1)) grad[1] = sum(g * h, others);
    if (grad.wants(2)) grad[2] = sum(g, others);
    if (!grad.wants(0)) return;
    const Tensor<T> scaled = w ? g * view(w, sizes) : g;
    if (o.count > 0) grad[0] = over * (scaled - mean(scaled, others, true) - h * mean(scaled * h, others, true));
    else grad[0] = over * scaled;
  }
};

}  // namespace op

namespace detail {

TENET_COLD inline void throw_batch_norm(const char* what, std::int64_t channels, const Shape& got) {
  throw ShapeError(text({"batch_norm: expected ", what, " [", channels, "], got ", got}));
}

/// running += momentum * (now - running).
template <class T>
void update_running(const Tensor<T>& running, double momentum, const Tensor<T>& now) {
  const no_grad guard;
  running.copy_(running * T(1 - momentum) + now * T(momentum));
}

/// batch_norm() of float or double.
template <class T>
Tensor<T> run_batch_norm(const Tensor<T>& x, const Tensor<T>& running_mean, const Tensor<T>& running_var,
                         const Tensor<T>& weight, const Tensor<T>& bias, bool training, double momentum, double eps,
                         BatchExchange* exchange) {
  const cpu::ChannelShape s = channel_shape(x.shape());
  if (!training) {
    const Tensor<T> var = packed(running_var);
    const Tensor<T> rstd = by_channel<T>(s.channels, [&](auto c) { return 1 / std::sqrt(var.data()[c] + eps); });
    return apply<op::BatchNorm>(x, weight, bias, packed(running_mean).detach().clone(), rstd,
                                BatchNormOptions{eps, 0, nullptr});
  }
  std::vector<cpu::Moments<T>> part(std::size_t(s.channels));
  cpu::channel_moments<T>(s, packed(x).data(), part.data());
  std::vector<BatchMoments> all;
  for (const auto& m : part) all.push_back({double(m.count), double(m.mean), double(m.deviation)});
  if (exchange) exchange->merge(all.data(), s.channels);
  const double count = all.empty() ? 0 : all[0].count;
  if (count == 1) {
    throw ShapeError(text({"batch_norm: expected more than one value a channel in training, got input ", x.shape()}));
  }
  const auto of = [&](std::int64_t c) -> auto& { return all[std::size_t(c)]; };
  const Tensor<T> mean = by_channel<T>(s.channels, [&](auto c) { return of(c).mean; });
  if (running_mean && count > 0) {
    update_running(running_mean, momentum, mean);
    update_running(running_var, momentum,
                   by_channel<T>(s.channels, [&](auto c) { return of(c).deviation / (count - 1); }));
  }
  const Tensor<T> rstd =
      by_channel<T>(s.channels, [&](auto c) { return 1 / std::sqrt(of(c).deviation / (count > 0 ? count : 1) + eps); });
  return apply<op::BatchNorm>(x, weight, bias, mean, rstd, BatchNormOptions{eps, count, exchange});
}

}  // namespace detail

/// Normalizes each channel of `x` [n, channels, ...]: (x - mean) / sqrt(variance + eps) * weight + bias. In training
/// mean and (biased) variance are those of the batch, and the running ones, if defined, become
/// (1 - momentum) * running + momentum * those of the batch (the variance unbiased); an empty batch leaves them. In
/// evaluation they are the running ones. These, weight and bias are [channels]; weight and bias may be undefined.
/// With `exchange`, statistics are those of all workers' parts of a batch; it must outlive the graph. Half and bfloat16
/// are computed in float.
///
/// Throws ShapeError for sizes that do not fit and for one value a channel in training, Error without running
/// statistics in evaluation or with one of them. See torch.nn.functional.batch_norm.
template <TensorLike X>
tensor_t<X> batch_norm(const X& x, const tensor_t<X>& running_mean, const tensor_t<X>& running_var,
                       const tensor_t<X>& weight = {}, const tensor_t<X>& bias = {}, bool training = false,
                       double momentum = 0.1, double eps = 1e-5, BatchExchange* exchange = nullptr) {
  using T = element_t<X>;
  using C = cpu::compute_t<T>;
  static_assert(FloatElement<T>, "batch_norm of integers: convert to a floating type first, as to<float>(x)");
  if (x.dim() < 2) throw ShapeError(text({"batch_norm: expected an input [n, channels, ...], got ", x.shape()}));
  const auto check = [&](const char* what, const Tensor<T>& t) {
    if (t.defined() && !(t.shape() == Shape{x.size(1)})) detail::throw_batch_norm(what, x.size(1), t.shape());
  };
  check("a running mean", running_mean);
  check("a running variance", running_var);
  check("a weight", weight);
  check("a bias", bias);
  if (running_mean.defined() != running_var.defined() || !(training || running_mean.defined())) {
    throw Error("batch_norm: expected a running mean and variance, or in training neither");
  }
  const auto run = [&](const auto&... t) { return detail::run_batch_norm(t..., training, momentum, eps, exchange); };
  if constexpr (std::is_same_v<C, T>) {
    return run(static_cast<const Tensor<T>&>(x), running_mean, running_var, weight, bias);
  } else {
    const auto wide = [](const Tensor<T>& t) { return t ? to<C>(t) : Tensor<C>(); };
    const Tensor<C> mean = wide(running_mean), var = wide(running_var);
    const Tensor<C> y = run(to<C>(x), mean, var, wide(weight), wide(bias));
    if (training && mean) {
      const no_grad guard;
      running_mean.copy_(to<T>(mean));
      running_var.copy_(to<T>(var));
    }
    return to<T>(y);
  }
}

}  // namespace TENET_CONFIG
}  // namespace tenet
