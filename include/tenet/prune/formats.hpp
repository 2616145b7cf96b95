// The formats of compressed weights, for loading states that hold them.
#pragma once

#include <tenet/nn/lora.hpp>
#include <tenet/prune/low_rank.hpp>
#include <tenet/prune/mask.hpp>
#include <tenet/prune/sparse.hpp>

namespace tenet::prune {
inline namespace TENET_CONFIG {

/// Readers for LoadOptions: `load(model, path, {.formats = prune::formats()})`.
template <class T = float>
std::vector<nn::WeightReader<T>> formats() {
  return {{"masked", &Masked<T>::read},
          {"sparse", &Sparse<T>::read},
          {"low_rank", &LowRank<T>::read},
          {"lora", &nn::Lora<T>::read}};
}

}  // namespace TENET_CONFIG
}  // namespace tenet::prune
