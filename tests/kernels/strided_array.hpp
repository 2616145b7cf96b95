// Arrays of every layout a kernel may meet, for tests.
#pragma once

#include <tenet/kernels/cpu/index_space.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

namespace tenet::test {

struct Layout {
  std::vector<int64_t> shape, strides;
  int64_t offset = 0, size = 0;  // of the first element, and of the memory around all of them
};

// Row-major over a permutation of the dimensions, with `gap` unused elements after each of the innermost.
inline Layout ordered(const std::vector<int64_t>& shape, const std::vector<int>& order, int64_t gap) {
  Layout l{shape, std::vector<int64_t>(shape.size()), 0, 0};
  int64_t step = 1 + gap;
  for (int k = int(order.size()) - 1; k >= 0; --k) {
    l.strides[std::size_t(order[std::size_t(k)])] = step;
    step *= std::max<int64_t>(shape[std::size_t(order[std::size_t(k)])], 1);
  }
  l.size = step;
  return l;
}

// Layouts without repeated elements: row-major, reversed dimensions, swapped last two, with gaps, and rows of a
// wider array.
inline std::vector<Layout> dense_layouts(const std::vector<int64_t>& shape) {
  const std::size_t rank = shape.size();
  std::vector<int> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::vector<Layout> all{ordered(shape, order, 0), ordered(shape, order, 2)};
  if (rank < 2) return all;
  std::vector<int64_t> wider = shape;
  wider.back() += 3;
  all.push_back(ordered(wider, order, 0));
  all.back().shape = shape;
  std::vector<int> swapped = order;
  std::swap(swapped[rank - 1], swapped[rank - 2]);
  all.push_back(ordered(shape, swapped, 0));
  std::reverse(order.begin(), order.end());
  if (rank > 2) all.push_back(ordered(shape, order, 0));
  return all;
}

// Those, an array repeated along each single dimension and along all, and one walked backwards.
inline std::vector<Layout> layouts(const std::vector<int64_t>& shape) {
  std::vector<Layout> all = dense_layouts(shape);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    Layout l = all[0];
    l.strides[d] = 0;
    all.push_back(l);
  }
  if (shape.empty()) return all;
  Layout one = all[0], back = all[0];
  std::fill(one.strides.begin(), one.strides.end(), 0);
  all.push_back(one);
  back.offset = std::max<int64_t>(shape[0] - 1, 0) * back.strides[0];
  back.strides[0] = -back.strides[0];
  all.push_back(back);
  return all;
}

template <class T>
class StridedArray {
 public:
  explicit StridedArray(Layout layout)
      : layout_(std::move(layout)), memory_(std::size_t(layout_.size), Element{T(77)}) {}

  int rank() const { return int(layout_.shape.size()); }
  cpu::Strided<T> span() { return {first(), layout_.strides.data()}; }
  cpu::Strided<const T> view() const { return {const_cast<StridedArray*>(this)->first(), layout_.strides.data()}; }
  const T& at(const std::vector<int64_t>& index) const { return memory_[place(index)].value; }

  // Small integers, different for each seed, exact in every type.
  void fill(int seed) {
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i].value = T(float((int(i) * (3 + seed) + seed) % 23));
  }

  // Calls f(element, index) for each element in row-major order.
  template <class F>
  void each(F f) {
    std::vector<int64_t> index(layout_.shape.size(), 0);
    for (const int64_t n : layout_.shape)
      if (n == 0) return;
    for (;;) {
      visited_.push_back(place(index));
      f(memory_[place(index)].value, index);
      int d = rank() - 1;
      for (; d >= 0 && ++index[std::size_t(d)] == layout_.shape[std::size_t(d)]; --d) index[std::size_t(d)] = 0;
      if (d < 0) return;
    }
  }

  // Whether memory that each() did not visit holds what it held at first.
  bool gaps_untouched() const {
    std::vector<bool> used(memory_.size());
    for (const std::size_t i : visited_) used[i] = true;
    for (std::size_t i = 0; i < used.size(); ++i)
      if (!used[i] && !(memory_[i].value == T(77))) return false;
    return true;
  }

 private:
  struct Element {  // keeps vector<bool> away
    T value;
  };
  T* first() { return memory_.empty() ? nullptr : &memory_[0].value + layout_.offset; }
  std::size_t place(const std::vector<int64_t>& index) const {
    int64_t at = layout_.offset;
    for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * layout_.strides[d];
    return std::size_t(at);
  }

  Layout layout_;
  std::vector<Element> memory_;
  std::vector<std::size_t> visited_;
};

}  // namespace tenet::test
