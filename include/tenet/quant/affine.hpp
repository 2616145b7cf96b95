// Affine quantization: x is kept as an integer q that stands for (q - zero_point) * scale.
//
// Values round to the nearest level, ties to even, and saturate at the ends. Definitions are PyTorch's. Empty tensors
// and values that are not finite are errors.
#pragma once

#include <tenet/kernels/cpu/quantize.hpp>
#include <tenet/ops/grad_math.hpp>
#include <tenet/ops/view.hpp>

#include <cmath>
#include <limits>

namespace tenet::quant {

/// What an integer q of a tensor stands for: (q - zero_point) * scale.
struct QuantParams {
  float scale = 1;
  std::int32_t zero_point = 0;
};

/// The integers that are used.
struct Levels {
  std::int32_t low = 0, high = 255;
};
inline constexpr Levels uint8_levels{0, 255}, int8_levels{-128, 127}, int4_levels{-8, 7};

/// One scale and one zero point for each index of dimension `axis`.
struct ChannelParams {
  Tensor<float> scales;
  Tensor<std::int32_t> zero_points;
  std::int64_t axis = 0;
};

inline namespace TENET_CONFIG {

namespace detail {

template <class Q>
constexpr Levels levels_of() {
  static_assert(std::is_same_v<Q, std::uint8_t> || std::is_same_v<Q, std::int8_t>, "quantize to uint8_t or int8_t");
  return std::is_same_v<Q, std::uint8_t> ? uint8_levels : int8_levels;
}

/// Throws Error unless `levels` are several of `all`, by default of those that float can round to.
inline void check_levels(const char* op, Levels levels, Levels all = {-(1 << 20), 1 << 20}) {
  if (levels.low < all.low || levels.low >= levels.high || levels.high > all.high) {
    throw Error(text({op, ": expected levels low < high in [", all.low, ", ", all.high, "], got ", levels.low, " and ",
                      levels.high}));
  }
}

inline void check(const char* op, QuantParams p, Levels levels) {
  if (!(p.scale >= std::numeric_limits<float>::min() && p.scale <= std::numeric_limits<float>::max())) {
    throw Error(text({op, ": expected a positive scale, got ", p.scale}));
  }
  if (p.zero_point < levels.low || p.zero_point > levels.high) {
    throw Error(text({op, ": expected a zero point in [", levels.low, ", ", levels.high, "], got ", p.zero_point}));
  }
}

inline void check_values(const char* op, const Shape& shape, bool finite) {
  if (shape.numel() == 0) throw ShapeError(text({op, ": expected elements, got shape ", shape}));
  if (!finite) throw Error(text({op, ": expected finite numbers, got an infinity or NaN"}));
}

inline cpu::QuantizeOptions kernel_options(QuantParams p, Levels levels) {
  return {1.0f / p.scale, p.zero_point, levels.low, levels.high};
}

/// Bounds of the elements; throws for an empty tensor and for values that are not finite.
template <class T>
cpu::Bounds bounds(const char* op, const Tensor<T>& x) {
  static_assert(std::is_same_v<T, float>, "quantization takes tensors of float: convert with to<float>() first");
  check_values(op, x.shape(), true);
  const cpu::Bounds b = cpu::bounds(x.numel(), packed(x).data());
  check_values(op, x.shape(), b.finite);
  return b;
}

/// Calls f(channel, first element, elements) for each run of a contiguous tensor that belongs to one channel.
template <class F>
void each_channel_run(const Shape& shape, int axis, F f) {
  std::int64_t inner = 1;
  for (int d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  const std::int64_t channels = shape[axis], runs = inner ? shape.numel() / inner : 0;
  for (std::int64_t r = 0; r < runs; ++r) f(r % channels, r * inner, inner);
}

template <class T>
int channel_axis(const char* op, const Tensor<T>& x, const ChannelParams& p, Levels levels) {
  const int axis = wrap_dim(op, p.axis, x.dim());
  const Shape expected{x.shape()[axis]};
  if (!(p.scales.shape() == expected) || !(p.zero_points.shape() == expected)) {
    throw ShapeError(text({op, ": expected ", expected[0], " scales and zero points, got ", p.scales.shape(), " and ",
                           p.zero_points.shape()}));
  }
  for (std::int64_t c = 0; c < expected[0]; ++c) check(op, {p.scales(c), p.zero_points(c)}, levels);
  return axis;
}

}  // namespace detail

/// The parameters for values in [low, high], widened to hold 0, which is exact: scale = (high - low) / (levels - 1),
/// at least 2^-23. `symmetric`: the zero point is the middle level, scale = max(-low, high) / ((levels - 1) / 2).
/// Throws Error for bounds that are not finite or not in order, as all of these do for levels that are none. See
/// torch.ao.quantization.observer.MinMaxObserver.
inline QuantParams choose_qparams(float low, float high, Levels levels = uint8_levels, bool symmetric = false) {
  if (!(low <= high && std::isfinite(low) && std::isfinite(high))) {
    throw Error(text({"choose_qparams: expected finite bounds in order, got ", low, " and ", high}));
  }
  detail::check_levels("choose_qparams", levels);
  constexpr float least = std::numeric_limits<float>::epsilon();
  const float steps = float(levels.high - levels.low);
  low = std::min(low, 0.0f), high = std::max(high, 0.0f);
  if (symmetric) {
    const std::int32_t middle = levels.low < 0 ? 0 : levels.low + (levels.high - levels.low + 1) / 2;
    return {std::max(std::max(-low, high) / (steps / 2), least), middle};
  }
  float scale = (high - low) / steps;
  if (!std::isfinite(scale)) scale = high / steps - low / steps;
  scale = std::max(scale, least);
  const std::int32_t zero = levels.low - std::int32_t(std::nearbyint(low / scale));
  return {scale, std::min(std::max(zero, levels.low), levels.high)};
}

/// The same for the values of a tensor. Throws ShapeError if it is empty, Error if a value is not finite.
template <TensorLike X>
QuantParams choose_qparams(const X& x, Levels levels = uint8_levels, bool symmetric = false) {
  const cpu::Bounds b = detail::bounds("choose_qparams", static_cast<const tensor_t<X>&>(x));
  return choose_qparams(b.low, b.high, levels, symmetric);
}

/// Parameters for each index of dimension `axis`. See torch.ao.quantization.observer.PerChannelMinMaxObserver.
template <TensorLike X>
ChannelParams choose_channel_qparams(const X& x, Levels levels = int8_levels, bool symmetric = true,
                                     std::int64_t axis = 0) {
  static_assert(std::is_same_v<element_t<X>, float>, "quantization takes tensors of float");
  const int d = wrap_dim("choose_channel_qparams", axis, x.dim());
  detail::check_values("choose_channel_qparams", x.shape(), true);
  const std::int64_t channels = x.shape()[d];
  ChannelParams p{empty<float>({channels}), empty<std::int32_t>({channels}), axis};
  std::vector<cpu::Bounds> all(std::size_t(channels),
                               {std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest(), true});
  const Tensor<float> from = packed(static_cast<const Tensor<float>&>(x));
  detail::each_channel_run(x.shape(), d, [&](std::int64_t c, std::int64_t at, std::int64_t n) {
    const cpu::Bounds b = cpu::bounds(n, from.data() + at);
    cpu::Bounds& sum = all[std::size_t(c)];
    sum = {std::min(sum.low, b.low), std::max(sum.high, b.high), sum.finite && b.finite};
  });
  for (std::int64_t c = 0; c < channels; ++c) {
    const cpu::Bounds& b = all[std::size_t(c)];
    detail::check_values("choose_channel_qparams", x.shape(), b.finite);
    const QuantParams q = choose_qparams(b.low, b.high, levels, symmetric);
    p.scales(c) = q.scale, p.zero_points(c) = q.zero_point;
  }
  return p;
}

/// `x` as integers. Throws ShapeError if it is empty, Error if a value is not finite, the scale is not positive, or the
/// zero point is no level. See torch.quantize_per_tensor.
template <class Q = std::uint8_t, TensorLike X>
Tensor<Q> quantize(const X& x, QuantParams params, Levels levels = detail::levels_of<Q>()) {
  static_assert(std::is_same_v<element_t<X>, float>, "quantization takes tensors of float");
  detail::check_levels("quantize", levels, detail::levels_of<Q>());
  detail::check("quantize", params, levels);
  Tensor<Q> out = empty<Q>(x.shape());
  const Tensor<float> from = packed(static_cast<const Tensor<float>&>(x));
  const bool finite = cpu::quantize(x.numel(), out.data(), from.data(), detail::kernel_options(params, levels));
  detail::check_values("quantize", x.shape(), finite);
  return out;
}

/// The same with parameters for each index of a dimension. See torch.quantize_per_channel.
template <class Q = std::int8_t, TensorLike X>
Tensor<Q> quantize(const X& x, const ChannelParams& params, Levels levels = detail::levels_of<Q>()) {
  static_assert(std::is_same_v<element_t<X>, float>, "quantization takes tensors of float");
  detail::check_levels("quantize", levels, detail::levels_of<Q>());
  const int axis = detail::channel_axis("quantize", static_cast<const Tensor<float>&>(x), params, levels);
  Tensor<Q> out = empty<Q>(x.shape());
  const Tensor<float> from = packed(static_cast<const Tensor<float>&>(x));
  bool finite = true;
  detail::each_channel_run(x.shape(), axis, [&](std::int64_t c, std::int64_t at, std::int64_t n) {
    const QuantParams p{params.scales(c), params.zero_points(c)};
    finite = cpu::quantize(n, out.data() + at, from.data() + at, detail::kernel_options(p, levels)) && finite;
  });
  detail::check_values("quantize", x.shape(), finite);
  return out;
}

/// What the integers stand for.
template <TensorLike X>
Tensor<float> dequantize(const X& q, QuantParams params) {
  using Q = element_t<X>;
  Tensor<float> out = empty<float>(q.shape());
  cpu::dequantize(q.numel(), out.data(), packed(static_cast<const Tensor<Q>&>(q)).data(), params.scale,
                  params.zero_point);
  return out;
}
template <TensorLike X>
Tensor<float> dequantize(const X& q, const ChannelParams& params) {
  using Q = element_t<X>;
  const int axis = detail::channel_axis("dequantize", static_cast<const Tensor<Q>&>(q), params, detail::levels_of<Q>());
  Tensor<float> out = empty<float>(q.shape());
  const Tensor<Q> from = packed(static_cast<const Tensor<Q>&>(q));
  detail::each_channel_run(q.shape(), axis, [&](std::int64_t c, std::int64_t at, std::int64_t n) {
    cpu::dequantize(n, out.data() + at, from.data() + at, params.scales(c), params.zero_points(c));
  });
  return out;
}

namespace op {

/// The integer that x rounds to, before the zero point is added: at most one beyond the ends.
template <class T>
TENET_ALWAYS_INLINE T rounded(T x, T scale, T zero, Levels levels) {
  constexpr T whole = sizeof(T) == 8 ? T(0x1.8p52) : T(0x1.8p23f);  // has the step 1: adding it rounds
  const T low = T(levels.low - 1) - zero, high = T(levels.high + 1) - zero;
  T q = x * (T(1) / scale);
  q = q < low ? low : q;
  q = q > high ? high : q;
  return (q + whole) - whole;
}

struct FakeQuantizeValue {
  Levels levels;
  template <class T>
  TENET_ALWAYS_INLINE T operator()(T x, T scale, T zero) const {
    T q = rounded(x, scale, zero, levels);
    q = q < T(levels.low) - zero ? T(levels.low) - zero : q;
    q = q > T(levels.high) - zero ? T(levels.high) - zero : q;
    return q * scale;
  }
};

/// 1 where no value saturated.
struct FakeQuantizeMask {
  Levels levels;
  template <class T>
  TENET_ALWAYS_INLINE T operator()(T x, T scale, T zero) const {
    const T q = rounded(x, scale, zero, levels) + zero;
    return T((q >= T(levels.low)) & (q <= T(levels.high)));
  }
};

struct FakeQuantizeInside {
  static constexpr const char* name = "fake_quantize_mask";
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& x, const Tensor<T>& scale, const Tensor<T>& zero, Levels levels) {
    Tensor<T> out = empty<T>(x.shape());
    tenet::detail::run_ternary(FakeQuantizeMask{levels}, out, x, scale, zero);
    return out;
  }
};

/// The scales and zero points broadcast to x.
struct FakeQuantize {
  static constexpr const char* name = "fake_quantize";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, const Tensor<T>& scale, const Tensor<T>& zero,
                           Levels levels) {
    ctx.keep(x);
    ctx.keep(scale);
    ctx.keep(zero);
    Tensor<T> out = empty<T>(x.shape());
    tenet::detail::run_ternary(FakeQuantizeValue{levels}, out, x, scale, zero);
    return out;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    if (!grad.wants(0)) return;
    grad[0] = mul(g, apply<FakeQuantizeInside>(grad.kept<T>(0).detach(), grad.kept<T>(1), grad.kept<T>(2),
                                               grad.options<Levels>()));
  }
};

}  // namespace op

/// dequantize(quantize(x)), of any levels, as training sees it: the gradient goes straight through where no value
/// saturated, and is 0 elsewhere. NaN stays NaN. Throws Error where the parameters do not fit. See
/// torch.fake_quantize_per_tensor_affine.
template <TensorLike X>
tensor_t<X> fake_quantize(const X& x, QuantParams params, Levels levels = uint8_levels) {
  using T = element_t<X>;
  static_assert(FloatElement<T>, "fake_quantize takes tensors of a floating type");
  detail::check_levels("fake_quantize", levels);
  detail::check("fake_quantize", params, levels);
  return apply<op::FakeQuantize>(static_cast<const Tensor<T>&>(x), scalar(T(params.scale)),
                                 scalar(T(float(params.zero_point))), levels);
}

/// The same with parameters for each index of a dimension. See torch.fake_quantize_per_channel_affine.
template <TensorLike X>
tensor_t<X> fake_quantize(const X& x, const ChannelParams& params, Levels levels = int8_levels) {
  using T = element_t<X>;
  static_assert(FloatElement<T>, "fake_quantize takes tensors of a floating type");
  detail::check_levels("fake_quantize", levels);
  const int axis = detail::channel_axis("fake_quantize", static_cast<const Tensor<T>&>(x), params, levels);
  Dims sizes;
  for (int d = 0; d < x.dim(); ++d) sizes.push_back(d == axis ? x.shape()[d] : 1);
  return apply<op::FakeQuantize>(static_cast<const Tensor<T>&>(x), reshape(params.scales.to<T>(), sizes),
                                 reshape(params.zero_points.to<T>(), sizes), levels);
}

}  // namespace TENET_CONFIG
}  // namespace tenet::quant
