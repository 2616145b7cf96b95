// The program that each consumer project builds: a line is fitted to two points.
#include <tenet/tenet.hpp>

#include <cstdio>

#ifdef WITH_COMPONENTS
bool components_work();
#else
bool components_work() { return true; }
#endif

int main() {
  using namespace tenet;
  const auto x = tensor<float>({{0.f}, {1.f}}), y = tensor<float>({{1.f}, {3.f}});
  nn::Linear<> line(1, 1);
  optim::SGD optimizer(line.parameters(), {.lr = 0.1, .momentum = 0.9});
  double loss = 1;
  for (int step = 0; step < 200; ++step) {
    optimizer.zero_grad();
    auto error = mse_loss(line(x), y);
    error.backward();
    optimizer.step();
    loss = error.item();
  }
  std::printf("tenet %d.%d: loss %g with %d threads\n", TENET_VERSION_MAJOR, TENET_VERSION_MINOR, loss, num_threads());
  return loss < 1e-4 && components_work() ? 0 : 1;
}
