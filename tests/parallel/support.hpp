// A network, data, and training steps that every way to train in parallel must reproduce.
#pragma once

#include <gtest/gtest.h>
#include <tenet/data/data_loader.hpp>
#include <tenet/data/mnist.hpp>
#include <tenet/nn/nn.hpp>
#include <tenet/optim/optim.hpp>
#include <tenet/parallel/parallel.hpp>

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "lenet.hpp"
#include "message.hpp"

namespace tenet::test {

/// What trains in every way does so in double: rounding, which another order of a sum changes and every step enlarges,
/// stays far below the bound of expect_close.
using Losses = std::vector<double>;

template <class T = double>
LeNet<T> lenet() {
  manual_seed(1);
  return {};
}

/// The bundled digits, or a copy that TENET_DIGITS names in the environment.
inline std::string digits_folder() {
  const char* copy = std::getenv("TENET_DIGITS");
  return copy ? copy : TENET_DIGITS_DIR;
}

struct Digits {
  data::DataLoaderOptions options{.batch_size = 16, .shuffle = true, .seed = 7};

  /// 50 steps; forward(inputs) of `model`. Calls each(loss, examples) after every step.
  template <class M, class F, class Each>
  void train(M& model, const F& forward, const Each& each) const {
    optim::SGD optimizer(model.parameters(), {.lr = 0.02, .momentum = 0.9});
    train_with(optimizer, 0, 50, forward, each);
  }
  /// Steps [begin, end) of an epoch.
  template <class F, class Each>
  void train_with(optim::Optimizer& optimizer, int begin, int end, const F& forward, const Each& each) const {
    nn::CrossEntropyLoss criterion;
    data::DataLoader loader(data::MNIST(digits_folder()), options);
    loader.set_epoch(0, begin);
    for (auto& [inputs, labels] : loader) {
      if (begin++ == end) return;
      optimizer.zero_grad();
      auto loss = criterion(forward(inputs.template to<double>()), labels);
      loss.backward();
      optimizer.step();
      each(loss.item(), inputs.size(0));
    }
  }
};

/// The losses of 50 steps of one worker.
inline const Losses& single_worker_losses() {
  static const Losses losses = [] {
    auto model = lenet();
    Losses out;
    Digits{}.train(
        model, [&](const Tensor<double>& x) { return model(x); },
        [&](double loss, std::int64_t) { out.push_back(loss); });
    return out;
  }();
  return losses;
}

inline void expect_close(const Losses& losses, const Losses& expected) {
  ASSERT_EQ(losses.size(), expected.size());
  ASSERT_EQ(losses.size(), 50u);
  EXPECT_LT(std::accumulate(losses.end() - 10, losses.end(), 0.0) / 10, 0.8 * losses[0]);  // it did learn
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], 1e-9 * expected[i]) << i;
}

/// All parameters' values, one after the other.
template <class M>
std::vector<float> values(M& model) {
  std::vector<float> out;
  for (const AnyTensor& p : model.parameters()) {
    const std::vector<float> v = Tensor<float>(p).to_vector();
    out.insert(out.end(), v.begin(), v.end());
  }
  return out;
}
template <class M>
std::vector<float> gradients(M& model) {
  std::vector<float> out;
  for (const AnyTensor& p : model.parameters()) {
    const std::vector<float> v = Tensor<float>(p).grad().to_vector();
    out.insert(out.end(), v.begin(), v.end());
  }
  return out;
}

inline void expect_near(const std::vector<float>& a, const std::vector<float>& b, float tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << i;
}

}  // namespace tenet::test
