// What one differently compiled object offers to the others. Handles cross by value, in both directions.
#pragma once

#include <tenet/tenet.hpp>

struct Side {
  const char* name;
  tenet::Tensor<float> (*make)(std::uint64_t seed, tenet::Shape shape);
  tenet::Tensor<float> (*loss)(tenet::Tensor<float> x, tenet::Tensor<float> weight);
  void (*backward)(tenet::Tensor<float> loss);
  void (*drop)(tenet::Tensor<float> last);
  bool (*without_grad)(bool (*f)());  // what f returns inside no_grad
  bool (*records)();
  void (*fail)();
  bool (*catches)(void (*f)());
};
