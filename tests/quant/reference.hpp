// Cases of PyTorch's quantization, and what the tests of this folder share.
#pragma once

#include <tenet/tenet.hpp>

#include "ops/reference.hpp"

namespace tenet::test {

inline const Reference& quant_reference(const std::string& name) {
  static const std::vector<Reference> all = read_references("quant.txt");
  for (const Reference& r : all)
    if (r.name == name) return r;
  throw Error("quant.txt has no case " + name);
}

inline std::vector<double> doubles(const auto& t) { return t.template to<double>().to_vector(); }

}  // namespace tenet::test
