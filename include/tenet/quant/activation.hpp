// What flows between the layers of a quantized model: integers with their scale, or numbers where no layer asks for
// integers.
//
// A model whose forward takes anything runs on one, as it runs on a tensor:
//   struct Net : nn::Module<Net> {
//     ...
//     auto forward(auto x) { return fc(flatten(relu(conv(x)), 1)); }
//   };
//   Tensor<float> y = int8(quant::Activation(x)).dequantize();
// Layers of int8 then give the next layer what it multiplies: sums are scaled and rounded to 8 bits once. What has no
// form for integers works on the numbers that they stand for.
#pragma once

#include <tenet/ops/activation.hpp>
#include <tenet/ops/dropout.hpp>
#include <tenet/ops/pool2d.hpp>
#include <tenet/ops/select.hpp>
#include <tenet/quant/int8.hpp>

namespace tenet::quant {
inline namespace TENET_CONFIG {

namespace detail {

/// How the results of int8 layers are read in one forward: as integers, by what parameters, or as numbers.
template <class T>
struct Readings {
  struct Result {
    const Int8Weight<T>* layer;
    bool as_numbers, as_integers;
    QuantParams params;
  };
  std::vector<Result> results;

  void as_numbers(const Int8Weight<T>* layer) { of(layer).as_numbers = true; }
  /// Values that are read by different parameters need the bounds of all.
  void as_integers(const Int8Weight<T>* layer, QuantParams p) {
    Result& r = of(layer);
    const QuantParams q = std::exchange(r.as_integers, true) ? r.params : p;
    r.params = p;
    if (p.scale == q.scale && p.zero_point == q.zero_point) return;
    r.params = choose_qparams(std::min(lowest(p), lowest(q)), std::max(highest(p), highest(q)));
  }

 private:
  static float lowest(QuantParams p) { return float(uint8_levels.low - p.zero_point) * p.scale; }
  static float highest(QuantParams p) { return float(uint8_levels.high - p.zero_point) * p.scale; }
  Result& of(const Int8Weight<T>* layer) {
    for (Result& r : results) {
      if (r.layer == layer) return r;
    }
    return results.emplace_back(Result{layer, false, false, {}});
  }
};

}  // namespace detail

/// The values of a tensor: numbers, or integers of 8 bits with what they stand for. It has no gradient.
template <class T = float>
class Activation {
  static_assert(std::is_same_v<T, float>, "an Activation stands for a tensor of float");

 public:
  Activation(Tensor<T> numbers) : numbers_(std::move(numbers)) {}
  /// Throws Error where the parameters do not fit.
  Activation(Tensor<std::uint8_t> integers, QuantParams params) : integers_(std::move(integers)), params_(params) {
    detail::check("Activation", params, uint8_levels);
  }

  /// Whether it holds integers.
  bool is_quantized() const { return bool(integers_); }
  /// The integers; undefined where it holds numbers.
  const Tensor<std::uint8_t>& integers() const { return integers_; }
  QuantParams params() const { return params_; }
  const Shape& shape() const { return is_quantized() ? integers_.shape() : numbers_.shape(); }
  std::int64_t size(std::int64_t dim) const { return is_quantized() ? integers_.size(dim) : numbers_.size(dim); }
  int dim() const { return shape().size(); }

  /// The numbers that it stands for.
  Tensor<T> dequantize() const {
    if (readings_ && layer_) readings_->as_numbers(layer_);
    return is_quantized() ? quant::dequantize(integers_, params_) : numbers_;
  }

  Activation view(const Dims& sizes) const {
    return map([&](const auto& t) { return t.view(sizes); });
  }
  Activation reshape(const Dims& sizes) const {
    return map([&](const auto& t) { return t.reshape(sizes); });
  }
  Activation flatten(std::int64_t start_dim = 0, std::int64_t end_dim = -1) const {
    return map([&](const auto& t) { return t.flatten(start_dim, end_dim); });
  }

  /// f(tensor) of the integers, which keep their scale and zero point, or of the numbers: for functions that only
  /// choose among values.
  template <class F>
  Activation map(F f) const {
    Activation y = *this;
    if (is_quantized()) y.integers_ = f(integers_);
    else y.numbers_ = f(numbers_);
    return y;
  }
  /// The same; who reads results of layers from here on is noted in `readings`. For pass_integers_().
  Activation watched(std::shared_ptr<detail::Readings<T>> readings) const {
    Activation y = *this;
    y.readings_ = std::move(readings);
    return y;
  }
  /// Numbers that were computed from this.
  Activation with(Tensor<T> numbers) const { return Activation(std::move(numbers)).watched(readings_); }
  /// What a layer of int8 makes of this: f(C(), tensor, what it is or will be quantized by) gives a tensor of C, which
  /// is uint8_t where the layer gives integers.
  template <class F>
  Activation through(const Int8Weight<T>& layer, const char* op, F f) const {
    if (readings_ && layer_) {
      if (layer.is_static()) readings_->as_integers(layer_, layer.input_params(op, numbers_));
      else readings_->as_numbers(layer_);
    }
    const auto with_input = [&](auto c) {
      return is_quantized() ? f(c, integers_, params_) : f(c, numbers_, layer.input_params(op, numbers_));
    };
    Activation y = layer.gives_integers() ? Activation(with_input(std::uint8_t()), layer.output_params())
                                          : Activation(with_input(T()));
    y.readings_ = readings_;
    y.layer_ = &layer;
    return y;
  }

 private:
  Tensor<T> numbers_;
  Tensor<std::uint8_t> integers_;
  QuantParams params_;
  std::shared_ptr<detail::Readings<T>> readings_;  // null but in pass_integers_()
  const Int8Weight<T>* layer_ = nullptr;           // whose result it is; only compared
};

namespace detail {

template <class X>
inline constexpr bool is_activation = false;
template <class T>
inline constexpr bool is_activation<Activation<T>> = true;

/// The format of a weight of int8 that computes with integers, else null.
template <class T>
const Int8Weight<T>* int8_weight(const nn::Weight<T>& weight) {
  if (weight.format_name() != Int8Weight<T>::format_name) return nullptr;
  const auto* w = static_cast<const Int8Weight<T>*>(weight.format());
  return w->sums_fit() ? w : nullptr;
}

/// The numbers of an Activation; anything else as it is.
template <class X>
const X& numbers_of(const X& x) {
  return x;
}
template <class T>
Tensor<T> numbers_of(const Activation<T>& x) {
  return x.dequantize();
}

}  // namespace detail

// ---- what the layers of nn call

/// linear() of a layer.
template <class T>
Activation<T> linear(const Activation<T>& x, const nn::Weight<T>& weight, const Tensor<T>& bias) {
  const Int8Weight<T>* w = detail::int8_weight(weight);
  if (!w) return x.with(weight.linear(x.dequantize(), bias));
  return x.through(*w, "linear", [&]<class C>(C, const auto& t, QuantParams input) {
    return w->template linear_as<C>(t, input, bias);
  });
}
/// conv2d() of a layer. Padding is 0.
template <class T>
Activation<T> conv2d(const Activation<T>& x, const nn::Weight<T>& weight, const Tensor<T>& bias,
                     const tenet::Conv2dOptions& options) {
  const Int8Weight<T>* w = detail::int8_weight(weight);
  if (!w) return x.with(weight.conv2d(x.dequantize(), bias, options));
  return x.through(*w, "conv2d", [&]<class C>(C, const auto& t, QuantParams input) {
    return w->template conv2d_as<C>(t, input, bias, options);
  });
}

/// max(x, 0): nothing to do for integers whose zero point is the lowest, as that of a layer's results before a relu is.
template <class T>
Activation<T> relu(const Activation<T>& x) {
  const auto zero = std::uint8_t(x.params().zero_point);
  return x.map([&]<class E>(const Tensor<E>& t) {
    if constexpr (std::is_same_v<E, T>) return tenet::relu(t);
    else return zero == 0 ? t : clamp_min(t, zero);
  });
}
template <class T>
Activation<T> max_pool2d(const Activation<T>& x, const MaxPool2dOptions& options) {
  return x.map([&](const auto& t) { return tenet::max_pool2d(t, options); });
}
template <class T>
Activation<T> flatten(const Activation<T>& x, std::int64_t start_dim = 0, std::int64_t end_dim = -1) {
  return x.flatten(start_dim, end_dim);
}
template <class T>
Activation<T> dropout(const Activation<T>& x, double p = 0.5, bool training = true) {
  return training ? x.with(tenet::dropout(x.dequantize(), p)) : x;
}
/// The sum of the numbers.
template <class T>
Activation<T> operator+(const Activation<T>& a, const Activation<T>& b) {
  return a.with(a.dequantize() + b.dequantize());
}

/// Runs a module that takes tensors on the numbers; nn::Module looks for it.
template <class M, class T, class... A>
auto call_with_tensors(M& module, const Activation<T>& x, const A&... rest) {
  auto y = module(detail::numbers_of(x), detail::numbers_of(rest)...);
  if constexpr (std::is_same_v<decltype(y), Tensor<T>>) return x.with(std::move(y));
  else return y;
}

}  // namespace TENET_CONFIG
}  // namespace tenet::quant
