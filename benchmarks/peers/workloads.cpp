#include "workloads.hpp"

#include <cmath>
#include <sstream>

namespace bench {

namespace {

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

const Product wide{256, 1024, 1024}, row{1, 1024, 1024, false, true};

/// The numbers of fill(float*) times 64, plus `shift`.
template <class T>
void fill_small(T* to, std::int64_t n, unsigned seed, float shift) {
  std::vector<float> numbers(static_cast<std::size_t>(n));
  fill(numbers.data(), n, seed, 64);
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(numbers[std::size_t(i)] + shift);
}

Work microseconds(const std::string& name, double amount = 1) { return {name, "us", amount}; }

}  // namespace

std::vector<Library>& libraries() {
  static std::vector<Library> all;
  return all;
}

bool add_library(Library library) {
  libraries().push_back(std::move(library));
  return true;
}

Work Product::work(const std::string& type) const {
  const char* form = a_transposed ? "/tn" : b_transposed ? "/nt" : "";
  const bool whole = type == "s8s8" || type == "u8s8";
  const double tolerance = whole ? 0 : type == "bf16" ? 2e-2 : 1e-3;
  const char* unit = whole ? "GOP/s" : "GFLOP/s";
  return {text("gemm/", type, "/", m, "x", n, "x", k, form), unit, 2e-9 * double(m * n * k), tolerance};
}

std::vector<Product> plain_products() {
  return {{64, 64, 64},       {128, 128, 128},   {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024},
          {2048, 2048, 2048}, {64, 500, 800},    {64, 10, 500},   {500, 800, 64},  {20, 36864, 25},
          {50, 4096, 500},    {128, 4096, 1024}, {4096, 64, 500}, {50, 500, 4096}};
}

std::vector<Product> products() {
  std::vector<Product> all;
  for (Product p : plain_products()) {
    all.push_back(p);
    all.push_back({p.m, p.n, p.k, false, true});
    all.push_back({p.m, p.n, p.k, true, false});
  }
  all.push_back(wide);
  all.push_back(row);
  return all;
}

std::vector<Product> common_products() { return {wide, {1024, 1024, 1024}, row}; }

Work Convolution::work(const std::string& pass) const {
  const std::string strides = stride > 1 ? text("s", stride) : "", parts = groups > 1 ? text("g", groups) : "";
  const std::string name = text("conv2d/", pass, "/", in, "x", out, "k", kernel, strides, parts, "@", size, "b", batch);
  const std::int64_t outputs = batch * out * output_size() * output_size();
  return {name, "GFLOP/s", 2e-9 * double(outputs * (in / groups) * kernel * kernel)};
}

std::vector<Convolution> convolutions() {
  return {{1, 20, 5, 28, 64},      {20, 50, 5, 12, 64}, {64, 64, 3, 56, 4, 1},    {128, 128, 3, 28, 4, 1},
          {256, 256, 3, 14, 4, 1}, {64, 256, 1, 56, 4}, {3, 64, 7, 224, 2, 3, 2}, {128, 128, 3, 28, 4, 1, 1, 128}};
}

Work pointwise(const std::string& function) { return microseconds(text("pointwise/", function, "/1M")); }
Work max_pool(const std::string& pass) { return microseconds(text("max_pool2d/", pass, "/64x20x24x24")); }
Work softmax() { return microseconds("softmax/1024x1024"); }
Work cross_entropy(const std::string& pass) { return microseconds(text("cross_entropy/", pass, "/64x1000")); }
Work optimizer(const std::string& name) { return microseconds(text("optimizer/", name, "/10M")); }
Work tiny(const std::string& pass) { return microseconds(text("tiny/", pass), chain); }
Work mlp() { return microseconds("mlp/train/64-64-64b1"); }

Work lenet(const std::string& pass, int batch) { return {text("lenet/", pass, "/", batch), "images/s", double(batch)}; }
Work dynamic_linear(std::int64_t rows) {
  const double operations = 2e-9 * double(rows * dynamic_size * dynamic_size);
  return {text("quant/linear/", rows, "x", dynamic_size, "x", dynamic_size), "GOP/s", operations, 5e-2};
}
Work low_linear() {
  const double operations = 3 * 2e-9 * double(low_rows * low_size * low_size);
  return {text("amp/linear/", low_rows, "x", low_size, "x", low_size), "GFLOP/s", operations, 0.1};
}
std::vector<int> lenet_batches() { return {1, 16, 64, 256}; }

void fill(float* to, std::int64_t n, unsigned seed, float scale) {
  std::uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (std::int64_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    to[i] = scale * (float(state >> 40) * 0x1p-23f - 1);  // 24 bits
  }
}

void fill(std::int8_t* to, std::int64_t n, unsigned seed) { fill_small(to, n, seed, 0); }
void fill(std::uint8_t* to, std::int64_t n, unsigned seed) { fill_small(to, n, seed, 64); }

void fill_labels(std::int64_t* to, std::int64_t n, std::int64_t classes) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = i * 7 % classes;
}

float parameter_scale(std::int64_t numel, std::int64_t outputs) {
  return 1 / std::sqrt(float(numel > outputs ? numel / outputs : outputs));
}

}  // namespace bench
