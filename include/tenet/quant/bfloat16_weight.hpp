// Weights kept as bfloat16: half the memory, and what float has of range.
#pragma once

#include <tenet/quant/weight_only.hpp>

namespace tenet::quant {
inline namespace TENET_CONFIG {

template <class T = float>
struct Bfloat16Weight final : detail::WeightOnly<Bfloat16Weight<T>, T> {
  static constexpr const char* format_name = "bfloat16";

  nn::Buffer<bfloat16> values;

  Bfloat16Weight() = default;
  explicit Bfloat16Weight(const Tensor<float>& weight) : values(weight.to<bfloat16>()) {}

  Shape shape() const override { return values.shape(); }
  void collect(const std::string& prefix, std::vector<nn::StateSlot>& slots) override {
    slots.push_back(this->slot(prefix, "values", values));
  }
  /// See nn::WeightReader.
  static std::shared_ptr<nn::WeightFormat<T>> read(const Shape& shape, const nn::StateDict& part) {
    detail::only(format_name, part, {"values"});
    auto w = std::make_shared<Bfloat16Weight>();
    w->values = nn::Buffer<bfloat16>(detail::stored<bfloat16>(format_name, part, "values", shape));
    return w;
  }

  void expand(std::int64_t first, std::int64_t rows, float* to) const {
    const std::int64_t k = values.numel() / values.shape()[0];
    cpu::convert(rows * k, to, values.data() + first * k);
  }
  cpu::NarrowMatrix<bfloat16> matrix() const {
    const std::int64_t k = values.numel() / values.shape()[0];
    return {k, 64, values.data(), k, nullptr};  // groups, so that sums are short chains
  }
};

}  // namespace TENET_CONFIG
}  // namespace tenet::quant
