// The work in plain Eigen. Compiled twice: with the program's flags, and for this machine. In the second copy the
// library's namespace has another name, for the linker would keep one copy of each function.
#ifdef TENET_BENCH_EIGEN_NATIVE
#define Eigen EigenNative
#endif

#include "workloads.hpp"

#include <Eigen/Core>

#include <algorithm>
#include <memory>

namespace bench {

namespace {

#ifdef TENET_BENCH_EIGEN_NATIVE
constexpr const char *name = "eigen-native", *flags = " with -march=native";
#else
constexpr const char *name = "eigen", *flags = " with the flags of tenet";
#endif

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Array = Eigen::ArrayXf;

Matrix matrix(std::int64_t rows, std::int64_t cols, unsigned seed) {
  Matrix m(rows, cols);
  fill(m.data(), m.size(), seed);
  return m;
}

Array numbers(std::int64_t n, unsigned seed) {
  Array a(n);
  fill(a.data(), n, seed);
  return a;
}

/// c = compute(a, b): `assign(a, b, c)`, with operands that stay where they are.
template <class Operand, class Assign>
Run assigned(Operand a, Operand b, Operand c, Assign assign) {
  struct State {
    Operand a, b, c;
  };
  const auto state = std::make_shared<State>(State{std::move(a), std::move(b), std::move(c)});
  return [=] {
    assign(state->a, state->b, state->c);
    return double(state->c.data()[state->c.size() - 1]);
  };
}

Run product(Product p) {
  Matrix a = p.a_transposed ? matrix(p.k, p.m, 1) : matrix(p.m, p.k, 1);
  Matrix b = p.b_transposed ? matrix(p.n, p.k, 2) : matrix(p.k, p.n, 2);
  Matrix c(p.m, p.n);
  return assigned(std::move(a), std::move(b), std::move(c), [=](const Matrix& x, const Matrix& y, Matrix& z) {
    if (p.a_transposed) z.noalias() = x.transpose() * y;
    else if (p.b_transposed) z.noalias() = x * y.transpose();
    else z.noalias() = x * y;
  });
}

template <class Assign>
void add_pointwise(std::vector<Case>& cases, const char* function, Assign assign) {
  cases.push_back({pointwise(function),
                   [=] { return assigned(numbers(elements, 1), numbers(elements, 2), Array(elements), assign); }});
}

/// Updates in blocks that stay in the nearest cache, so that memory is passed over once: the bound of its bandwidth.
constexpr std::int64_t block = 1024;

Run sgd_step() {
  return assigned(numbers(parameters, 2), Array(Array::Zero(parameters)), numbers(parameters, 1),
                  [](const Array& gradient, Array& buffer, Array& p) {
                    for (std::int64_t i = 0; i < parameters; i += block) {
                      const std::int64_t n = std::min(block, parameters - i);
                      auto b = buffer.segment(i, n);
                      b = float(momentum) * b + gradient.segment(i, n);
                      p.segment(i, n) -= float(learning_rate) * b;
                    }
                  });
}

Run adamw_step() {
  struct State {
    Array gradient, mean, square, p;
    double step = 0;
  };
  const Array zero = Array::Zero(parameters);
  const auto s = std::make_shared<State>(State{numbers(parameters, 2), zero, zero, numbers(parameters, 1)});
  return [=] {
    constexpr double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2;
    s->step += 1;
    const auto rate = float(learning_rate / (1 - std::pow(beta1, s->step)));
    const auto root = float(1 / std::sqrt(1 - std::pow(beta2, s->step)));
    for (std::int64_t i = 0; i < parameters; i += block) {
      const std::int64_t n = std::min(block, parameters - i);
      const auto g = s->gradient.segment(i, n);
      auto m = s->mean.segment(i, n), v = s->square.segment(i, n), p = s->p.segment(i, n);
      m = float(beta1) * m + float(1 - beta1) * g;
      v = float(beta2) * v + float(1 - beta2) * g * g;
      p = float(1 - learning_rate * weight_decay) * p - rate * m / (root * v.sqrt() + float(eps));
    }
    return double(s->p[parameters - 1]);
  };
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Product& p : products()) all.push_back({p.work("f32"), [p] { return product(p); }});
  add_pointwise(all, "relu", [](const Array& x, const Array&, Array& y) { y = x.max(0.f); });
  add_pointwise(all, "exp", [](const Array& x, const Array&, Array& y) { y = x.exp(); });
  add_pointwise(all, "tanh", [](const Array& x, const Array&, Array& y) { y = x.tanh(); });
  add_pointwise(all, "sum", [](const Array& x, const Array&, Array& y) { y[elements - 1] = x.sum(); });
  add_pointwise(all, "add", [](const Array& x, const Array& z, Array& y) { y = x + z; });
  all.push_back({optimizer("sgd"), sgd_step});
  all.push_back({optimizer("adamw"), adamw_step});
  return all;
}

std::string description() {
  return "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
         std::to_string(EIGEN_MINOR_VERSION) + flags + " (" + Eigen::SimdInstructionSetsInUse() + ")";
}

const bool added = add_library({name, description(), [](int n) { Eigen::setNbThreads(n); }, cases()});

}  // namespace

}  // namespace bench
