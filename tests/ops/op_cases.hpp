// One description of an operation, and everything that must hold for it.
//
//   check({.name = "exp", .f = [](const auto& x) { return exp(x[0]); }, .inputs = {{{2, 3}}},
//          .reference = elementwise([](double x) { return std::exp(x); }), .shapes = unary_shapes()});
//   check({.name = "softmax", .f = [](const auto& x) { return softmax(x[0], 1); }, .file = "softmax.txt"});
//
// The first draws its inputs and compares with a plain function; the second takes inputs, output and gradients
// from PyTorch's case of that name (see reference.hpp). `x` is the vector of the inputs.
#pragma once

#include <gtest/gtest.h>
#include <tenet/autograd/gradcheck.hpp>
#include <tenet/ops/grad_math.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "ops/layouts.hpp"
#include "ops/reference.hpp"

namespace tenet::test {

using Tensors = std::vector<Tensor<double>>;

/// The operation: a function of the inputs. A generic lambda runs in float too.
struct Function {
  template <class F>
  Function(F f) : in_double(f) {
    if constexpr (std::is_invocable_v<F, const std::vector<Tensor<float>>&>) in_float = f;
  }
  std::function<Tensor<double>(const Tensors&)> in_double;
  std::function<Tensor<float>(const std::vector<Tensor<float>>&)> in_float;
};

/// An input: its shape and the range its values are drawn from. They are distinct, and no closer than `margin`
/// to the kinks.
struct Input {
  Shape shape;
  double low = -2, high = 2;
  std::vector<double> kinks = {};
  bool differentiable = true;
  static constexpr double margin = 1e-3;
};

struct OpCase {
  std::string name;
  Function f;
  std::vector<Input> inputs = {};
  std::function<Tensor<double>(const Tensors&)> reference = {};  // what f should give
  std::string file = {};                                         // or the fixture that tells
  std::vector<std::vector<Shape>> shapes = {};                   // more shapes, each list one for every input
  bool once = true, twice = true;                                // differentiable, and again
  bool expands = true;                                           // may be given expanded inputs
  double tolerance = 1e-10, float_tolerance = 1e-5;              // relative, and absolute below 1
};

// ---- references and shapes

/// The element of `t` at row-major position `i` of `shape`, which t's shape broadcasts to.
inline double broadcast_element(const Tensor<double>& t, const Shape& shape, std::int64_t i) {
  const Strides steps = broadcast_strides(t.shape(), t.strides(), shape);
  std::int64_t at = 0;
  for (int d = shape.size(); d-- > 0; i /= shape[d]) at += i % shape[d] * steps[d];
  return t.data()[at];
}

/// The reference that applies a function of one, two or three doubles elementwise, with broadcasting.
template <class F>
std::function<Tensor<double>(const Tensors&)> elementwise(F f) {
  return [f](const Tensors& x) {
    Shape shape = x[0].shape();
    for (const auto& t : x) shape = broadcast_shapes("reference", shape, t.shape());
    Tensor<double> y = empty<double>(shape);
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      const auto at = [&](std::size_t k) { return broadcast_element(x[k], shape, i); };
      if constexpr (std::is_invocable_v<F, double>) y.data()[i] = f(at(0));
      else if constexpr (std::is_invocable_v<F, double, double>) y.data()[i] = f(at(0), at(1));
      else y.data()[i] = f(at(0), at(1), at(2));
    }
    return y;
  };
}

/// Size-one and empty inputs of a function of elements.
inline std::vector<std::vector<Shape>> unary_shapes() { return {{{}}, {{1}}, {{1, 1, 1}}, {{0}}, {{2, 0, 3}}}; }
/// The same of two inputs, and those that broadcast.
inline std::vector<std::vector<Shape>> binary_shapes() {
  return {{{}, {}},     {{1}, {1}},   {{0}, {0}},       {{2, 1}, {1, 3}}, {{3}, {2, 3}}, {{2, 2, 3}, {1, 3}},
          {{}, {2, 2}}, {{2, 2}, {}}, {{2, 0}, {1, 1}}, {{1}, {0}}};
}

// ---- comparison

inline bool near(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

template <class T>
void expect_near(const Tensor<T>& actual, const Tensor<double>& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(actual.defined(), expected.defined()) << what;
  if (!actual) return;
  ASSERT_EQ(actual.shape().str(), expected.shape().str()) << what;
  const auto a = actual.to_vector();
  const auto e = expected.to_vector();
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(near(double(a[i]), e[i], tolerance)) << what << ", element " << i << " of " << expected.shape().str()
                                                     << ": " << double(a[i]) << " instead of " << e[i];
  }
}

// ---- the checks

namespace detail {

/// Distinct values, the same for each run, in an order without pattern.
inline Tensor<double> draw(const Input& input, const Shape& shape, std::uint64_t seed) {
  Generator generator(seed);
  const std::int64_t n = shape.numel();
  const Tensor<std::int64_t> order = randperm(n, generator);
  const Tensor<double> jitter = rand<double>(shape, generator), x = empty<double>(shape);
  for (std::int64_t i = 0; i < n; ++i) {
    const double place = (double(order.data()[i]) + 0.25 + 0.5 * jitter.data()[i]) / double(n);
    double value = input.low + (input.high - input.low) * place;
    for (const double kink : input.kinks) {
      if (std::abs(value - kink) < Input::margin) value = kink + (value < kink ? -1 : 1) * Input::margin;
    }
    x.data()[i] = value;
  }
  return x;
}

struct Result {
  Tensor<double> output;
  Tensors gradients;  // one an input; undefined if none was asked for or f does not depend on it
};

/// f at `inputs`, and the gradients of sum(output * weights) for the inputs that are marked.
inline Result evaluate(const OpCase& c, const Tensors& inputs, const std::vector<bool>& wanted,
                       const Tensor<double>& weights) {
  Result r;
  std::vector<AnyTensor> leaves;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    inputs[i].impl()->requires_grad = wanted[i];
    if (wanted[i]) leaves.push_back(inputs[i]);
  }
  const Tensor<double> y = c.f.in_double(inputs);
  r.output = detach(y);
  r.gradients.resize(inputs.size());
  EXPECT_EQ(y.requires_grad(), !leaves.empty()) << "whether the output is part of a graph";
  if (y.requires_grad()) {
    const auto g = autograd::grad<double>(Tensors{y}, leaves, {.grad_outputs = {weights}, .allow_unused = true});
    for (std::size_t i = 0, k = 0; i < inputs.size(); ++i) {
      if (wanted[i]) r.gradients[i] = Tensor<double>(g[k++]);
    }
  }
  for (const auto& x : inputs) x.impl()->requires_grad = false;
  return r;
}

class Checker {
 public:
  Checker(const OpCase& op, Tensors in, std::vector<bool> differentiable)
      : c(op), inputs(std::move(in)), wanted(std::move(differentiable)) {}

  void run(const Reference* reference) {
    const Tensor<double> y = c.f.in_double(inputs);
    weights = reference && reference->weights ? reference->weights : autograd::detail::projection(y.shape());
    if (reference) {
      ASSERT_EQ(y.shape().str(), reference->output.shape().str());
    }
    expected = evaluate(c, inputs, wanted, weights);
    if (reference) {
      expect_near(expected.output, reference->output, c.tolerance, "output against PyTorch's");
      for (std::size_t i = 0; i < reference->gradients.size(); ++i) {
        if (wanted[i]) compare_gradient(i, expected.gradients[i], reference->gradients[i], "against PyTorch's");
      }
    } else if (c.reference) {
      expect_near(expected.output, c.reference(inputs), c.tolerance, "output");
    }
    gradients();
    layouts();
    if (c.expands) expanded();
    in_float();
  }

 private:
  // An undefined gradient and one of zeros mean the same.
  void compare_gradient(std::size_t i, const Tensor<double>& g, const Tensor<double>& to, const std::string& what) {
    const auto full = [&](const Tensor<double>& t) { return t ? t : zeros<double>(inputs[i].shape()); };
    expect_near(full(g), full(to), c.tolerance, "gradient of input " + std::to_string(i) + " " + what);
  }

  void compare(const Tensors& in, const std::string& what, const Result& to) {
    std::vector<std::string> before;
    for (const auto& x : in) before.push_back(bytes_of(x));
    const Result r = evaluate(c, in, wanted, weights);
    expect_near(r.output, to.output, c.tolerance, "output, " + what);
    for (std::size_t i = 0; i < in.size(); ++i) {
      compare_gradient(i, r.gradients[i], to.gradients[i], what);
      EXPECT_TRUE(bytes_of(in[i]) == before[i]) << "input " << i << " was changed, " << what;
    }
  }

  void gradients() {
    const std::vector<bool> all = wanted;
    if (std::count(all.begin(), all.end(), true) == 0) return;
    for (std::size_t i = 0; i < all.size() && all.size() > 1; ++i) {  // each gradient alone
      if (!all[i]) continue;
      const std::vector<bool> one = [&] {
        std::vector<bool> v(all.size(), false);
        v[i] = true;
        return v;
      }();
      const Result r = evaluate(c, inputs, one, weights);
      compare_gradient(i, r.gradients[i], expected.gradients[i], "asked for alone");
    }
    Tensors leaves;
    for (std::size_t i = 0; i < all.size(); ++i) {
      leaves.push_back(arrange(inputs[i], Layout::row_major));
      leaves.back().requires_grad_(all[i]);
    }
    try {
      if (c.once) autograd::gradcheck(c.f.in_double, leaves);
      if (c.once && c.twice) autograd::gradgradcheck(c.f.in_double, leaves);
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }

  void layouts() {
    for (const Layout l : {Layout::row_major, Layout::reversed, Layout::stepped, Layout::narrowed}) {
      Tensors all;
      for (const auto& x : inputs) all.push_back(arrange(x, l));
      compare(all, test::name(l), expected);
      for (std::size_t i = 0; i < inputs.size() && inputs.size() > 1 && l != Layout::row_major; ++i) {
        Tensors one = inputs;
        one[i] = all[i];
        compare(one, "input " + std::to_string(i) + " " + test::name(l), expected);
      }
    }
  }

  void expanded() {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      for (int d = 0; d < inputs[i].dim(); ++d) {
        if (inputs[i].shape()[d] < 2) continue;
        Tensors plain = inputs, repeated = inputs;
        repeated[i] = repeat_first(inputs[i], d);
        plain[i] = arrange(repeated[i], Layout::row_major);
        compare(repeated, "input " + std::to_string(i) + " expanded along " + std::to_string(d),
                evaluate(c, plain, wanted, weights));
      }
    }
  }

  void in_float() {
    if (!c.f.in_float) return;
    std::vector<Tensor<float>> in;
    Tensors rounded;
    for (const auto& x : inputs) {
      in.push_back(to<float>(x));
      rounded.push_back(to<double>(in.back()));
    }
    const no_grad guard;
    expect_near(c.f.in_float(in), c.f.in_double(rounded), c.float_tolerance, "output in float");
  }

  const OpCase& c;
  const Tensors inputs;
  const std::vector<bool> wanted;
  Tensor<double> weights;
  Result expected;
};

}  // namespace detail

/// Checks the operation: values and gradients against the reference; gradients and their gradients against finite
/// differences; the same results from inputs of every layout, which must not change; float against double; and
/// all of it for each of the further shapes.
inline void check(const OpCase& c) {
  SCOPED_TRACE(c.name);
  if (!c.file.empty()) {
    const Reference r = read_reference(c.file, c.name);
    std::vector<bool> wanted;
    for (std::size_t i = 0; i < r.inputs.size(); ++i) wanted.push_back(i < r.gradients.size() && r.gradients[i]);
    return detail::Checker(c, r.inputs, wanted).run(&r);
  }
  std::vector<std::vector<Shape>> shapes = c.shapes;
  shapes.emplace_back();
  for (const Input& i : c.inputs) shapes.back().push_back(i.shape);
  for (const std::vector<Shape>& s : shapes) {
    std::string all;
    for (const Shape& one : s) all += one.str() + " ";
    SCOPED_TRACE("shapes " + all);
    ASSERT_EQ(s.size(), c.inputs.size());
    Tensors inputs;
    std::vector<bool> wanted;
    for (std::size_t i = 0; i < s.size(); ++i) {
      inputs.push_back(detail::draw(c.inputs[i], s[i], 100 + i));
      wanted.push_back(c.once && c.inputs[i].differentiable);
    }
    detail::Checker(c, inputs, wanted).run(nullptr);
  }
}

}  // namespace tenet::test
