// The plain form of reductions, for tests: a function of the elements that become one.
#pragma once

#include <tenet/ops/reduce.hpp>

#include <functional>
#include <vector>

namespace tenet::test {

using Elements = std::vector<double>;

/// The reference that gives f(elements, in row-major order) for each output of a reduction of its first input.
inline auto over(const Dims& dims, bool keepdim, std::function<double(const Elements&)> f) {
  return [=](const std::vector<Tensor<double>>& x) {
    const Shape& shape = x[0].shape();
    const Reduced r = reduced_dims("reference", dims, keepdim, shape.size());
    Tensor<double> y = empty<double>(reduced_shape(shape, r));
    std::vector<Elements> groups(std::size_t(y.numel()));
    const std::vector<double> values = x[0].to_vector();
    for (std::int64_t i = 0; i < shape.numel(); ++i) {
      std::int64_t rest = i, group = 0, step = 1;
      for (int d = shape.size(); d-- > 0; rest /= shape[d]) {
        if (r.has(d)) continue;
        group += rest % shape[d] * step;
        step *= shape[d];
      }
      groups[std::size_t(group)].push_back(values[std::size_t(i)]);
    }
    for (std::int64_t i = 0; i < y.numel(); ++i) y.data()[i] = f(groups[std::size_t(i)]);
    return y;
  };
}

/// Runs `compute`, which returns a tensor of T, on 1, 2 and 3 threads: whether all bytes are the same.
template <class F>
bool same_for_any_threads(const F& compute) {
  const int before = num_threads();
  std::vector<decltype(compute().to_vector())> results;
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    results.push_back(compute().to_vector());
  }
  set_num_threads(before);
  const auto same = [&](const auto& a, const auto& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
  };
  return same(results[0], results[1]) && same(results[0], results[2]);
}

}  // namespace tenet::test
