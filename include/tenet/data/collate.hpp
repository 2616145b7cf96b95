// collate: from examples to a batch.
#pragma once

#include <tenet/core/factories.hpp>
#include <tenet/ops/copy.hpp>

#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

namespace tenet::data {
inline namespace TENET_CONFIG {

template <class E>
auto collate(const std::vector<E>& examples);

namespace detail {

template <class E>
inline constexpr bool is_tuple = false;
template <class... X>
inline constexpr bool is_tuple<std::tuple<X...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;

/// Tensors of one shape, one behind the other along a new first dimension.
template <class T>
Tensor<T> stack_examples(const std::vector<Tensor<T>>& examples) {
  Dims sizes = examples.empty() ? Shape() : examples[0].shape();
  sizes.insert(0, std::int64_t(examples.size()));
  Tensor<T> batch = empty<T>(sizes);
  T* to = batch.data();
  for (const Tensor<T>& example : examples) {
    if (!(example.shape() == examples[0].shape())) {
      throw ShapeError(
          text({"collate: expected examples of one shape, got ", examples[0].shape(), " and ", example.shape()}));
    }
    const Tensor<T> row_major = contiguous(example);
    const std::int64_t n = row_major.numel();
    if (n) std::memcpy(static_cast<void*>(to), row_major.data(), std::size_t(n) * sizeof(T));
    to += n;
  }
  return batch;
}

template <std::size_t I, class E>
auto collate_member(const std::vector<E>& examples) {
  std::vector<std::tuple_element_t<I, E>> members;
  members.reserve(examples.size());
  for (const E& example : examples) members.push_back(std::get<I>(example));
  return collate(members);
}

}  // namespace detail

/// Puts N examples together: tensors [...] to one [N, ...], numbers to a tensor [N], tuples and pairs to tuples
/// member by member, anything else to the vector it is. Throws ShapeError on tensors of different shapes.
template <class E>
auto collate(const std::vector<E>& examples) {
  if constexpr (TensorLike<E>) {
    return detail::stack_examples<element_t<E>>(examples);
  } else if constexpr (Element<E>) {
    return from_vector(examples);
  } else if constexpr (detail::is_tuple<E>) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::make_tuple(detail::collate_member<I>(examples)...);
    }
    (std::make_index_sequence<std::tuple_size_v<E>>());
  } else {
    return examples;
  }
}

}  // namespace TENET_CONFIG
}  // namespace tenet::data
