// Weights of 4 or 8 bits, each group of neighbours in a row with a scale of its own.
#pragma once

#include <tenet/quant/weight_only.hpp>

namespace tenet::quant {
inline namespace TENET_CONFIG {

/// A weight of `Bits` bits, symmetric. A row of k elements is cut into groups of `group_size`, the last may be shorter;
/// integers of 4 bits lie two a byte, as cpu::pack_int4 packs each group.
template <class T = float, int Bits = 4>
struct GroupWeight final : detail::WeightOnly<GroupWeight<T, Bits>, T> {
  static_assert(Bits == 4 || Bits == 8);
  static constexpr const char* format_name = Bits == 4 ? "int4" : "int8_groups";
  static constexpr Levels levels = Bits == 4 ? int4_levels : int8_levels;
  using Stored = std::conditional_t<Bits == 4, std::uint8_t, std::int8_t>;

  nn::Buffer<Stored> values;            // [out, bytes of a row]
  nn::Buffer<float> scales;             // [out, groups]
  nn::Buffer<std::int64_t> group_size;  // [1]
  Shape of;

  GroupWeight() = default;
  /// Quantizes `weight`. Throws ShapeError if it is empty or a scalar, Error if a value is not finite or the group size
  /// not even and positive.
  GroupWeight(const Tensor<float>& weight, std::int64_t size) : of(weight.shape()) {
    if (of.size() == 0) throw ShapeError(text({format_name, ": expected a weight [out, ...], got a scalar"}));
    detail::check_values(format_name, of, true);
    check_size(size);
    group_size = nn::Buffer<std::int64_t>(full<std::int64_t>({1}, size));
    values = nn::Buffer<Stored>(empty<Stored>({of[0], row_bytes()}));
    scales = nn::Buffer<float>(empty<float>({of[0], groups()}));
    const Tensor<float> from = packed(weight);
    Tensor<std::int8_t> q = empty<std::int8_t>({std::min(size, columns())});
    each_group(0, of[0], [&](std::int64_t at, std::int64_t n, Stored* to, float& scale) {
      const float* x = from.data() + at;
      const cpu::Bounds b = cpu::bounds(n, x);
      detail::check_values(format_name, of, b.finite);
      const QuantParams p = choose_qparams(b.low, b.high, levels, true);
      scale = p.scale;
      if constexpr (Bits == 4) {
        cpu::quantize(n, q.data(), x, detail::kernel_options(p, levels));
        cpu::pack_int4(n, to, q.data());
      } else {
        cpu::quantize(n, to, x, detail::kernel_options(p, levels));
      }
    });
  }

  Shape shape() const override { return of; }
  void collect(const std::string& prefix, std::vector<nn::StateSlot>& slots) override {
    slots.push_back(this->slot(prefix, "values", values));
    slots.push_back(this->slot(prefix, "scales", scales));
    slots.push_back(this->slot(prefix, "group_size", group_size));
  }
  bool fits(const nn::StateDict& part) const override {
    return std::static_pointer_cast<GroupWeight>(read(of, part))->group_size(0) == group_size(0);
  }
  /// See nn::WeightReader.
  static std::shared_ptr<nn::WeightFormat<T>> read(const Shape& shape, const nn::StateDict& part) {
    detail::only(format_name, part, {"values", "scales", "group_size"});
    auto w = std::make_shared<GroupWeight>();
    w->of = shape;
    detail::check_values(format_name, shape, shape.size() >= 1);
    w->group_size = nn::Buffer<std::int64_t>(detail::stored<std::int64_t>(format_name, part, "group_size", {1}));
    check_size(w->group_size(0));
    w->values = nn::Buffer<Stored>(detail::stored<Stored>(format_name, part, "values", {shape[0], w->row_bytes()}));
    w->scales = nn::Buffer<float>(detail::stored<float>(format_name, part, "scales", {shape[0], w->groups()}));
    detail::check_scales(format_name, w->scales);
    return w;
  }

  void expand(std::int64_t first, std::int64_t rows, float* to) const {
    check_groups();
    each_group(first, rows, [&](std::int64_t at, std::int64_t n, const Stored* from, float scale) {
      float* const out = to + at - first * columns();
      if constexpr (Bits == 4) cpu::dequantize_int4(n, out, from, scale);
      else cpu::dequantize(n, out, from, scale, 0);
    });
  }

  cpu::NarrowMatrix<Stored> matrix() const {
    check_groups();
    return {columns(), group_size(0), values.data(), row_bytes(), scales.data()};
  }

 private:
  /// Another group size that came with a state would not fit the other tensors.
  void check_groups() const {
    const std::int64_t size = group_size(0);
    check_size(size);
    if (!(scales.shape() == Shape{of[0], groups()})) {
      throw Error(text({format_name, ": groups of ", size, " do not fit scales ", scales.shape()}));
    }
  }
  static void check_size(std::int64_t size) {
    if (size < 2 || size % 2) {
      throw Error(text({format_name, ": expected an even positive group size, got ", size}));
    }
  }
  std::int64_t columns() const { return of.numel() / of[0]; }
  std::int64_t groups() const { return (columns() - 1) / group_size(0) + 1; }
  std::int64_t row_bytes() const { return Bits == 4 ? cpu::int4_bytes(columns()) : columns(); }

  /// Calls f(first element, elements, their bytes, their scale) for each group of some rows.
  template <class F>
  void each_group(std::int64_t first, std::int64_t rows, F f) const {
    const std::int64_t k = columns(), size = group_size(0), count = groups(), bytes = row_bytes();
    for (std::int64_t i = first; i < first + rows; ++i) {
      for (std::int64_t g = 0; g < count; ++g) {
        const std::int64_t at = g * size, n = std::min(size, k - at);
        f(i * k + at, n, values.data() + i * bytes + (Bits == 4 ? at / 2 : at), scales.data()[i * count + g]);
      }
    }
  }
};

}  // namespace TENET_CONFIG
}  // namespace tenet::quant
