// What formats of weights have in common: the shapes of linear() with a weight that is no tensor of its element type,
// and what they make of a state.
#pragma once

#include <tenet/nn/weight.hpp>
#include <tenet/quant/affine.hpp>

namespace tenet::quant {
inline namespace TENET_CONFIG {
namespace detail {

/// Rows of `x` [..., in] for a weight [out, in] and a bias [out] or none; throws ShapeError where they do not fit.
inline std::int64_t linear_rows(const Shape& x, const Shape& weight, const AnyTensor& bias) {
  if (weight.size() != 2) throw ShapeError(text({"linear: expected a weight [out, in], got ", weight}));
  if (x.size() == 0 || x[x.size() - 1] != weight[1]) {
    throw ShapeError(text({"linear: expected ", weight[1], " input features, got input ", x}));
  }
  if (bias && !(bias.shape() == Shape{weight[0]})) {
    throw ShapeError(text({"linear: expected a bias [", weight[0], "], got ", bias.shape()}));
  }
  std::int64_t rows = 1;
  for (int d = 0; d + 1 < x.size(); ++d) rows *= x[d];
  return rows;
}

/// [..., out].
inline Shape linear_output(const Shape& x, std::int64_t out) {
  Dims sizes = x;
  sizes[x.size() - 1] = out;
  return sizes;
}

/// The tensor `name` of a stored format as a copy, of type Q and `shape`; throws Error if it is not there or is not so.
template <class Q>
Tensor<Q> stored(const char* format, const nn::StateDict& part, const std::string& name, const Shape& shape) {
  const AnyTensor* t = nn::detail::find(part, name);
  if (!t) throw Error(text({format, ": expected a tensor ", name}));
  if (t->dtype() != dtype_of<Q> || !(t->shape() == shape)) {
    throw Error(text({format, ": expected ", name, " ", shape, " of ", tenet::name(dtype_of<Q>), ", got ", t->shape(),
                      " of ", tenet::name(t->dtype())}));
  }
  return Tensor<Q>(*t).detach().clone();
}

/// Throws Error if the stored format has other tensors than `names`.
inline void only(const char* format, const nn::StateDict& part, std::initializer_list<std::string_view> names) {
  for (const auto& entry : part) {
    bool known = false;
    for (std::string_view n : names) known = known || n == entry.first;
    if (!known) throw Error(text({format, ": does not know a tensor ", entry.first}));
  }
}

/// Throws Error unless all scales are positive.
inline void check_scales(const char* format, const Tensor<float>& scales) {
  for (std::int64_t i = 0; i < scales.numel(); ++i) check(format, {scales.data()[i], 0}, int8_levels);
}

}  // namespace detail
}  // namespace TENET_CONFIG
}  // namespace tenet::quant
