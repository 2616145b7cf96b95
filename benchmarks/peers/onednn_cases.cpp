// The work in oneDNN.
#include "workloads.hpp"

#include <omp.h>
#include <dnnl.hpp>

#include <cstring>
#include <memory>

namespace bench {

namespace {

using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::memory matrix(std::int64_t rows, std::int64_t cols, bool transposed, Type type) {
  return {{{rows, cols}, type, transposed ? Tag::ba : Tag::ab}, engine()};
}

dnnl::memory numbers(std::int64_t rows, std::int64_t cols, bool transposed, unsigned seed) {
  auto m = matrix(rows, cols, transposed, Type::f32);
  fill(static_cast<float*>(m.get_data_handle()), rows * cols, seed);
  return m;
}

double last(const dnnl::memory& m, std::int64_t n) {
  return double(static_cast<const float*>(m.get_data_handle())[n - 1]);
}

Run product(Product p) {
  const auto a = numbers(p.m, p.k, p.a_transposed, 1), b = numbers(p.k, p.n, p.b_transposed, 2);
  const auto c = matrix(p.m, p.n, false, Type::f32);
  return [=] {
    dnnl::sgemm(p.a_transposed ? 'T' : 'N', p.b_transposed ? 'T' : 'N', p.m, p.n, p.k, 1,
                static_cast<const float*>(a.get_data_handle()), p.a_transposed ? p.m : p.k,
                static_cast<const float*>(b.get_data_handle()), p.b_transposed ? p.k : p.n, 0,
                static_cast<float*>(c.get_data_handle()), p.n);
    return last(c, p.m * p.n);
  };
}

dnnl::memory rounded(dnnl::memory from, dnnl::memory to) {
  dnnl::stream stream(engine());
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
  return to;
}

/// Plain layouts, as tenet's. Throws where the processor has no such product.
Run bfloat16_product(Product p) {
  const auto a = rounded(numbers(p.m, p.k, p.a_transposed, 1), matrix(p.m, p.k, p.a_transposed, Type::bf16));
  const auto b = rounded(numbers(p.k, p.n, p.b_transposed, 2), matrix(p.k, p.n, p.b_transposed, Type::bf16));
  const auto c = matrix(p.m, p.n, false, Type::bf16);
  const dnnl::matmul::desc operation(a.get_desc(), b.get_desc(), c.get_desc());
  const dnnl::matmul matmul(dnnl::matmul::primitive_desc(operation, engine()));
  const auto stream = std::make_shared<dnnl::stream>(engine());
  return [=] {
    matmul.execute(*stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
    stream->wait();
    const std::uint32_t bits = static_cast<const std::uint16_t*>(c.get_data_handle())[p.m * p.n - 1] << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return double(value);
  };
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Product& p : products()) all.push_back({p.work("f32"), [p] { return product(p); }});
  for (const Product& p : narrow_products()) all.push_back({p.work("bf16"), [p] { return bfloat16_product(p); }});
  return all;
}

std::string description() {
  const dnnl_version_t* v = dnnl_version();
  return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

const bool added = add_library({"onednn", description(), [](int n) { omp_set_num_threads(n); }, cases()});

}  // namespace

}  // namespace bench
