#include <tenet/amp/amp.hpp>
#include <tenet/parallel/data_parallel.hpp>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "parallel/support.hpp"

namespace tenet {
namespace {

using test::lenet;
using test::message;

template <class M>
struct Run {
  std::vector<float> output, gradients, input_gradient;
};

template <class M, class F>
Run<M> run(M& model, const Tensor<float>& x, const F& forward) {
  model.zero_grad();
  const Tensor<float> leaf = x.clone().requires_grad_();
  const Tensor<float> y = forward(leaf * 1.0f);
  (y * y).mean().backward();
  return {y.to_vector(), test::gradients(model), leaf.grad().to_vector()};
}

TEST(DataParallel, EqualsTheWholeBatch) {
  auto model = lenet<float>();
  for (const std::int64_t batch : {1, 2, 3, 7, 16}) {
    const Tensor<float> x = randn({batch, 1, 28, 28});
    const auto whole = run(model, x, [&](const auto& t) { return model(t); });
    for (const int n : {1, 2, 3, 5}) {
      auto replicas = parallel::DataParallel(model, {.replicas = n});
      const auto split = run(model, x, [&](const auto& t) { return replicas(t); });
      test::expect_near(split.output, whole.output, 1e-5f);
      test::expect_near(split.gradients, whole.gradients, 1e-5f);
      test::expect_near(split.input_gradient, whole.input_gradient, 1e-6f);
    }
  }
}

TEST(DataParallel, IsBitIdenticalFromRunToRunAndForAnyNumberOfThreads) {
  auto model = lenet<float>();
  auto replicas = parallel::DataParallel(model, {.replicas = 3});
  const Tensor<float> x = randn({10, 1, 28, 28});
  const auto forward = [&](const auto& t) { return replicas(t); };
  const auto first = run(model, x, forward);
  const int before = num_threads();
  for (const int threads : {1, 2, 3, 6}) {
    set_num_threads(threads);
    const auto again = run(model, x, forward);
    EXPECT_EQ(again.output, first.output);
    EXPECT_EQ(again.gradients, first.gradients);
    EXPECT_EQ(again.input_gradient, first.input_gradient);
  }
  const SerialGuard serial;  // no thread but this one
  EXPECT_EQ(run(model, x, forward).gradients, first.gradients);
  set_num_threads(before);
}

TEST(DataParallel, TrainsAsOneWorkerDoes) {
  const auto train = [] {
    auto model = lenet();
    auto replicas = parallel::DataParallel(model, {.replicas = 2});
    test::Losses losses;
    test::Digits{}.train(
        model, [&](const Tensor<double>& x) { return replicas(x); },
        [&](double loss, std::int64_t) { losses.push_back(loss); });
    return losses;
  };
  const test::Losses losses = train();
  test::expect_close(losses, test::single_worker_losses());
  EXPECT_EQ(train(), losses);
}

TEST(DataParallel, AccumulatesAndRetainsAsAutogradDoes) {
  nn::Linear<> model{3, 2};
  auto replicas = parallel::DataParallel(model, {.replicas = 2});
  const Tensor<float> x = randn({4, 3});
  const Tensor<float> y = replicas(x).sum();
  y.backward({.retain_graph = true});
  const std::vector<float> once = test::gradients(model);
  y.backward();
  const std::vector<float> twice = test::gradients(model);
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_FLOAT_EQ(twice[i], 2 * once[i]);
  EXPECT_NE(message([&] { y.backward(); }).find("freed"), std::string::npos);
  EXPECT_EQ(test::gradients(model), twice);
  // grad() captures, and leaves .grad() alone.
  const Tensor<float> z = replicas(x).sum();
  EXPECT_EQ(autograd::grad(z, static_cast<const Tensor<float>&>(model.weight)).to_vector().size(), 6u);
  EXPECT_EQ(test::gradients(model), twice);
  EXPECT_THROW(replicas(x).sum().backward({.create_graph = true}), NotImplemented);
}

TEST(DataParallel, CallsHooksOnceWithTheWholeGradient) {
  nn::Linear<> model{3, 2};
  auto replicas = parallel::DataParallel(model, {.replicas = 4});
  std::vector<std::vector<float>> seen;
  model.bias.register_hook([&](const Tensor<float>& g) { seen.push_back(g.to_vector()); });
  replicas(ones({8, 3})).sum().backward();
  EXPECT_EQ(seen, (std::vector<std::vector<float>>{{8, 8}}));
}

// Writes down what its replica sees.
struct Probe : nn::Module<Probe> {
  nn::Parameter<> scale{ones({1})};
  nn::Buffer<> seen{zeros({1})};
  int calls = 0;
  TENET_MODULE(scale, seen)

  Tensor<float> forward(const Tensor<float>& x, float shift, const Tensor<float>& once) {
    ++calls;
    seen.add_(1.0f);
    const float mode = float(is_grad_enabled()) + 2 * float(is_training()) + 4 * float(state::autocast != nullptr) +
                       8 * float(state::detect_anomaly);
    return x * scale * 0.0f + once + shift + mode;
  }
};

TEST(DataParallel, ReplicasSeeTheCallersModes) {
  Probe model;
  auto replicas = parallel::DataParallel(model, {.replicas = 3});
  const Tensor<float> x = zeros({3, 1}), once = full<float>({}, 100);
  const auto values = [&] { return replicas(x, 0.5f, once).to_vector(); };
  const auto all = [](float v) { return std::vector<float>(3, v + 100.5f); };
  EXPECT_EQ(values(), all(3));
  {
    const no_grad guard;
    EXPECT_EQ(values(), all(2));
  }
  model.eval();
  EXPECT_EQ(values(), all(1));
  {
    amp::autocast low(DType::bfloat16);
    EXPECT_EQ(values(), all(5));
  }
  const autograd::detect_anomaly anomaly;
  EXPECT_EQ(values(), all(9));
  // The first replica is the model.
  EXPECT_EQ(model.calls, 5);
  EXPECT_EQ(model.seen.item(), 5);
  EXPECT_TRUE(model.scale.is_leaf() && model.scale.requires_grad());
}

struct Times : nn::Module<Times> {
  nn::Parameter<> scale{ones({1})};
  TENET_MODULE(scale)
  Tensor<float> forward(const Tensor<float>& x, const Tensor<float>& t) { return x * t * scale; }
};

TEST(DataParallel, AScalarGoesToEachReplicaWhole) {
  Times model;
  auto replicas = parallel::DataParallel(model, {.replicas = 3});
  const Tensor<float> x = arange<float>(6).view({6, 1}), leaf = full<float>({}, 2).requires_grad_();
  Tensor<float> t = leaf;
  for (int i = 0; i < 1000; ++i) t = t * 1.0f;  // a graph that all replicas would walk
  replicas(x, t).sum().backward();
  EXPECT_EQ(leaf.grad().item(), 15);
  EXPECT_EQ(autograd::grad(replicas(x, leaf).sum(), leaf).item(), 15);
  EXPECT_EQ(leaf.grad().item(), 15);
}

TEST(DataParallel, AutocastKeepsNoCopiesForReplicas) {
  nn::Linear<> model{64, 64};
  auto replicas = parallel::DataParallel(model, {.replicas = 2});
  const Tensor<float> x = ones({4, 64});
  const amp::autocast low(DType::bfloat16);
  const auto in_use_after = [&] {
    replicas(x).sum().backward();
    model.zero_grad();
    return memory::stats().in_use;
  };
  in_use_after();
  const std::int64_t before = in_use_after();
  for (int i = 0; i < 5; ++i) in_use_after();
  EXPECT_EQ(in_use_after(), before);
}

TEST(DataParallel, FollowsChangesOfTheModel) {
  nn::Linear<> model{2, 1};
  auto replicas = parallel::DataParallel(model, {.replicas = 2});
  const Tensor<float> x = ones({2, 2});
  replicas(x);
  model.weight = nn::Weight<>(full<float>({1, 2}, 3));
  model.bias = nn::Parameter<>(zeros({1}));
  model.bias.requires_grad_(false);
  const Tensor<float> y = replicas(x);
  EXPECT_EQ(y.to_vector(), (std::vector<float>{6, 6}));
  y.sum().backward();
  EXPECT_EQ(model.weight.grad().to_vector(), (std::vector<float>{2, 2}));
  EXPECT_FALSE(model.bias.grad());
  model.requires_grad_(false);
  EXPECT_FALSE(replicas(x).requires_grad());
}

struct Dropping : nn::Module<Dropping> {
  nn::Dropout dropout{0.5};
  TENET_MODULE(dropout)
  Tensor<float> forward(const Tensor<float>& x) { return dropout(x); }
};

TEST(DataParallel, RandomNumbersRepeatAndDifferBetweenReplicas) {
  Dropping model;
  auto replicas = parallel::DataParallel(model, {.replicas = 2});
  const auto draw = [&] { return replicas(ones({2, 64})).to_vector(); };
  manual_seed(3);
  const std::vector<float> first = draw(), second = draw();
  manual_seed(3);
  EXPECT_EQ(draw(), first);
  EXPECT_EQ(draw(), second);
  EXPECT_NE(first, second);
  EXPECT_NE(std::vector<float>(first.begin(), first.begin() + 64), std::vector<float>(first.begin() + 64, first.end()));
}

struct Mixed : nn::Module<Mixed> {
  nn::Parameter<bfloat16> low{full<bfloat16>({2}, bfloat16(2))};
  nn::Parameter<double> high{full<double>({2}, 3)};
  nn::Parameter<> unused{ones({2})};
  TENET_MODULE(low, high, unused)
  Tensor<float> forward(const Tensor<float>& x) { return x * low.to<float>() * high.to<float>(); }
};

TEST(DataParallel, ParametersMayBeOfOtherTypesAndUnused) {
  Mixed model;
  auto replicas = parallel::DataParallel(model, {.replicas = 2});
  const autograd::detect_anomaly anomaly;
  replicas(ones({4, 2})).sum().backward();
  EXPECT_EQ(model.low.grad().to_vector(), std::vector<bfloat16>(2, bfloat16(12)));
  EXPECT_EQ(model.high.grad().to_vector(), std::vector<double>(2, 8));
  EXPECT_FALSE(model.unused.grad());
}

bool picky = true;  // in backward
struct Picky : nn::Module<Picky> {
  nn::Parameter<> scale{ones({1})};
  TENET_MODULE(scale)
  Tensor<float> forward(const Tensor<float>& x) {
    if (x(0, 0) > 1.5f) throw IndexError("picky: row " + std::to_string(int(x(0, 0))));
    const Tensor<float> y = x * scale;
    if (x(0, 0) > 0.5f) {
      y.register_hook([](const Tensor<float>&) {
        if (picky) throw FormatError("picky: backward");
      });
    }
    return y;
  }
};

TEST(DataParallel, AnExceptionOfAReplicaArrives) {
  picky = true;
  Picky model;
  auto replicas = parallel::DataParallel(model, {.replicas = 4});
  EXPECT_EQ(message<IndexError>([&] { replicas(arange<float>(4).view({4, 1})); }), "picky: row 2");
  const Tensor<float> y = replicas(arange<float>(2).view({2, 1}));
  EXPECT_EQ(message<FormatError>([&] { y.sum().backward({.retain_graph = true}); }), "picky: backward");
  picky = false;
  y.sum().backward();
  EXPECT_EQ(model.scale.grad().item(), 1) << "nothing of the backward that failed";
  model.zero_grad();
  EXPECT_TRUE(model.scale.is_leaf() && model.scale.requires_grad());
  replicas(zeros({4, 1}) + 0.25f).sum().backward();
  EXPECT_EQ(model.scale.grad().item(), 1);
}

TEST(DataParallel, RefusesWhatCannotBeSplit) {
  Probe model;
  EXPECT_THROW(parallel::DataParallel(model, {.replicas = 0}), Error);
  EXPECT_THROW(parallel::DataParallel(model, {.replicas = max_threads + 1}), Error);
  auto replicas = parallel::DataParallel(model, {.replicas = 2});
  const std::string text = message<ShapeError>([&] { replicas(zeros({4, 1}), 0.0f, zeros({3, 1})); });
  EXPECT_NE(text.find("[4, 1] and [3, 1]"), std::string::npos) << text;
  EXPECT_EQ(replicas(zeros({0, 1}), 0.0f, full<float>({}, 1)).shape(), Shape({0, 1}));
}

TEST(DataParallel, ThreadsMayShareOneForInference) {
  auto model = lenet<float>();
  auto replicas = parallel::DataParallel(model, {.replicas = 2});
  const Tensor<float> x = randn({4, 1, 28, 28});
  const auto infer = [&] {
    const no_grad guard;
    return replicas(x).to_vector();
  };
  const std::vector<float> expected = infer();
  std::vector<std::vector<float>> results(3);
  std::vector<std::thread> threads;
  for (auto& r : results) threads.emplace_back([&r, &infer] { r = infer(); });
  for (auto& t : threads) t.join();
  for (const auto& r : results) EXPECT_EQ(r, expected);
}

TEST(DataParallel, WorksInAForkedChild) {
  nn::Linear<> model{3, 2};
  auto replicas = parallel::DataParallel(model, {.replicas = 2});
  const Tensor<float> x = ones({4, 3});
  const std::vector<float> expected = replicas(x).to_vector();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);  // a hang ends here
    const bool same = replicas(x).to_vector() == expected;
    { auto again = std::move(replicas); }
    _exit(same ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tenet
