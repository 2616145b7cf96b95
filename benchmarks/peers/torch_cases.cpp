// The work in libtorch.
#include "workloads.hpp"

#include <ATen/autocast_mode.h>
#include <ATen/native/quantized/PackedParams.h>
#include <torch/torch.h>

#include <dlfcn.h>

#include <memory>

namespace bench {

namespace {

using torch::Tensor;

Tensor numbers(const std::vector<std::int64_t>& shape, unsigned seed, float scale = 1) {
  Tensor t = torch::empty(shape);
  fill(t.data_ptr<float>(), t.numel(), seed, scale);
  return t;
}

Tensor labels(std::int64_t n, std::int64_t classes) {
  Tensor t = torch::empty({n}, torch::kLong);
  fill_labels(t.data_ptr<std::int64_t>(), n, classes);
  return t;
}

double last(const Tensor& t) { return double(t.data_ptr<float>()[t.numel() - 1]); }

/// `compute(operands...)` without a graph, its last element read.
template <class Compute, class... T>
Run forward(Compute compute, T... operands) {
  return [=] {
    const c10::InferenceMode guard;
    return last(compute(operands...));
  };
}

Run product(Product p) {
  const Tensor a = p.a_transposed ? numbers({p.k, p.m}, 1).t() : numbers({p.m, p.k}, 1);
  const Tensor b = p.b_transposed ? numbers({p.n, p.k}, 2).t() : numbers({p.k, p.n}, 2);
  return forward([](const Tensor& x, const Tensor& y) { return torch::matmul(x, y); }, a, b);
}

/// The gradient of `output` with respect to `input`, over and over through one graph.
Run gradient(Tensor output, Tensor input) {
  const Tensor g = numbers(output.sizes().vec(), 3);
  return [=] { return last(torch::autograd::grad({output}, {input}, {g}, true)[0]); };
}

void add_convolutions(std::vector<Case>& cases) {
  for (const Convolution& c : convolutions()) {
    const auto x = [c] { return numbers(c.input_shape(), 1); };
    const auto w = [c] { return numbers(c.weight_shape(), 2); };
    const auto convolve = [c](const Tensor& image, const Tensor& weight) {
      return torch::conv2d(image, weight, {}, c.stride, c.padding, 1, c.groups);
    };
    cases.push_back({c.work("forward"), [=] { return forward(convolve, x(), w()); }});
    cases.push_back({c.work("backward-data"), [=] {
                       const Tensor image = x().requires_grad_();
                       return gradient(convolve(image, w()), image);
                     }});
    cases.push_back({c.work("backward-weights"), [=] {
                       const Tensor weight = w().requires_grad_();
                       return gradient(convolve(x(), weight), weight);
                     }});
  }
}

/// Forward and backward of `compute`, the gradient of `x` read.
template <class Compute>
Run forward_backward(Tensor x, Compute compute) {
  x.requires_grad_();
  return [=] {
    x.mutable_grad().reset();
    compute(x);
    return last(x.grad());
  };
}

template <class Function>
void add_pointwise(std::vector<Case>& cases, const char* name, Function function) {
  cases.push_back({pointwise(name), [=] { return forward(function, numbers({elements}, 1)); }});
}

void add_layers(std::vector<Case>& cases) {
  add_pointwise(cases, "relu", [](const Tensor& x) { return torch::relu(x); });
  add_pointwise(cases, "exp", [](const Tensor& x) { return torch::exp(x); });
  add_pointwise(cases, "tanh", [](const Tensor& x) { return torch::tanh(x); });
  add_pointwise(cases, "gelu", [](const Tensor& x) { return torch::gelu(x); });
  add_pointwise(cases, "sigmoid", [](const Tensor& x) { return torch::sigmoid(x); });
  add_pointwise(cases, "sum", [](const Tensor& x) { return torch::sum(x); });
  cases.push_back({pointwise("add"), [] {
                     return forward([](const Tensor& x, const Tensor& y) { return x + y; }, numbers({elements}, 1),
                                    numbers({elements}, 2));
                   }});

  const auto pooled = [](const Tensor& x) { return torch::max_pool2d(x, 2, 2); };
  cases.push_back({max_pool("forward"), [=] { return forward(pooled, numbers({64, 20, 24, 24}, 1)); }});
  cases.push_back({max_pool("forward+backward"), [=] {
                     return forward_backward(
                         numbers({64, 20, 24, 24}, 1),
                         [=, g = numbers({64, 20, 12, 12}, 2)](const Tensor& x) { pooled(x).backward(g); });
                   }});

  cases.push_back({softmax(), [] {
                     return forward([](const Tensor& x) { return torch::softmax(x, 1); }, numbers({1024, 1024}, 1, 4));
                   }});
  const auto loss = [](const Tensor& x, const Tensor& t) { return torch::nn::functional::cross_entropy(x, t); };
  cases.push_back({cross_entropy("forward"), [=] {
                     return forward(loss, numbers({64, 1000}, 1, 4), labels(64, 1000));
                   }});
  cases.push_back({cross_entropy("forward+backward"), [=] {
                     return forward_backward(numbers({64, 1000}, 1, 4),
                                             [=, t = labels(64, 1000)](const Tensor& x) { loss(x, t).backward(); });
                   }});
}

template <class Optimizer, class Options>
Run optimizer_step(const Options& options) {
  const Tensor p = numbers({parameters}, 1).requires_grad_();
  p.mutable_grad() = numbers({parameters}, 2);
  const auto optimizer = std::make_shared<Optimizer>(std::vector<Tensor>{p}, options);
  return [=] {
    optimizer->step();
    return last(p);
  };
}

Run tiny_forward() {
  const Tensor x = numbers({4}, 1), one = torch::ones({4});
  return [=] {
    const c10::InferenceMode guard;
    Tensor y = x;
    for (std::int64_t i = 0; i < chain; ++i) y = y * one;
    return last(y);
  };
}

Run tiny_forward_backward() {
  return forward_backward(numbers({4}, 1), [one = torch::ones({4})](const Tensor& x) {
    Tensor y = x;
    for (std::int64_t i = 0; i < chain; ++i) y = y * one;
    y.backward(one);
  });
}

struct LeNetImpl : torch::nn::Module {
  torch::nn::Conv2d conv1{torch::nn::Conv2dOptions(1, 20, 5)}, conv2{torch::nn::Conv2dOptions(20, 50, 5)};
  torch::nn::Linear fc1{50 * 4 * 4, 500}, fc2{500, 10};
  LeNetImpl() {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  Tensor forward(Tensor x) {
    x = torch::max_pool2d(torch::relu(conv1(x)), 2, 2);
    x = torch::max_pool2d(torch::relu(conv2(x)), 2, 2);
    x = x.view({-1, 50 * 4 * 4});
    x = torch::relu(fc1(x));
    return fc2(x);
  }
};
TORCH_MODULE(LeNet);

template <class Model>
void set_parameters(Model& model) {
  unsigned seed = 10;
  for (const Tensor& p : model->parameters()) {
    fill(p.data_ptr<float>(), p.numel(), seed++, parameter_scale(p.numel(), p.size(0)));
  }
}

/// The loop of training: the loss of the step is the number. Gradients are dropped, not filled with zeros.
template <class Model>
Run training(Model model, Tensor inputs, Tensor targets, double lr, double m) {
  set_parameters(model);
  const auto options = torch::optim::SGDOptions(lr).momentum(m);
  const auto optimizer = std::make_shared<torch::optim::SGD>(model->parameters(), options);
  const auto all = model->parameters();
  return [=]() mutable {
    for (const Tensor& p : all) p.mutable_grad().reset();
    Tensor loss = torch::nn::functional::cross_entropy(model->forward(inputs), targets);
    loss.backward();
    optimizer->step();
    return double(loss.item<float>());
  };
}

Run mlp_training() {
  torch::nn::Sequential model(torch::nn::Linear(64, 64), torch::nn::ReLU(), torch::nn::Linear(64, 64));
  return training(model, numbers({1, 64}, 1), labels(1, 64), learning_rate, 0);
}

Run lenet_inference(int batch) {
  LeNet model;
  set_parameters(model);
  model->eval();
  return forward([=](const Tensor& x) { return model.ptr()->forward(x); }, numbers({batch, 1, 28, 28}, 1));
}

/// By the engine of oneDNN, with the scale that the default observer finds. Inputs have 7 bits, as in PyTorch's own
/// layer: without AVX512_VNNI, products of 8 bits saturate there.
Run dynamic_int8(std::int64_t rows) {
  at::globalContext().setQEngine(at::QEngine::ONEDNN);
  const Tensor w = numbers({dynamic_size, dynamic_size}, 2), bias = numbers({dynamic_size}, 3);
  const Tensor q = torch::quantize_per_tensor(w, w.abs().max().item<double>() / 127.5, 0, torch::kQInt8);
  const auto weight = c10::Dispatcher::singleton()
                          .findSchemaOrThrow("quantized::linear_prepack", "")
                          .typed<c10::intrusive_ptr<LinearPackedParamsBase>(Tensor, c10::optional<Tensor>)>()
                          .call(q, bias);
  return forward([=](const Tensor& x) { return weight->apply_dynamic(x, true); }, numbers({rows, dynamic_size}, 1));
}

Run autocast_linear() {
  const Tensor w = numbers({low_size, low_size}, 2).requires_grad_(), bias = numbers({low_size}, 3).requires_grad_();
  const Tensor g = numbers({low_rows, low_size}, 4).to(torch::kBFloat16);
  return forward_backward(numbers({low_rows, low_size}, 1), [=](const Tensor& x) {
    w.mutable_grad().reset();
    bias.mutable_grad().reset();
    at::autocast::set_autocast_cpu_dtype(torch::kBFloat16);
    at::autocast::set_cpu_enabled(true);
    const Tensor y = torch::linear(x, w, bias);
    at::autocast::clear_cache();
    at::autocast::set_cpu_enabled(false);
    y.backward(g);
  });
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (int n : lenet_batches()) {
    all.push_back({lenet("train", n), [n] {
                     return training(LeNet(), numbers({n, 1, 28, 28}, 1), labels(n, 10), learning_rate, momentum);
                   }});
    all.push_back({lenet("inference", n), [n] { return lenet_inference(n); }});
  }
  all.push_back({mlp(), mlp_training});
  all.push_back({tiny("mul/forward"), tiny_forward});
  all.push_back({tiny("mul/forward+backward"), tiny_forward_backward});
  add_convolutions(all);
  add_layers(all);
  all.push_back({optimizer("sgd"), [] {
                   return optimizer_step<torch::optim::SGD>(torch::optim::SGDOptions(learning_rate).momentum(momentum));
                 }});
  all.push_back({optimizer("adamw"),
                 [] { return optimizer_step<torch::optim::AdamW>(torch::optim::AdamWOptions(learning_rate)); }});
  for (const Product& p : plain_products()) all.push_back({p.work("f32"), [p] { return product(p); }});
  all.push_back({low_linear(), autocast_linear});
  for (std::int64_t rows : dynamic_rows) all.push_back({dynamic_linear(rows), [rows] { return dynamic_int8(rows); }});
  return all;
}

/// What OpenBLAS takes the processor for, where libtorch multiplies through it.
std::string openblas() {
  const auto config = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_config"));
  return config ? std::string(" with ") + config() : "";
}

void set_threads(int n) {
  at::set_num_threads(n);
  at::set_num_interop_threads(n);
}

const bool added = add_library({"libtorch", "libtorch " TORCH_VERSION + openblas(), set_threads, cases()});

}  // namespace

}  // namespace bench
