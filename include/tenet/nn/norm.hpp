// Normalization layers.
#pragma once

#include <tenet/nn/module.hpp>
#include <tenet/ops/batch_norm.hpp>
#include <tenet/ops/layer_norm.hpp>

#include <optional>

namespace tenet::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  ///< none: running statistics are the mean over all batches
  bool affine = true;                    ///< a weight and a bias that train
  bool track_running_stats = true;       ///< else those of the batch are used in evaluation too
};

/// What BatchNorm1d and BatchNorm2d have in common; see batch_norm().
template <class Self, class T>
struct BatchNorm : Module<Self> {
  Parameter<T> weight, bias;  // [channels]; these and the following are undefined where the options say so
  Buffer<T> running_mean, running_var;
  Buffer<std::int64_t> num_batches_tracked;
  std::int64_t num_features;
  BatchNormOptions options;
  std::shared_ptr<BatchExchange> exchange;  ///< with the workers that have other parts of a batch; null: it is whole

  TENET_TAG BatchNorm(std::int64_t channels, const BatchNormOptions& o) : num_features(channels), options(o) {
    if (o.affine) {
      weight = Parameter<T>(ones<T>({channels}));
      bias = Parameter<T>(zeros<T>({channels}));
    }
    if (o.track_running_stats) {
      running_mean = Buffer<T>(zeros<T>({channels}));
      running_var = Buffer<T>(ones<T>({channels}));
      num_batches_tracked = Buffer<std::int64_t>(zeros<std::int64_t>({}));
    }
  }

  /// Whether a neighbour has taken over what this layer does: it gives its input then.
  TENET_TAG bool is_folded() const { return folded_; }
  /// Becomes the identity and drops all tensors.
  TENET_TAG void fold() {
    weight = bias = {};
    running_mean = running_var = {};
    num_batches_tracked = {};
    folded_ = true;
  }

  template <class F>
  TENET_TAG void visit_members(F& f) {
    f("weight", weight);
    f("bias", bias);
    f("running_mean", running_mean);
    f("running_var", running_var);
    f("num_batches_tracked", num_batches_tracked);
  }

 protected:
  TENET_TAG Tensor<T> run(const Tensor<T>& x) const {
    if (folded_) return x;
    if (x.size(1) != num_features) {
      throw ShapeError(text({"BatchNorm: expected ", num_features, " channels, got input ", x.shape()}));
    }
    double momentum = options.momentum.value_or(0);
    if (this->is_training() && running_mean) {
      std::int64_t& batches = *num_batches_tracked.data();
      const bool counts = x.numel() > 0 || exchange;
      if (counts && batches < std::numeric_limits<std::int64_t>::max()) ++batches;
      if (!options.momentum) momentum = 1 / double(std::max<std::int64_t>(1, batches));
    }
    return batch_norm(x, running_mean, running_var, weight, bias, this->is_training() || !running_mean, momentum,
                      options.eps, this->is_training() ? exchange.get() : nullptr);
  }

 private:
  bool folded_ = false;
};

/// Batch normalization of [n, channels] or [n, channels, length]; see batch_norm(). Throws ShapeError for inputs that
/// do not fit. See torch.nn.BatchNorm1d.
template <class T = float>
struct BatchNorm1d : BatchNorm<BatchNorm1d<T>, T> {
  TENET_TAG explicit BatchNorm1d(std::int64_t channels, const BatchNormOptions& o = {})
      : BatchNorm<BatchNorm1d, T>(channels, o) {}
  TENET_TAG Tensor<T> forward(const Tensor<T>& x) const {
    if (x.dim() != 2 && x.dim() != 3) {
      throw ShapeError(text({"BatchNorm1d: expected an input of 2 or 3 dimensions, got ", x.shape()}));
    }
    return this->run(x);
  }
};

/// Batch normalization of [n, channels, h, w]; see batch_norm(). Throws ShapeError for inputs that do not fit. See
/// torch.nn.BatchNorm2d.
template <class T = float>
struct BatchNorm2d : BatchNorm<BatchNorm2d<T>, T> {
  TENET_TAG explicit BatchNorm2d(std::int64_t channels, const BatchNormOptions& o = {})
      : BatchNorm<BatchNorm2d, T>(channels, o) {}
  TENET_TAG Tensor<T> forward(const Tensor<T>& x) const {
    if (x.dim() != 4) throw ShapeError(text({"BatchNorm2d: expected an input of 4 dimensions, got ", x.shape()}));
    return this->run(x);
  }
};

inline namespace TENET_CONFIG {

/// BatchNorm1d or BatchNorm2d.
template <class M>
concept IsBatchNorm = requires(M& m) {
  []<class Self, class T>(BatchNorm<Self, T>&) {}(m);
};

}  // namespace TENET_CONFIG

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;  ///< a weight and a bias that train
};

/// Layer normalization of [..., normalized_shape]; see layer_norm(). See torch.nn.LayerNorm.
template <class T = float>
struct LayerNorm : Module<LayerNorm<T>> {
  Parameter<T> weight, bias;
  Shape normalized_shape;
  double eps;
  TENET_MODULE(weight, bias)

  TENET_TAG explicit LayerNorm(const Shape& shape, const LayerNormOptions& o = {})
      : normalized_shape(shape), eps(o.eps) {
    if (!o.elementwise_affine) return;
    weight = Parameter<T>(ones<T>(shape));
    bias = Parameter<T>(zeros<T>(shape));
  }
  TENET_TAG explicit LayerNorm(std::int64_t size, const LayerNormOptions& o = {}) : LayerNorm(Shape{size}, o) {}
  TENET_TAG Tensor<T> forward(const Tensor<T>& x) const { return layer_norm(x, normalized_shape, weight, bias, eps); }
};

}  // namespace tenet::nn
