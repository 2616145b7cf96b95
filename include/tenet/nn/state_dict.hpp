// The state of a module by name, as PyTorch names it: "conv1.weight".
#pragma once

#include <tenet/core/tensor.hpp>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenet::nn {

/// Names and tensors, in the order of the members. The tensors are the module's own, not copies.
using StateDict = std::vector<std::pair<std::string, AnyTensor>>;

/// A parameter or buffer inside a module.
struct StateSlot {
  std::string name;
  AnyTensor* tensor;
  bool trains;
};

template <class T>
struct WeightFormat;

/// Reads a format of a weight from a state: `part` holds its tensors under their own names ("values"), `shape` is
/// that of the weight. Throws Error where they do not fit; every value is untrusted.
template <class T = float>
struct WeightReader {
  std::string_view name;
  std::shared_ptr<WeightFormat<T>> (*read)(const Shape& shape, const StateDict& part);
};

struct LoadOptions {
  bool strict = true;                        ///< every name must be on both sides
  std::vector<WeightReader<>> formats = {};  ///< besides dense; weights take the formats they are stored in
};

inline namespace TENET_CONFIG {

namespace detail {

/// to <- from, element by element: same shape and type.
TENET_COLD inline void copy_elements(TensorImpl& to, const TensorImpl& from) {
  const std::size_t size = item_size(to.dtype);
  if (to.contiguous && from.contiguous) {
    if (to.numel) std::memcpy(to.data, from.data, std::size_t(to.numel) * size);
  } else {
    std::int64_t index[max_rank] = {};
    for (std::int64_t i = 0; i < to.numel; ++i) {
      std::int64_t a = 0, b = 0;
      for (int d = 0; d < to.shape.size(); ++d) {
        a += index[d] * to.strides[d];
        b += index[d] * from.strides[d];
      }
      std::memcpy(static_cast<char*>(to.data) + a * std::int64_t(size),
                  static_cast<const char*>(from.data) + b * std::int64_t(size), size);
      for (int d = to.shape.size(); d-- > 0 && ++index[d] == to.shape[d];) index[d] = 0;
    }
  }
  ++to.storage->version;
}

inline const AnyTensor* find(const StateDict& dict, const std::string& name) {
  for (const auto& [n, t] : dict) {
    if (n == name) return &t;
  }
  return nullptr;
}

}  // namespace detail

/// Throws Error listing every missing or unexpected name, wrong shape and wrong type of `dict`.
TENET_COLD inline void check_state(const std::vector<StateSlot>& slots, const StateDict& dict,
                                   const LoadOptions& options = {}) {
  std::string wrong;
  for (const StateSlot& s : slots) {
    const AnyTensor* from = detail::find(dict, s.name);
    if (!from) {
      if (options.strict) wrong += text({"\n  missing: ", s.name});
    } else if (!(from->shape() == s.tensor->shape()) || from->dtype() != s.tensor->dtype()) {
      wrong += text({"\n  ", s.name, ": expected ", s.tensor->shape(), " of ", name(s.tensor->dtype()), ", got ",
                     from->shape(), " of ", name(from->dtype())});
    }
  }
  if (options.strict) {
    for (const auto& entry : dict) {
      bool known = false;
      for (const StateSlot& s : slots) known = known || s.name == entry.first;
      if (!known) wrong += text({"\n  unexpected: ", entry.first});
    }
  }
  if (!wrong.empty()) throw Error("load_state_dict: the state does not fit the module:" + wrong);
}

/// Copies `dict` into the slots. Throws Error where it does not fit; nothing is changed then.
TENET_COLD inline void load_state(const std::vector<StateSlot>& slots, const StateDict& dict,
                                  const LoadOptions& options = {}) {
  check_state(slots, dict, options);
  for (const StateSlot& s : slots) {
    if (const AnyTensor* from = detail::find(dict, s.name)) {
      detail::copy_elements(*s.tensor->impl(), *from->impl());
    }
  }
}

}  // namespace TENET_CONFIG
}  // namespace tenet::nn
