// A size in two dimensions: the height and width of kernels, strides, padding.
#pragma once

#include <tenet/core/shape.hpp>

namespace tenet {

/// Height and width; one number stands for both: `{.stride = 2, .padding = {1, 2}}`.
struct Pair {
  std::int64_t h, w;
  TENET_TAG constexpr Pair(std::int64_t both) : h(both), w(both) {}
  TENET_TAG constexpr Pair(std::int64_t height, std::int64_t width) : h(height), w(width) {}
  TENET_TAG friend constexpr bool operator==(const Pair&, const Pair&) = default;
  /// "[5, 3]"
  TENET_TAG TENET_COLD std::string str() const { return text({"[", h, ", ", w, "]"}); }
};

inline namespace TENET_CONFIG {
namespace detail {

/// Outputs of a sliding window along one dimension: floor((in + 2 pad - dilation (kernel - 1) - 1) / stride) + 1.
/// With `ceil`, also one that starts inside the input or its left padding but ends outside. Throws ShapeError
/// naming `op` when no window fits or an argument is out of range.
inline std::int64_t window_outputs(const char* op, std::int64_t in, std::int64_t kernel, std::int64_t stride,
                                   std::int64_t pad, std::int64_t dilation, bool ceil = false) {
  constexpr std::int64_t limit = std::int64_t(1) << 40;  // products below stay far from overflow
  if (kernel < 1 || stride < 1 || pad < 0 || dilation < 1 || kernel > limit || stride > limit || pad > limit ||
      dilation > limit / kernel) {
    throw ShapeError(text({op, ": expected kernel, stride and dilation >= 1 and padding >= 0, got kernel ", kernel,
                           ", stride ", stride, ", padding ", pad, ", dilation ", dilation}));
  }
  const std::int64_t span = dilation * (kernel - 1) + 1, room = in + 2 * pad - span;
  if (room < 0) {
    throw ShapeError(text({op, ": a kernel that spans ", span, " does not fit a size of ", in, " padded by ", pad}));
  }
  std::int64_t out = room / stride + 1;
  if (ceil && room % stride && out * stride < in + pad) ++out;
  return out;
}

}  // namespace detail
}  // namespace TENET_CONFIG
}  // namespace tenet
