// The work that is compared: shapes, names, and the numbers that operands hold.
#pragma once

#include "case.hpp"

#include <cstdint>

namespace bench {

/// c[m, n] = a[m, k] b[k, n], operands transposed in memory as told.
struct Product {
  std::int64_t m, n, k;
  bool a_transposed = false, b_transposed = false;
  Work work(const std::string& type) const;  ///< "gemm/<type>/MxNxK", with "/nt" or "/tn" where transposed
};
/// Of float and the types narrower than it, one with a single row among them.
std::vector<Product> common_products();
/// Of float besides.
std::vector<Product> plain_products();
/// Those of training: plain, a b^T (a layer) and a^T b (its weight's gradient) of each shape; and the common ones.
std::vector<Product> products();

struct Convolution {
  std::int64_t in, out, kernel, size, batch, padding = 0, stride = 1, groups = 1;
  /// "conv2d/<pass>/<in>x<out>k<kernel>[s<stride>][g<groups>]@<size>b<batch>"
  Work work(const std::string& pass) const;
  std::int64_t output_size() const { return (size + 2 * padding - kernel) / stride + 1; }
  std::vector<std::int64_t> input_shape() const { return {batch, in, size, size}; }
  std::vector<std::int64_t> weight_shape() const { return {out, in / groups, kernel, kernel}; }
  std::vector<std::int64_t> output_shape() const { return {batch, out, output_size(), output_size()}; }
};
std::vector<Convolution> convolutions();

/// Elements of pointwise work, parameters of optimizers' work, operations in a chain of tiny ones.
inline constexpr std::int64_t elements = 1 << 20, parameters = 10'000'000, chain = 100;
inline constexpr double learning_rate = 1e-3, momentum = 0.9;

Work pointwise(const std::string& function);  ///< "pointwise/<function>/1M"
Work max_pool(const std::string& pass);       ///< of [64, 20, 24, 24], windows of 2 x 2
Work softmax();                               ///< of [1024, 1024], by rows
Work cross_entropy(const std::string& pass);  ///< of 64 examples and 1000 classes
Work optimizer(const std::string& name);      ///< a step with `parameters` of them
Work tiny(const std::string& pass);           ///< a product of 4 elements, in a chain
Work mlp();                                   ///< a training step of 64-64-64 with one example
Work lenet(const std::string& pass, int batch);
/// "amp/linear/256x1024x1024": forward and backward of a layer of float under autocast to bfloat16.
Work low_linear();
inline constexpr std::int64_t low_rows = 256, low_size = 1024;
/// "quant/linear/<rows>x1024x1024": a layer of int8 weights, the input quantized batch by batch.
Work dynamic_linear(std::int64_t rows);
inline constexpr std::int64_t dynamic_rows[] = {1, 64}, dynamic_size = 1024;
std::vector<int> lenet_batches();

/// n numbers in [-scale, scale), the same for the same `seed` in every library.
void fill(float* to, std::int64_t n, unsigned seed, float scale = 1);
/// The same in 1/64, so small that pairs of products of 8 bits fit into 16; those without a sign are moved up.
void fill(std::int8_t* to, std::int64_t n, unsigned seed);
void fill(std::uint8_t* to, std::int64_t n, unsigned seed);
/// Classes of n examples.
void fill_labels(std::int64_t* to, std::int64_t n, std::int64_t classes);
/// The scale of the i-th parameter of a network, from its sizes: that of the usual initialization.
float parameter_scale(std::int64_t numel, std::int64_t outputs);

}  // namespace bench
