// The work in tenet, through the interface that programs use.
#include "workloads.hpp"

#include "../../examples/mnist/lenet.hpp"

#include <tenet/tenet.hpp>

#include <memory>

using namespace tenet;

namespace bench {

namespace {

Shape shape_of(const std::vector<std::int64_t>& sizes) {
  Dims dims;
  for (auto n : sizes) dims.push_back(n);
  return dims;
}

Tensor<float> numbers(const Shape& shape, unsigned seed, float scale = 1) {
  auto t = empty(shape);
  fill(t.data(), t.numel(), seed, scale);
  return t;
}

Tensor<std::int64_t> labels(std::int64_t n, std::int64_t classes) {
  auto t = empty<std::int64_t>({n});
  fill_labels(t.data(), n, classes);
  return t;
}

template <class T>
double last(const Tensor<T>& t) {
  return double(static_cast<float>(t.data()[t.numel() - 1]));
}

/// `compute(operands...)` without a graph, its last element read.
template <class Compute, class... T>
Run forward(Compute compute, T... operands) {
  return [=] {
    const no_grad guard;
    return last(compute(operands...));
  };
}

template <class T>
Run product(Product p) {
  const auto a = (p.a_transposed ? numbers({p.k, p.m}, 1).t() : numbers({p.m, p.k}, 1)).template to<T>();
  const auto b = (p.b_transposed ? numbers({p.n, p.k}, 2).t() : numbers({p.k, p.n}, 2)).template to<T>();
  return forward([](const auto& x, const auto& y) { return matmul(x, y); }, a, b);
}

/// Products of 8 bits have no operation on tensors; this is their kernel.
template <class A>
Run integer_product(Product p) {
  const auto a = empty<A>({p.m, p.k});
  const auto b = empty<std::int8_t>(p.b_transposed ? Shape{p.n, p.k} : Shape{p.k, p.n});
  fill(a.data(), a.numel(), 1);
  fill(b.data(), b.numel(), 2);
  const cpu::MatrixView<std::int8_t> view{b.data(), b.size(1), 1};
  return [=, c = empty<std::int32_t>({p.m, p.n})] {
    cpu::gemm_int8<A>(p.m, p.n, p.k, {a.data(), p.k, 1}, p.b_transposed ? view.transposed() : view, c.data(), p.n);
    return last(c);
  };
}

/// The gradient of `output` with respect to `input`, over and over through one graph.
Run gradient(Tensor<float> output, Tensor<float> input) {
  const auto g = numbers(output.shape(), 3);
  return [=] { return last(autograd::grad(output, input, {.grad_outputs = {g}, .retain_graph = true})); };
}

void add_convolutions(std::vector<Case>& cases) {
  for (const Convolution& c : convolutions()) {
    const Conv2dOptions options{.stride = c.stride, .padding = c.padding, .groups = c.groups};
    const auto x = [c] { return numbers(shape_of(c.input_shape()), 1); };
    const auto w = [c] { return numbers(shape_of(c.weight_shape()), 2); };
    const auto convolve = [options](const Tensor<float>& image, const Tensor<float>& weight) {
      return conv2d(image, weight, Tensor<float>(), options);
    };
    cases.push_back({c.work("forward"), [=] { return forward(convolve, x(), w()); }});
    cases.push_back({c.work("backward-data"), [=] {
                       const auto image = x().requires_grad_();
                       return gradient(convolve(image, w()), image);
                     }});
    cases.push_back({c.work("backward-weights"), [=] {
                       const auto weight = w().requires_grad_();
                       return gradient(convolve(x(), weight), weight);
                     }});
  }
}

/// Forward and backward of `compute`, the gradient of `x` read.
template <class Compute>
Run forward_backward(Tensor<float> x, Compute compute) {
  x.requires_grad_();
  return [=] {
    x.zero_grad();
    compute(x);
    return last(x.grad());
  };
}

template <class Function>
void add_pointwise(std::vector<Case>& cases, const char* name, Function function) {
  cases.push_back({pointwise(name), [=] { return forward(function, numbers({elements}, 1)); }});
}

void add_layers(std::vector<Case>& cases) {
  add_pointwise(cases, "relu", [](const auto& x) { return relu(x); });
  add_pointwise(cases, "exp", [](const auto& x) { return exp(x); });
  add_pointwise(cases, "tanh", [](const auto& x) { return tanh(x); });
  add_pointwise(cases, "gelu", [](const auto& x) { return gelu(x); });
  add_pointwise(cases, "sigmoid", [](const auto& x) { return sigmoid(x); });
  add_pointwise(cases, "sum", [](const auto& x) { return sum(x); });
  cases.push_back({pointwise("add"), [] {
                     return forward([](const auto& x, const auto& y) { return x + y; }, numbers({elements}, 1),
                                    numbers({elements}, 2));
                   }});

  const auto pooled = [](const Tensor<float>& x) { return max_pool2d(x, {2, 2}); };
  cases.push_back({max_pool("forward"), [=] { return forward(pooled, numbers({64, 20, 24, 24}, 1)); }});
  cases.push_back({max_pool("forward+backward"), [=] {
                     return forward_backward(
                         numbers({64, 20, 24, 24}, 1),
                         [=, g = numbers({64, 20, 12, 12}, 2)](const Tensor<float>& x) { pooled(x).backward(g); });
                   }});

  cases.push_back({softmax(), [] {
                     return forward([](const auto& x) { return tenet::softmax(x, 1); }, numbers({1024, 1024}, 1, 4));
                   }});
  cases.push_back({cross_entropy("forward"), [] {
                     return forward([t = labels(64, 1000)](const auto& x) { return tenet::cross_entropy(x, t); },
                                    numbers({64, 1000}, 1, 4));
                   }});
  cases.push_back({cross_entropy("forward+backward"), [] {
                     return forward_backward(numbers({64, 1000}, 1, 4), [t = labels(64, 1000)](const auto& x) {
                       tenet::cross_entropy(x, t).backward();
                     });
                   }});
}

template <class Optimizer, class Options>
Run optimizer_step(const Options& options) {
  const auto p = numbers({parameters}, 1).requires_grad_();
  (p * numbers({parameters}, 2)).sum().backward();
  const auto optimizer = std::make_shared<Optimizer>(std::vector<AnyTensor>{p}, options);
  return [=] {
    optimizer->step();
    return last(p);
  };
}

Run tiny_forward() {
  const auto one = ones({4});
  return [=, x = numbers({4}, 1)] {
    const no_grad guard;
    Tensor<float> y = x;
    for (std::int64_t i = 0; i < chain; ++i) y = y * one;
    return last(y);
  };
}

Run tiny_forward_backward() {
  return forward_backward(numbers({4}, 1), [one = ones({4})](const Tensor<float>& x) {
    Tensor<float> y = x;
    for (std::int64_t i = 0; i < chain; ++i) y = y * one;
    y.backward(one);
  });
}

template <class Model>
void set_parameters(Model& model) {
  unsigned seed = 10;
  for (const AnyTensor& p : model.parameters()) {
    fill(Tensor<float>(p).data(), p.numel(), seed++, parameter_scale(p.numel(), p.size(0)));
  }
}

/// The loop of training: the loss of the step is the number.
template <class Model>
Run training(std::shared_ptr<Model> model, Tensor<float> inputs, Tensor<std::int64_t> targets, double lr, double m) {
  set_parameters(*model);
  const auto optimizer = std::make_shared<optim::SGD>(model->parameters(), optim::SGDOptions{.lr = lr, .momentum = m});
  return [=] {
    nn::CrossEntropyLoss criterion;
    optimizer->zero_grad();
    auto loss = criterion((*model)(inputs), targets);
    loss.backward();
    optimizer->step();
    return double(loss.item());
  };
}

Run mlp_training() {
  using Mlp = nn::Sequential<nn::Linear<>, nn::ReLU, nn::Linear<>>;
  const auto model = std::make_shared<Mlp>(nn::Linear<>(64, 64), nn::ReLU(), nn::Linear<>(64, 64));
  return training(model, numbers({1, 64}, 1), labels(1, 64), learning_rate, 0);
}

Run lenet_inference(int batch) {
  const auto model = std::make_shared<LeNet>();
  set_parameters(*model);
  model->eval();
  return forward([=](const Tensor<float>& x) { return (*model)(x); }, numbers({batch, 1, 28, 28}, 1));
}

Run dynamic_int8(std::int64_t rows) {
  const auto layer = std::make_shared<nn::Linear<>>(dynamic_size, dynamic_size);
  layer->weight = nn::Weight<>(numbers({dynamic_size, dynamic_size}, 2));
  layer->bias = nn::Parameter<>(numbers({dynamic_size}, 3));
  quant::quantize_dynamic_<nn::Linear>(*layer);
  return forward([=](const Tensor<float>& x) { return (*layer)(x); }, numbers({rows, dynamic_size}, 1));
}

Run autocast_linear() {
  const auto w = numbers({low_size, low_size}, 2).requires_grad_(), bias = numbers({low_size}, 3).requires_grad_();
  const auto g = numbers({low_rows, low_size}, 4);
  return forward_backward(numbers({low_rows, low_size}, 1), [=](const Tensor<float>& x) {
    w.zero_grad();
    bias.zero_grad();
    Tensor<float> y;
    {
      amp::autocast low(DType::bfloat16);
      y = linear(x, w, bias);
    }
    y.backward(g);
  });
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (int n : lenet_batches()) {
    all.push_back({lenet("train", n), [n] {
                     return training(std::make_shared<LeNet>(), numbers({n, 1, 28, 28}, 1), labels(n, 10),
                                     learning_rate, momentum);
                   }});
  }
  for (int n : lenet_batches()) all.push_back({lenet("inference", n), [n] { return lenet_inference(n); }});
  all.push_back({mlp(), mlp_training});
  all.push_back({tiny("mul/forward"), tiny_forward});
  all.push_back({tiny("mul/forward+backward"), tiny_forward_backward});
  add_convolutions(all);
  add_layers(all);
  all.push_back({optimizer("sgd"), [] {
                   return optimizer_step<optim::SGD>(optim::SGDOptions{.lr = learning_rate, .momentum = momentum});
                 }});
  all.push_back(
      {optimizer("adamw"), [] { return optimizer_step<optim::AdamW>(optim::AdamWOptions{.lr = learning_rate}); }});
  for (const Product& p : products()) all.push_back({p.work("f32"), [p] { return product<float>(p); }});
  for (const Product& p : common_products()) {
    all.push_back({p.work("bf16"), [p] { return product<bfloat16>(p); }});
    all.push_back({p.work("s8s8"), [p] { return integer_product<std::int8_t>(p); }});
    all.push_back({p.work("u8s8"), [p] { return integer_product<std::uint8_t>(p); }});
  }
  all.push_back({low_linear(), autocast_linear});
  for (std::int64_t rows : dynamic_rows) all.push_back({dynamic_linear(rows), [rows] { return dynamic_int8(rows); }});
  return all;
}

std::string description() {
  static const char* const names[] = {"baseline", "avx2", "avx512"};
  const auto set = [](cpu::Isa isa) { return std::string(names[int(isa)]); };
  std::string out = text({"tenet ", TENET_VERSION_MAJOR, ".", TENET_VERSION_MINOR, ".", TENET_VERSION_PATCH});
  out += ", instruction set " + set(cpu::isa());
  if (cpu::isa() != cpu::machine_isa()) out += " (the machine has " + set(cpu::machine_isa()) + ")";
#ifdef __clang__
  return out + ", compiled by " __VERSION__;
#else
  return out + ", compiled by g++ " __VERSION__;
#endif
}

const bool added = add_library({"tenet", description(), [](int n) { set_num_threads(n); }, cases()});

}  // namespace

}  // namespace bench
