// Compares gradients with finite differences.
#pragma once

#include <tenet/autograd/backward.hpp>

#include <cmath>

namespace tenet::autograd {

struct GradcheckOptions {
  double eps = 1e-6;   ///< step of the central difference
  double atol = 1e-5;  ///< allowed: |analytic - numeric| <= atol + rtol * |numeric|
  double rtol = 1e-3;
};

inline namespace TENET_CONFIG {

namespace detail {

/// Weights of the output's elements: fixed, of both signs, none near zero.
inline Tensor<double> projection(const Shape& shape) {
  Tensor<double> w = empty<double>(shape);
  for (std::int64_t i = 0; i < w.numel(); ++i) {
    const double u = double((std::uint64_t(i + 1) * 0x9E3779B97F4A7C15u) >> 40) / double(1 << 24);
    w.data()[i] = (u < 0.5 ? -1.0 : 1.0) * (0.5 + u);
  }
  return w;
}

/// The output's projection where the element at `x` is shifted; `x` is as before afterwards, whatever is thrown.
template <class F>
double projected(const F& f, const std::vector<Tensor<double>>& inputs, const Tensor<double>& weights, double* x,
                 double shift) {
  const struct Restored {
    double *at, value;
    ~Restored() { *at = value; }
  } restored{x, *x};
  *x += shift;
  const no_grad guard;
  const std::vector<double> y = f(inputs).to_vector();
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * weights.data()[i];
  return sum;
}

/// Calls visit(address) for the elements of `t` in row-major order, whatever its strides.
template <class Visit>
void each_element(const Tensor<double>& t, const Visit& visit) {
  std::int64_t index[max_rank] = {};
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    double* p = t.data();
    for (int d = 0; d < t.dim(); ++d) p += index[d] * t.strides()[d];
    visit(p);
    for (int d = t.dim(); d-- > 0 && ++index[d] == t.shape()[d];) index[d] = 0;
  }
}

}  // namespace detail

/// Checks the gradients of `f` at `inputs`: f(const std::vector<Tensor<double>>&) -> Tensor<double>, of any
/// shapes. Every input that requires a gradient is compared, element by element, with the central difference
/// of a fixed projection of the output. Throws Error naming the input, the element and both values; returns
/// true otherwise. Inputs may be strided but must not overlap themselves (expand inside `f`).
/// See torch.autograd.gradcheck.
template <class F>
bool gradcheck(const F& f, const std::vector<Tensor<double>>& inputs, const GradcheckOptions& options = {}) {
  const Tensor<double> y = f(inputs);
  const Tensor<double> weights = detail::projection(y.shape());
  std::vector<AnyTensor> wanted;
  for (const auto& x : inputs) {
    if (x.requires_grad()) wanted.push_back(x);
  }
  if (wanted.empty()) throw Error("gradcheck: no input requires a gradient");
  if (!y.requires_grad()) throw Error("gradcheck: the output takes part in no graph");
  const auto analytic =
      grad<double>(std::vector<Tensor<double>>{y}, wanted, {.grad_outputs = {weights}, .allow_unused = true});
  std::size_t k = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) continue;
    const Tensor<double> g(analytic[k++]);
    if (g && !(g.shape() == inputs[i].shape())) {
      throw Error(
          text({"gradcheck: input ", i, " of shape ", inputs[i].shape(), " got a gradient of shape ", g.shape()}));
    }
    const std::vector<double> values = g ? g.to_vector() : std::vector<double>(std::size_t(inputs[i].numel()), 0.0);
    std::size_t e = 0;
    detail::each_element(inputs[i], [&](double* x) {
      const double above = detail::projected(f, inputs, weights, x, options.eps);
      const double below = detail::projected(f, inputs, weights, x, -options.eps);
      const double numeric = (above - below) / (2 * options.eps), value = values[e];
      if (!(std::abs(value - numeric) <= options.atol + options.rtol * std::abs(numeric))) {
        throw Error(text({"gradcheck: input ", i, " of shape ", inputs[i].shape(), ", element ", e, ": backward gives ",
                          value, ", the finite difference ", numeric}));
      }
      ++e;
    });
  }
  return true;
}

/// Checks the gradients of the gradients of `f`, with respect to the inputs and to the gradient of the output.
/// Arguments and errors as gradcheck(). See torch.autograd.gradgradcheck.
template <class F>
bool gradgradcheck(const F& f, const std::vector<Tensor<double>>& inputs, const GradcheckOptions& options = {}) {
  const Tensor<double> y = f(inputs);
  std::vector<Tensor<double>> all = inputs;
  all.push_back(detail::projection(y.shape()).requires_grad_());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) continue;
    const auto gradient_of_i = [&](const std::vector<Tensor<double>>& x) {
      const enable_grad guard;
      const std::vector<Tensor<double>> in(x.begin(), x.end() - 1);
      const auto g = grad<double>(std::vector<Tensor<double>>{f(in)}, std::vector<AnyTensor>{in[i]},
                                  {.grad_outputs = {x.back()}, .create_graph = true, .allow_unused = true});
      return g[0] ? Tensor<double>(g[0]) : zeros<double>(in[i].shape());
    };
    // A gradient that is constant in everything has nothing to check.
    if (gradient_of_i(all).requires_grad()) gradcheck(gradient_of_i, all, options);
  }
  return true;
}

}  // namespace TENET_CONFIG
}  // namespace tenet::autograd
