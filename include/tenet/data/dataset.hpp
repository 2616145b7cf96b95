// Data sets: examples by number, and batches of them.
//
// A data set is any copyable type with `size()` and `get(i)`; const, and safe to call from several threads at
// once. With `get_batch(indices)` it makes whole batches itself; otherwise collate() puts examples together.
// Those defined here hold others by value: data sets of this library are handles that share their memory.
#pragma once

#include <tenet/core/random.hpp>
#include <tenet/data/collate.hpp>

#include <array>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace tenet::data {

inline namespace TENET_CONFIG {

/// Examples get(0) to get(size() - 1).
template <class D>
concept Dataset = std::copy_constructible<D> && requires(const D& dataset, std::int64_t index) {
  { dataset.size() } -> std::convertible_to<std::int64_t>;
  dataset.get(index);
};

/// The examples at `indices` as one batch: the data set's own get_batch(), or get() of each, collated.
template <Dataset D>
auto get_batch(const D& dataset, std::span<const std::int64_t> indices) {
  if constexpr (requires { dataset.get_batch(indices); }) {
    return dataset.get_batch(indices);
  } else {
    std::vector<std::remove_cvref_t<decltype(dataset.get(0))>> examples;
    examples.reserve(indices.size());
    for (const std::int64_t index : indices) examples.push_back(dataset.get(index));
    return collate(examples);
  }
}

/// The type of a batch of D.
template <Dataset D>
using batch_t = decltype(data::get_batch(std::declval<const D&>(), std::span<const std::int64_t>()));

namespace detail {

[[noreturn]] TENET_COLD inline void bad_index(const char* op, std::int64_t size, std::int64_t index) {
  throw IndexError(text({op, ": expected an index in [0, ", size, "), got ", index}));
}
inline void check_index(const char* op, std::int64_t size, std::int64_t index) {
  if (index < 0 || index >= size) bad_index(op, size, index);
}

/// Row-major copies of the rows of `t` (contiguous) at `indices`, into `out`.
inline void copy_rows(const AnyTensor& t, std::span<const std::int64_t> indices, void* out) {
  const std::int64_t rows = t.size(0), row = rows ? t.numel() / rows : 0;
  const std::size_t bytes = std::size_t(row) * item_size(t.dtype());
  char* to = static_cast<char*>(out);
  for (const std::int64_t index : indices) {
    check_index("tensor_dataset", rows, index);
    if (bytes) std::memcpy(to, static_cast<const char*>(t.data_ptr()) + std::size_t(index) * bytes, bytes);
    to += bytes;
  }
}

template <class T>
Tensor<T> take_rows(const Tensor<T>& t, std::span<const std::int64_t> indices) {
  Dims sizes = t.shape();
  sizes[0] = std::int64_t(indices.size());
  Tensor<T> out = empty<T>(sizes);
  copy_rows(t, indices, out.data_ptr());
  return out;
}

}  // namespace detail
}  // namespace TENET_CONFIG

/// Tensors with one first dimension, N: example i is the tuple of their [i], a batch the tuple of their rows.
template <class... T>
class TensorDataset {
  static_assert(sizeof...(T) > 0, "TensorDataset: expected at least one tensor");

 public:
  /// Throws ShapeError unless each tensor has a first dimension, of one size for all.
  TENET_TAG explicit TensorDataset(const Tensor<T>&... tensors) : tensors_(contiguous(tensors)...) {
    const auto check = [this](const AnyTensor& t) {
      if (t.dim() == 0) throw ShapeError("tensor_dataset: expected tensors with a first dimension, got a scalar");
      if (t.size(0) != size()) {
        throw ShapeError(text({"tensor_dataset: expected first dimensions of one size, got shapes ",
                               std::get<0>(tensors_).shape(), " and ", t.shape()}));
      }
    };
    std::apply([&](const Tensor<T>&... t) { (check(t), ...); }, tensors_);
  }

  TENET_TAG std::int64_t size() const { return std::get<0>(tensors_).size(0); }
  /// Copies of the tensors' [index]; throws IndexError.
  TENET_TAG std::tuple<Tensor<T>...> get(std::int64_t index) const {
    detail::check_index("tensor_dataset", size(), index);
    return std::apply([&](const Tensor<T>&... t) { return std::tuple<Tensor<T>...>(row(t, index)...); }, tensors_);
  }
  /// Copies of the rows at `indices`: [indices, ...] each; throws IndexError.
  TENET_TAG std::tuple<Tensor<T>...> get_batch(std::span<const std::int64_t> indices) const {
    return std::apply([&](const Tensor<T>&... t) { return std::tuple<Tensor<T>...>(detail::take_rows(t, indices)...); },
                      tensors_);
  }

 private:
  template <class U>
  TENET_TAG static Tensor<U> row(const Tensor<U>& t, std::int64_t index) {
    Dims sizes = t.shape();
    sizes.erase(0);
    Tensor<U> out = empty<U>(sizes);
    detail::copy_rows(t, std::span(&index, 1), out.data_ptr());
    return out;
  }

  std::tuple<Tensor<T>...> tensors_;
};

/// The examples of a data set at chosen indices, in that order.
template <class D>
class Subset {
 public:
  /// Throws IndexError when an index is not one of the data set's.
  TENET_TAG Subset(D dataset, std::vector<std::int64_t> indices)
      : dataset_(std::move(dataset)), indices_(std::move(indices)) {
    for (const std::int64_t i : indices_) detail::check_index("subset", dataset_.size(), i);
  }

  TENET_TAG std::int64_t size() const { return std::int64_t(indices_.size()); }
  TENET_TAG const std::vector<std::int64_t>& indices() const { return indices_; }

  TENET_TAG auto get(std::int64_t index) const { return dataset_.get(original(index)); }
  TENET_TAG auto get_batch(std::span<const std::int64_t> indices) const {
    std::vector<std::int64_t> originals;
    originals.reserve(indices.size());
    for (const std::int64_t i : indices) originals.push_back(original(i));
    return data::get_batch(dataset_, originals);
  }

 private:
  TENET_TAG std::int64_t original(std::int64_t index) const {
    detail::check_index("subset", size(), index);
    return indices_[std::size_t(index)];
  }

  D dataset_;
  std::vector<std::int64_t> indices_;
};

/// Data sets of one type, one after the other.
template <class D>
class ConcatDataset {
 public:
  TENET_TAG explicit ConcatDataset(std::vector<D> parts) : parts_(std::move(parts)) {
    for (const D& part : parts_) size_ += part.size();
  }

  TENET_TAG std::int64_t size() const { return size_; }
  TENET_TAG auto get(std::int64_t index) const {
    detail::check_index("concat_dataset", size_, index);
    std::size_t part = 0;
    while (index >= parts_[part].size()) index -= parts_[part++].size();
    return parts_[part].get(index);
  }

 private:
  std::vector<D> parts_;
  std::int64_t size_ = 0;
};

/// The examples of a data set after `function(example)`, called whenever one is asked for.
template <class D, class F>
class Transformed {
 public:
  TENET_TAG Transformed(D dataset, F function) : dataset_(std::move(dataset)), function_(std::move(function)) {}

  TENET_TAG std::int64_t size() const { return dataset_.size(); }
  TENET_TAG auto get(std::int64_t index) const { return function_(dataset_.get(index)); }

 private:
  D dataset_;
  F function_;
};

inline namespace TENET_CONFIG {

namespace detail {

/// How many examples each part gets. Fractions: what rounding down leaves over goes to the first parts.
template <class L>
std::vector<std::int64_t> split_lengths(std::int64_t size, std::span<const L> parts) {
  std::vector<std::int64_t> lengths;
  std::int64_t sum = 0;
  if constexpr (std::is_floating_point_v<L>) {
    double whole = 0;
    bool valid = true;
    for (const L f : parts) {
      valid &= f >= 0 && f <= 1;
      whole += double(f);
    }
    if (!valid || std::abs(whole - 1) > 1e-6) {
      throw Error(text({"random_split: expected fractions from 0 to 1 that sum to 1, their sum is ", whole}));
    }
    for (const L f : parts) {
      lengths.push_back(std::min(std::int64_t(double(size) * double(f)), size - sum));
      sum += lengths.back();
    }
    for (std::size_t i = 0; sum < size; i = (i + 1) % lengths.size(), ++sum) ++lengths[i];
  } else {
    for (const L n : parts) {
      if (n < 0 || std::int64_t(n) > size - sum) sum = size + 1;
      if (sum > size) break;
      sum += std::int64_t(n);
      lengths.push_back(std::int64_t(n));
    }
    if (sum != size) throw Error(text({"random_split: expected lengths that sum to ", size, " examples"}));
  }
  return lengths;
}

}  // namespace detail

/// Cuts a data set at random into parts that share no example, of the given lengths or fractions:
/// `auto [train, valid] = random_split(dataset, {0.9, 0.1})`. Throws Error unless lengths sum to the size of
/// the data set, and fractions to 1.
template <Dataset D, class L, std::size_t N>
requires std::is_arithmetic_v<L> std::array<Subset<D>, N> random_split(const D& dataset, const L (&parts)[N],
                                                                       Generator& generator = default_generator()) {
  const std::int64_t size = dataset.size();
  const std::vector<std::int64_t> lengths = detail::split_lengths<L>(size, parts);
  const Tensor<std::int64_t> order = randperm(size, generator);
  const std::int64_t* next = order.data();
  const auto take = [&](std::int64_t n) {
    const std::int64_t* from = std::exchange(next, next + n);
    return Subset<D>(dataset, std::vector<std::int64_t>(from, next));
  };
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<Subset<D>, N>{take(lengths[I])...};  // braces: from left to right
  }
  (std::make_index_sequence<N>());
}

}  // namespace TENET_CONFIG
}  // namespace tenet::data
