// Results of PyTorch, read from tests/reference/*.txt; make_reference.py there writes them.
//
// The format: a line `case NAME`, then one line a tensor, `KIND RANK SIZES... VALUES...`, row-major. KIND is
// input, output, weights, or gradient: that of sum(output * weights), one an input, in order.
#pragma once

#include <tenet/core/core.hpp>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tenet::test {

struct Reference {
  std::string name;
  std::vector<Tensor<double>> inputs, gradients;  // an input without a gradient has an undefined one
  Tensor<double> output, weights;
};

/// One tensor: `RANK SIZES... VALUES...`; of rank -1, an undefined one.
inline Tensor<double> read_tensor(std::istream& in) {
  int rank = 0;
  in >> rank;
  if (rank < 0) return {};
  Dims sizes;
  for (int d = 0; d < rank; ++d) {
    std::int64_t size = 0;
    in >> size;
    sizes.push_back(size);
  }
  std::vector<double> values;
  for (std::string word; in >> word;) values.push_back(std::strtod(word.c_str(), nullptr));  // reads inf and nan too
  return from_vector(values, sizes);
}

/// The cases of tests/reference/FILE, in their order; throws Error if it cannot be read.
inline std::vector<Reference> read_references(const std::string& file) {
  const std::string path = std::string(TENET_REFERENCE_DIR) + "/" + file;
  std::ifstream in(path);
  if (!in) throw Error("cannot read " + path);
  std::vector<Reference> all;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind.empty() || kind[0] == '#') continue;
    if (kind == "case") words >> all.emplace_back().name;
    else if (all.empty()) throw Error(path + ": expected a case, got " + kind);
    else if (kind == "input") all.back().inputs.push_back(read_tensor(words));
    else if (kind == "gradient") all.back().gradients.push_back(read_tensor(words));
    else if (kind == "output") all.back().output = read_tensor(words);
    else if (kind == "weights") all.back().weights = read_tensor(words);
    else throw Error(path + ": unknown line " + kind);
  }
  return all;
}

/// The case `name` of tests/reference/FILE; throws Error if there is none.
inline Reference read_reference(const std::string& file, const std::string& name) {
  for (Reference& r : read_references(file))
    if (r.name == name) return std::move(r);
  throw Error(file + " has no case " + name);
}

}  // namespace tenet::test
