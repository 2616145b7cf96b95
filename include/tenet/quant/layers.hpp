// The layers of a model that a call changes: by their types, and by patterns of their names.
#pragma once

#include <tenet/nn/module.hpp>

namespace tenet::quant {
inline namespace TENET_CONFIG {

/// Whether `name` is what `pattern` describes: * stands for any characters, ? for one.
inline bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = pattern.npos, after = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++, after = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != pattern.npos) {
      p = star + 1, n = ++after;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

namespace detail {

template <template <class> class Layer, class M>
inline constexpr bool is_layer = false;
template <template <class> class Layer, class T>
inline constexpr bool is_layer<Layer, Layer<T>> = true;

struct NamedWeight {
  std::string name;  // of the layer
  nn::Weight<float>* weight;
};

/// The weights of the layers of the given types that a pattern of `names` describes: of all whose weight no format
/// replaces, if there are none. Throws Error for a pattern that describes no layer.
template <template <class> class... Layers, class M>
std::vector<NamedWeight> weights_of(const char* op, M& model, const std::vector<std::string>& names) {
  std::vector<NamedWeight> chosen;
  std::vector<bool> used(names.size());
  std::string all;
  model.each_module([&]<class X>(const std::string& name, X& layer) {
    if constexpr ((is_layer<Layers, X> || ...)) {
      all += all.empty() ? name : ", " + name;
      bool wanted = names.empty() && (!layer.weight.format() || layer.weight.format()->keeps_parameter());
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (matches(names[i], name)) wanted = used[i] = true;
      }
      if (wanted) chosen.push_back({name, &layer.weight});
    }
  });
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!used[i]) throw Error(text({op, ": '", names[i], "' is none of the layers ", all}));
  }
  return chosen;
}

/// Gives such weights the formats that make(dense weight) returns; tied weights stay tied. Where it throws, nothing is
/// changed.
template <template <class> class... Layers, class M, class F>
void change_formats(const char* op, M& model, const std::vector<std::string>& names, F make) {
  const no_grad guard;
  const std::vector<NamedWeight> chosen = weights_of<Layers...>(op, model, names);
  std::vector<std::shared_ptr<nn::WeightFormat<float>>> formats;
  for (const auto& [name, weight] : chosen) {
    std::size_t first = 0;
    while (first < formats.size() && !(*weight && weight->is(*chosen[first].weight))) ++first;
    formats.push_back(first < formats.size() ? formats[first] : make(weight->dense().detach()));
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i].weight->set_format(formats[i]);
}

}  // namespace detail
}  // namespace TENET_CONFIG
}  // namespace tenet::quant
