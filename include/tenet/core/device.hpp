// Where the memory of a tensor lies.
#pragma once

#include <tenet/core/error.hpp>

#include <cstdint>
#include <string>

namespace tenet {

enum class DeviceType : std::uint8_t { cpu, cuda };

struct Device {
  DeviceType type = DeviceType::cpu;
  std::int8_t index = 0;

  TENET_TAG bool is_cpu() const { return type == DeviceType::cpu; }
  TENET_TAG friend bool operator==(Device, Device) = default;
  /// "cpu", "cuda:0"
  TENET_TAG TENET_COLD std::string str() const { return is_cpu() ? "cpu" : text({"cuda:", int(index)}); }
};

inline constexpr Device cpu_device{};

}  // namespace tenet
