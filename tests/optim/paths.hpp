// One parameter through the steps of an optimizer.
#pragma once

#include <gtest/gtest.h>
#include <tenet/optim/optimizer.hpp>

#include <vector>

#include "ops/reference.hpp"

namespace tenet::test {

/// The parameter `start` after each step; the gradients are the rows of `gradients`.
template <class O, class T, class Options>
std::vector<double> path(const Tensor<T>& start, const Tensor<T>& gradients, const Options& options) {
  const Tensor<T> p = start.clone().requires_grad_();
  O optimizer({p}, options);
  std::vector<double> all;
  const std::vector<T> values = gradients.to_vector();
  for (auto row = values.begin(); row != values.end(); row += start.numel()) {
    p.impl()->grad = from_vector(std::vector<T>(row, row + start.numel()), start.shape()).ref();
    optimizer.step();
    for (const T x : p.to_vector()) all.push_back(double(x));
  }
  return all;
}

inline void expect_near(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], tolerance) << "element " << i;
}

/// The path of one number whose gradients are given.
template <class O, class Options>
void expect_path(const Options& options, double start, const std::vector<double>& gradients,
                 const std::vector<double>& want, double tolerance = 5e-9) {
  const std::int64_t steps = std::int64_t(gradients.size());
  expect_near(path<O>(full<double>({1}, start), from_vector(gradients, {steps, 1}), options), want, tolerance);
}

/// PyTorch's case of that name in optim.txt, in double, float and bfloat16.
template <class O, class Options>
void expect_reference(const char* name, const Options& options) {
  SCOPED_TRACE(name);
  const Reference r = read_reference("optim.txt", name);
  const std::vector<double> want = r.output.to_vector();
  expect_near(path<O>(r.inputs[0], r.inputs[1], options), want, 1e-12);
  expect_near(path<O>(to<float>(r.inputs[0]), to<float>(r.inputs[1]), options), want, 3e-6);
  expect_near(path<O>(to<half>(r.inputs[0]), to<half>(r.inputs[1]), options), want, 0.02);
  expect_near(path<O>(to<bfloat16>(r.inputs[0]), to<bfloat16>(r.inputs[1]), options), want, 0.2);
}

}  // namespace tenet::test
