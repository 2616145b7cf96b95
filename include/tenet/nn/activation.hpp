// Activation layers: the functions of ops/activation.hpp and ops/softmax.hpp as modules.
#pragma once

#include <tenet/nn/module.hpp>
#include <tenet/ops/activation.hpp>
#include <tenet/ops/softmax.hpp>

namespace tenet::nn {

/// max(x, 0). See torch.nn.ReLU.
struct ReLU : Module<ReLU> {
  using increasing = void;
  TENET_MODULE()
  template <class X>
  TENET_TAG auto forward(X&& x) const -> decltype(relu(std::forward<X>(x))) {
    return relu(std::forward<X>(x));
  }
};

/// x where positive, else negative_slope * x. See torch.nn.LeakyReLU.
struct LeakyReLU : Module<LeakyReLU> {
  double negative_slope;
  TENET_MODULE()
  TENET_TAG explicit LeakyReLU(double slope = 0.01) : negative_slope(slope) {}
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(X&& x) const {
    return leaky_relu(std::forward<X>(x), negative_slope);
  }
};

/// x where positive, else alpha (e^x - 1). See torch.nn.ELU.
struct ELU : Module<ELU> {
  double alpha;
  TENET_MODULE()
  TENET_TAG explicit ELU(double a = 1) : alpha(a) {}
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(X&& x) const {
    return elu(std::forward<X>(x), alpha);
  }
};

/// x times the normal distribution function at x. See torch.nn.GELU.
struct GELU : Module<GELU> {
  GeluApproximate approximate;
  TENET_MODULE()
  TENET_TAG explicit GELU(GeluApproximate form = GeluApproximate::none) : approximate(form) {}
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(X&& x) const {
    return gelu(std::forward<X>(x), approximate);
  }
};

/// x sigmoid(x). See torch.nn.SiLU.
struct SiLU : Module<SiLU> {
  TENET_MODULE()
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(X&& x) const {
    return silu(std::forward<X>(x));
  }
};

/// 1 / (1 + e^-x). See torch.nn.Sigmoid.
struct Sigmoid : Module<Sigmoid> {
  TENET_MODULE()
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(X&& x) const {
    return sigmoid(std::forward<X>(x));
  }
};

/// x clamped to [low, high]. See torch.nn.Hardtanh.
struct Hardtanh : Module<Hardtanh> {
  double low, high;
  TENET_MODULE()
  TENET_TAG explicit Hardtanh(double l = -1, double h = 1) : low(l), high(h) {}
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(X&& x) const {
    return hardtanh(std::forward<X>(x), low, high);
  }
};

/// min(max(x, 0), 6). See torch.nn.ReLU6.
struct ReLU6 : Module<ReLU6> {
  TENET_MODULE()
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(X&& x) const {
    return relu6(std::forward<X>(x));
  }
};

/// A scaled ELU that normalizes by itself. See torch.nn.SELU.
struct SELU : Module<SELU> {
  TENET_MODULE()
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(X&& x) const {
    return selu(std::forward<X>(x));
  }
};

/// x relu6(x + 3) / 6. See torch.nn.Hardswish.
struct Hardswish : Module<Hardswish> {
  TENET_MODULE()
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(X&& x) const {
    return hardswish(std::forward<X>(x));
  }
};

/// x tanh(softplus(x)). See torch.nn.Mish.
struct Mish : Module<Mish> {
  TENET_MODULE()
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(X&& x) const {
    return mish(std::forward<X>(x));
  }
};

/// Hyperbolic tangent. See torch.nn.Tanh.
struct Tanh : Module<Tanh> {
  TENET_MODULE()
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(X&& x) const {
    return tanh(std::forward<X>(x));
  }
};

/// log(1 + e^(beta x)) / beta, and x itself where beta x > threshold. See torch.nn.Softplus.
struct Softplus : Module<Softplus> {
  double beta, threshold;
  TENET_MODULE()
  TENET_TAG explicit Softplus(double b = 1, double t = 20) : beta(b), threshold(t) {}
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(X&& x) const {
    return softplus(std::forward<X>(x), beta, threshold);
  }
};

/// e^x over the sum of e^x along `dim`. See torch.nn.Softmax.
struct Softmax : Module<Softmax> {
  std::int64_t dim;
  TENET_MODULE()
  TENET_TAG explicit Softmax(std::int64_t along) : dim(along) {}
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(const X& x) const {
    return softmax(x, dim);
  }
};

/// The logarithm of Softmax. See torch.nn.LogSoftmax.
struct LogSoftmax : Module<LogSoftmax> {
  std::int64_t dim;
  TENET_MODULE()
  TENET_TAG explicit LogSoftmax(std::int64_t along) : dim(along) {}
  template <TensorLike X>
  TENET_TAG tensor_t<X> forward(const X& x) const {
    return log_softmax(x, dim);
  }
};

}  // namespace tenet::nn
