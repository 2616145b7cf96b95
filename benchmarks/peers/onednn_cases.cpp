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

template <class T>
T* data(const dnnl::memory& m) {
  return static_cast<T*>(m.get_data_handle());
}

template <class T = float>
dnnl::memory numbers(std::int64_t rows, std::int64_t cols, bool transposed, unsigned seed, Type type = Type::f32) {
  auto m = matrix(rows, cols, transposed, type);
  fill(data<T>(m), rows * cols, seed);
  return m;
}

Run product(Product p) {
  const auto a = numbers(p.m, p.k, p.a_transposed, 1), b = numbers(p.k, p.n, p.b_transposed, 2);
  const auto c = matrix(p.m, p.n, false, Type::f32);
  return [=] {
    dnnl::sgemm(p.a_transposed ? 'T' : 'N', p.b_transposed ? 'T' : 'N', p.m, p.n, p.k, 1, data<float>(a),
                p.a_transposed ? p.m : p.k, data<float>(b), p.b_transposed ? p.k : p.n, 0, data<float>(c), p.n);
    return double(data<float>(c)[p.m * p.n - 1]);
  };
}

/// `multiply` is dnnl::gemm_s8s8s32 or gemm_u8s8s32.
template <class A, class Multiply>
Run integer_product(Product p, Type type, Multiply multiply) {
  const auto a = numbers<A>(p.m, p.k, false, 1, type);
  const auto b = numbers<std::int8_t>(p.k, p.n, p.b_transposed, 2, Type::s8);
  const auto c = matrix(p.m, p.n, false, Type::s32);
  return [=] {
    const std::int32_t offset = 0;
    multiply('N', p.b_transposed ? 'T' : 'N', 'F', p.m, p.n, p.k, 1.f, data<A>(a), p.k, A{0}, data<std::int8_t>(b),
             p.b_transposed ? p.k : p.n, std::int8_t{0}, 0.f, data<std::int32_t>(c), p.n, &offset);
    return double(data<std::int32_t>(c)[p.m * p.n - 1]);
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
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul matmul({engine(), a.get_desc(), b.get_desc(), c.get_desc()});
#else
  const dnnl::matmul matmul({{a.get_desc(), b.get_desc(), c.get_desc()}, engine()});
#endif
  const auto stream = std::make_shared<dnnl::stream>(engine());
  return [=] {
    matmul.execute(*stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
    stream->wait();
    const std::uint32_t bits = data<std::uint16_t>(c)[p.m * p.n - 1] << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return double(value);
  };
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Product& p : products()) all.push_back({p.work("f32"), [p] { return product(p); }});
  for (const Product& p : common_products()) {
    all.push_back({p.work("bf16"), [p] { return bfloat16_product(p); }});
    all.push_back({p.work("s8s8"), [p] { return integer_product<std::int8_t>(p, Type::s8, dnnl::gemm_s8s8s32); }});
    all.push_back({p.work("u8s8"), [p] { return integer_product<std::uint8_t>(p, Type::u8, dnnl::gemm_u8s8s32); }});
  }
  return all;
}

std::string description() {
  const dnnl_version_t* v = dnnl_version();
  return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

const bool added = add_library({"onednn", description(), [](int n) { omp_set_num_threads(n); }, cases()});

}  // namespace

}  // namespace bench
