#include <tenet/autograd/engine.hpp>

#include <gtest/gtest.h>
#include <tenet/ops/activation.hpp>
#include <tenet/ops/arithmetic.hpp>
#include <tenet/ops/compare.hpp>
#include <tenet/ops/unary.hpp>
#include <tenet/ops/view.hpp>

#include <thread>

#include "autograd/support.hpp"

namespace tenet {
namespace {

using test::expect_error;
using test::expect_no_leak;
using test::leaf;
using test::values;

using Doubles = std::vector<double>;

// Identity whose backward throws while told so.
struct Fragile {
  static constexpr const char* name = "fragile";
  static inline bool broken = false;
  template <class T>
  static Tensor<T> forward(Context&, const Tensor<T>& x) {
    return clone(detach(x));
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    if (broken) throw Error("fragile: broken");
    grad[0] = g;
  }
};

// ---- the shape of graphs

TEST(Engine, DeepChains) {
  constexpr int depth = 200000;
  test::on_small_stack([] {
    const auto x = leaf(1);
    {
      auto dropped = x * 1;
      for (int i = 0; i < depth; ++i) dropped = dropped * 1;
    }
    auto y = x * 1;
    for (int i = 0; i < depth; ++i) y = y * 1;
    y.backward();
    EXPECT_EQ(x.grad().item(), 1);
    y = {};

    x.zero_grad();
    auto kept = x * 1;
    for (int i = 0; i < depth / 4; ++i) kept = exp(kept) * 0;  // keeps outputs
    kept.backward({.retain_graph = true});
    EXPECT_EQ(x.grad().item(), 0);
    kept = {};

    const auto v = leaf(Doubles{1, 2});
    auto view = v.view({2, 1});
    for (int i = 0; i < depth; ++i) view = view.transpose(0, 1);
    view.backward(ones<double>(view.shape()));
    EXPECT_EQ(values(v.grad()), (Doubles{1, 1}));
  });
}

TEST(Engine, DeepGradientGraph) {
  test::on_small_stack([] {
    const auto x = leaf(1);
    auto y = x * x;
    for (int i = 0; i < 20000; ++i) y = y * 1;
    const auto g = autograd::grad(y, x, {.create_graph = true});
    EXPECT_EQ(g.item(), 2);
    g.backward();
    EXPECT_EQ(x.grad().item(), 2);
  });
}

TEST(Engine, Diamonds) {
  {
    const auto x = leaf(2);
    const auto y = x * 3;
    (y * 2 + y * 5).backward();
    EXPECT_EQ(x.grad().item(), 21);
  }
  {
    const auto x = leaf(1), a = leaf(1);
    const auto f = x * 2 * (x * a) + (x * x) * a;
    f.backward();
    EXPECT_EQ(f.item(), 3);
    EXPECT_EQ(x.grad().item(), 6);
    EXPECT_EQ(a.grad().item(), 3);
  }
  {
    const auto x = leaf(1);
    (x + x).backward();
    EXPECT_EQ(x.grad().item(), 2);
  }
}

// A ladder of diamonds has 2^50 paths: nodes are walked once, not paths.
TEST(Engine, ManyPaths) {
  const auto x = leaf(1);
  auto y = x * 1;
  for (int i = 0; i < 50; ++i) y = y + y;
  y.backward();
  EXPECT_EQ(x.grad().item(), double(std::int64_t(1) << 50));
}

TEST(Engine, PathsOfDifferentLength) {
  const auto x = leaf(3);
  auto deep = x * 1;
  for (int i = 0; i < 10; ++i) deep = deep * x;
  (deep + x + x * x).backward();
  EXPECT_EQ(x.grad().item(), 11 * std::pow(3.0, 10) + 1 + 6);
}

TEST(Engine, BroadcastGradients) {
  auto a = from_vector<double>({1, 2}, {2, 1}).requires_grad_();
  auto b = from_vector<double>({10, 20, 30}, {1, 3}).requires_grad_();
  (a + b).backward(ones<double>({2, 3}));
  EXPECT_EQ(values(a.grad()), (Doubles{3, 3}));
  EXPECT_EQ(values(b.grad()), (Doubles{2, 2, 2}));
  EXPECT_EQ(a.grad().shape(), Shape({2, 1}));
  a.zero_grad();
  b.zero_grad();
  (a * b).backward(ones<double>({2, 3}));
  EXPECT_EQ(values(a.grad()), (Doubles{60, 60}));
  EXPECT_EQ(values(b.grad()), (Doubles{3, 3, 3}));
  const auto s = leaf(2);
  (s * ones<double>({5, 4})).backward(ones<double>({5, 4}));
  EXPECT_EQ(s.grad().item(), 20);
  EXPECT_EQ(s.grad().shape(), Shape({}));
}

// ---- how often

TEST(Engine, BackwardTwice) {
  const auto x = leaf(3);
  auto z = x * x;
  z.backward();
  EXPECT_EQ(x.grad().item(), 6);
  expect_error([&] { z.backward(); }, "retain_graph");
  EXPECT_EQ(x.grad().item(), 6);
  x.zero_grad();
  z = x * x;
  z.backward({.retain_graph = true});
  z.backward();
  EXPECT_EQ(x.grad().item(), 12);
}

TEST(Engine, GradientsAccumulate) {
  const auto x = leaf(Doubles{1, 2});
  (x * 2).backward(ones<double>({2}));
  const auto first = x.grad();
  (x * 3).backward(ones<double>({2}));
  EXPECT_EQ(values(x.grad()), (Doubles{5, 5}));
  EXPECT_EQ(values(first), (Doubles{2, 2})) << "a gradient that somebody holds must not change";
}

// Whatever a .grad() is made of, changing it in place changes nothing else.
TEST(Engine, GradientsShareNoMemory) {
  for (const bool create_graph : {false, true}) {
    const auto a = leaf(Doubles{1, 2}), b = leaf(Doubles{3, 4});
    const auto start = ones<double>({2});
    (a + b).backward(start, {.create_graph = create_graph});
    const no_grad guard;
    a.grad().mul_(7);
    EXPECT_EQ(values(b.grad()), (Doubles{1, 1}));
    EXPECT_EQ(values(start), (Doubles{1, 1}));
  }
}

// Nor does a gradient that a hook made of memory that is somebody's.
TEST(Engine, BorrowedMemoryIsNotAddedTo) {
  double memory[] = {1, 1};
  const auto x = leaf(Doubles{1, 2});
  x.register_hook([&](const Tensor<double>&) { return from_blob(memory, {2}); });
  for (int pass = 0; pass < 2; ++pass) (x * 1).backward(ones<double>({2}));
  EXPECT_EQ(values(x.grad()), (Doubles{2, 2}));
  EXPECT_EQ(memory[0], 1);
}

TEST(Engine, SeveralOutputs) {
  const auto x = leaf(2);
  autograd::backward<double>({x * x, x * 3, x.view({1}) * 5}, {scalar(1.0), scalar(10.0), ones<double>({1})});
  EXPECT_EQ(x.grad().item(), 4 + 30 + 5);
  expect_error([&] { autograd::backward<double>({x * x, x}, {scalar(1.0)}); }, "2 gradients");
}

TEST(Engine, LeafAsOutput) {
  const auto x = leaf(2);
  x.backward();
  EXPECT_EQ(x.grad().item(), 1);
}

TEST(Engine, WhereToStart) {
  const auto x = leaf(Doubles{1, 2});
  expect_error([&] { (x * 2).backward(); }, "only a scalar");
  EXPECT_THROW((x * 2).backward(ones<double>({3})), ShapeError);
  expect_error([] { ones<double>({}).backward(); }, "no graph");
  const no_grad guard;
  expect_error([&] { (x * 2).backward(ones<double>({2})); }, "no graph");
}

// ---- autograd::grad

TEST(Grad, LeavesGradAlone) {
  const auto x = leaf(3);
  EXPECT_EQ(autograd::grad(x * x, x).item(), 6);
  EXPECT_FALSE(x.grad());
}

TEST(Grad, InputsInsideTheGraph) {
  const auto x = leaf(3);
  const auto h = x * x, y = h * h + x;
  const auto g = autograd::grad<double>({y}, {h, x, y});
  EXPECT_EQ(Tensor<double>(g[0]).item(), 18);
  EXPECT_EQ(Tensor<double>(g[1]).item(), 18 * 6 + 1);
  EXPECT_EQ(Tensor<double>(g[2]).item(), 1);
}

TEST(Grad, UnusedInputs) {
  const auto x = leaf(3), unused = leaf(4), constant = scalar(5.0);
  const auto y = x * constant;
  expect_error([&] { autograd::grad<double>({y}, {x, unused}, {.retain_graph = true}); }, "do not depend on input 1");
  const auto g = autograd::grad<double>({y}, {unused, x, constant}, {.allow_unused = true});
  EXPECT_FALSE(g[0]);
  EXPECT_EQ(Tensor<double>(g[1]).item(), 5);
  EXPECT_FALSE(g[2]);
}

TEST(Grad, LeavesTheGraphBelowAlone) {
  const auto x = leaf(3);
  const auto h = x * x;
  const auto g = autograd::grad(h * h, h);
  EXPECT_EQ(g.item(), 18);
  h.backward(g);
  EXPECT_EQ(x.grad().item(), 108);
}

TEST(Grad, StopsAtAGraphThatIsFreed) {
  const auto x = leaf(3);
  const auto h = x * x;
  h.backward();
  EXPECT_EQ(autograd::grad(h * 3, h).item(), 3);
  expect_error([&] { autograd::grad(h * 3, x); }, "freed");
}

TEST(Grad, Weighted) {
  const auto x = leaf(Doubles{1, 2});
  const auto g = autograd::grad(x * x, x, {.grad_outputs = {from_vector<double>({10, 100})}});
  EXPECT_EQ(values(g), (Doubles{20, 400}));
}

TEST(Grad, HigherOrders) {
  const auto x = leaf(2);
  const auto y = x * x * x;
  const auto d1 = autograd::grad(y, x, {.create_graph = true});
  const auto d2 = autograd::grad(d1, x, {.create_graph = true});
  const auto d3 = autograd::grad(d2, x);
  EXPECT_EQ(d1.item(), 12);
  EXPECT_EQ(d2.item(), 12);
  EXPECT_EQ(d3.item(), 6);
  EXPECT_FALSE(d3.requires_grad());
}

TEST(Grad, PenaltyOnAGradient) {
  const auto x = leaf(0.5);
  const auto g = autograd::grad(exp(x * x), x, {.create_graph = true});
  (g * g).backward();
  const double e = std::exp(0.25);  // g = 2 x e^(x^2), g' = (2 + 4 x^2) e^(x^2)
  EXPECT_NEAR(x.grad().item(), 2 * e * 3 * e, 1e-12);
}

// ---- recording or not

TEST(GradMode, NothingIsRecorded) {
  const auto x = leaf(Doubles{1, 2});
  {
    const no_grad guard;
    EXPECT_FALSE((x * 2).requires_grad());
    {
      const enable_grad inner;
      EXPECT_TRUE((x * 2).requires_grad());
    }
    EXPECT_FALSE(is_grad_enabled());
    for (const std::int64_t n : {32767, 32769, 100000}) {  // on one thread and on several
      auto big = ones<float>({n});
      big.requires_grad_();
      EXPECT_FALSE(relu(big + 1).requires_grad());
    }
  }
  EXPECT_TRUE((x * 2).requires_grad());
  EXPECT_FALSE((x.detach() * 2).requires_grad());
}

TEST(GradMode, BelongsToAThread) {
  const no_grad guard;
  std::thread([] { EXPECT_TRUE(is_grad_enabled()); }).join();
  EXPECT_FALSE(is_grad_enabled());
}

TEST(GradMode, RestoredAfterAnError) {
  const auto x = leaf(1);
  const auto y = apply<Fragile>(x * 2);
  Fragile::broken = true;
  EXPECT_THROW(y.backward({.create_graph = true}), Error);
  EXPECT_THROW(y.backward(), Error);
  Fragile::broken = false;
  EXPECT_TRUE(is_grad_enabled());
}

TEST(Anomaly, NamesTheOperation) {
  const autograd::detect_anomaly guard;
  auto x = zeros<double>({1}).requires_grad_();
  expect_error([&] { (sqrt(x) * 0).backward(ones<double>({1})); }, "'sqrt'");
  (sqrt(x + 1) * 0).backward(ones<double>({1}));
}

// ---- errors half-way

TEST(Engine, AnErrorLeavesTheGraphUsable) {
  const auto x = leaf(2);
  const auto h = x * 3;
  const auto y = apply<Fragile>(h) * h + exp(x);
  Fragile::broken = true;
  for (int i = 0; i < 3; ++i) expect_error([&] { y.backward({.retain_graph = true}); }, "fragile");
  EXPECT_FALSE(x.grad()) << "no gradient had arrived when it threw";
  Fragile::broken = false;
  y.backward();
  EXPECT_DOUBLE_EQ(x.grad().item(), 2 * 3 * 6 + std::exp(2));
}

TEST(Engine, AnErrorLeaksNothing) {
  expect_no_leak([] {
    const auto x = leaf(Doubles(100, 1.0));
    const auto y = apply<Fragile>(x * 3) * x + x * x;
    Fragile::broken = true;
    EXPECT_THROW(y.backward(ones<double>({100})), Error);
    Fragile::broken = false;
  });
}

// ---- threads

// Each thread walks a graph of its own to leaves that all share.
TEST(Threads, ShareLeaves) {
  const auto w = leaf(Doubles(64, 1.0));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&w] {
      for (int i = 0; i < 200; ++i) (w * w + w).backward(ones<double>({64}));
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(values(w.grad()), Doubles(64, 4 * 200 * 3.0));
}

// Of threads in one graph, one goes on and the others get an error. No gradient is lost or counted twice.
TEST(Threads, ShareAGraph) {
  const auto w = leaf(1);
  auto trunk = w * 1;
  for (int i = 0; i < 300; ++i) trunk = trunk * 1;
  const auto y = trunk * 2;
  std::atomic<int> done{0}, refused{0}, ready{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (++ready; ready < 4;) std::this_thread::yield();
      for (int i = 0; i < 50; ++i) {
        try {
          y.backward({.retain_graph = true});
          ++done;
        } catch (const Error&) {
          ++refused;
        }
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(done + refused, 200);
  EXPECT_GT(done, 0);
  EXPECT_EQ(w.grad().item(), 2.0 * done);
  y.backward();  // and it is usable afterwards
  EXPECT_EQ(w.grad().item(), 2.0 * done + 2);
}

TEST(Threads, FreedByAnotherThread) {
  const auto w = leaf(1);
  const auto trunk = exp(w * 2);
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      try {
        (trunk * 3).backward();
        ++done;
      } catch (const Error&) {
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(done, 1);
  EXPECT_DOUBLE_EQ(w.grad().item(), 6 * std::exp(2));
}

// ---- memory

TEST(Memory, StepsLeaveNothing) {
  const auto w = leaf(Doubles(256, 0.5)), b = leaf(0.1);
  const auto step = [&] {
    const auto y = tanh(w * 2 + b);
    const auto loss = sum_to(y * y + relu(exp(y)), {});
    loss.backward();
    const no_grad guard;
    w.sub_(w.grad() * 0.01);
    b.sub_(b.grad() * 0.01);
    w.zero_grad();
    b.zero_grad();
  };
  step();
  const auto before = memory::stats();
  for (int i = 0; i < 1000; ++i) step();
  EXPECT_EQ(memory::stats().in_use, before.in_use);
  if (!TENET_SANITIZED) {  // else nothing is cached
    EXPECT_EQ(memory::stats().system_requests, before.system_requests);
  }
  EXPECT_TRUE(w.is_leaf());
}

TEST(Memory, GraphsAreDropped) {
  expect_no_leak([] {
    const auto x = leaf(Doubles(100, 1.0));
    auto y = x * 2;
    y.mul_(x);
    y = exp(y).view({10, 10});
    const auto g = autograd::grad(sum_to(y, {}), x, {.create_graph = true});
    EXPECT_TRUE(g.requires_grad());
  });
}

TEST(Memory, BackwardFreesAsItGoes) {
  const auto x = leaf(Doubles(1000, 1.0));
  const auto y = sum_to(exp(exp(x * 1e-3)), {});
  const auto held = memory::stats().in_use;
  y.backward();
  EXPECT_LT(memory::stats().in_use, held - 8000);  // two outputs go, one gradient comes
}

// ---- dying temporaries

TEST(Reuse, TakesTheTemporary) {
  const auto a = ones<double>({1000}), b = ones<double>({1000});
  auto sum = a + b;
  const void* memory = sum.data_ptr();
  const auto y = relu(std::move(sum));
  EXPECT_EQ(y.data_ptr(), memory);
  const auto before = memory::stats().in_use;
  const auto z = relu(add(a, b));
  EXPECT_LT(memory::stats().in_use - before, 2 * 8000);
  EXPECT_EQ(values(z), values(y));
}

TEST(Reuse, AlsoWhileRecording) {
  auto a = leaf(Doubles{1, -2});
  auto sum = a + a;
  const void* memory = sum.data_ptr();
  const auto y = relu(std::move(sum));
  EXPECT_EQ(y.data_ptr(), memory);
  y.backward(ones<double>({2}));
  EXPECT_EQ(values(a.grad()), (Doubles{2, 0}));
}

TEST(Reuse, NotOfWhatSomebodyHolds) {
  const auto a = leaf(Doubles{0.5, 2});
  const auto expect_untouched = [](Tensor<double>&& x, const auto& held) {
    const void* memory = x.data_ptr();
    const Doubles before = values(held);
    EXPECT_NE(neg(std::move(x)).data_ptr(), memory);
    EXPECT_EQ(values(held), before);
  };
  auto x = a.detach() * 2;
  const auto handle = x;
  expect_untouched(std::move(x), handle);
  auto viewed = a.detach() * 2;
  const auto view = viewed.view({2, 1});
  expect_untouched(std::move(viewed), view);
  auto detached = a * 2;
  const auto alias = detached.detach();
  expect_untouched(std::move(detached), alias);
  double memory[2] = {1, 2};
  expect_untouched(from_blob(memory, {2}), from_blob(memory, {2}));
}

TEST(Reuse, NotOfWhatBackwardNeeds) {
  const auto a = leaf(Doubles{0.5, 2});
  neg(exp(a)).backward(ones<double>({2}));  // exp keeps its output
  EXPECT_EQ(values(a.grad()), (Doubles{-std::exp(0.5), -std::exp(2.0)}));
  a.zero_grad();
  square(a * 3).backward(ones<double>({2}));  // square keeps its input
  EXPECT_EQ(values(a.grad()), (Doubles{9, 36}));
  a.zero_grad();
  auto leaf_handle = leaf(Doubles{1, 2});
  const auto same = leaf_handle;
  neg(std::move(leaf_handle)).backward(ones<double>({2}));
  EXPECT_EQ(values(same), (Doubles{1, 2}));
}

}  // namespace
}  // namespace tenet
