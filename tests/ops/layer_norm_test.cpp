#include <tenet/ops/layer_norm.hpp>

#include <gtest/gtest.h>

#include "message.hpp"
#include "ops/op_cases.hpp"

namespace tenet {
namespace {

using test::check;

template <class X>
Shape last(const X& x, int dims) {
  Dims d;
  for (int i = x.dim() - dims; i < x.dim(); ++i) d.push_back(x.shape()[i]);
  return d;
}

TEST(LayerNorm, AgreesWithPyTorch) {
  for (const auto& [name, dims] : {std::pair("last", 1), {"two", 2}, {"all", 2}, {"long", 1}, {"two_values", 1}}) {
    check({.name = std::string("layer_norm_") + name,
           .f = [dims = dims](const auto& x) { return layer_norm(x[0], last(x[0], dims), x[1], x[2]); },
           .file = "norm.txt",
           .expands = std::string(name) != "two_values",  // two equal values have no deviation
           .tolerance = 1e-9,
           .float_tolerance = 1e-4});
  }
  check({.name = "layer_norm_plain",
         .f = [](const auto& x) { return layer_norm(x[0], {4}, {}, {}, 0.1); },
         .file = "norm.txt"});
  check({.name = "layer_norm_weight",
         .f = [](const auto& x) { return layer_norm(x[0], {4}, x[1]); },
         .file = "norm.txt"});
}

TEST(LayerNorm, TakesEmptyInputs) {
  for (const Shape& shape : {Shape{0, 3}, Shape{2, 0}}) {
    const auto x = ones(shape).requires_grad_(), w = ones({shape[1]}).requires_grad_();
    const auto y = layer_norm(x, {shape[1]}, w);
    EXPECT_EQ(y.shape(), shape);
    y.sum().backward();
    EXPECT_EQ(x.grad().shape(), shape);
    EXPECT_EQ(w.grad().to_vector(), zeros({shape[1]}).to_vector());
  }
}

TEST(LayerNorm, HalvesDoNotOverflow) {
  // https://github.com/microsoft/onnxruntime/issues/29034
  const auto x = from_vector<float>({300, -300, 300, -300}, {1, 4}).to<half>();
  const auto y = layer_norm(x, {4}, full<half>({4}, half(1)), zeros<half>({4}));
  EXPECT_EQ(y.to<float>().to_vector(), (std::vector<float>{1, -1, 1, -1}));
}

TEST(LayerNorm, RefusesWhatDoesNotFit) {
  EXPECT_EQ(test::message<ShapeError>([] {
              layer_norm(ones({2, 3}), {2});
            }),
            "layer_norm: expected an input that ends in [2], got [2, 3]");
  EXPECT_THROW(layer_norm(ones({3}), {2, 3}), ShapeError);
  EXPECT_THROW(layer_norm(ones({3}), {}), ShapeError);
  EXPECT_EQ(test::message<ShapeError>([] {
              layer_norm(ones({2, 3}), {3}, ones({2}));
            }),
            "layer_norm: expected a weight and a bias [3], got [2]");
}

}  // namespace
}  // namespace tenet
