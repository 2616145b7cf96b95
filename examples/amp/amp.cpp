// A model answers, and takes a step of training, in bfloat16.
#include <tenet/tenet.hpp>

#include <cstdio>

using namespace tenet;

int main() {
  nn::Sequential model(nn::Linear<>(784, 256), nn::ReLU(), nn::Linear<>(256, 10));
  optim::SGD optimizer(model.parameters(), {.lr = 0.01});
  auto data = randn({64, 784});
  auto labels = randint(10, {64});

  Tensor<float> y;
  {
    amp::autocast low(DType::bfloat16);
    y = model(data);
  }

  auto loss = cross_entropy(y, labels);
  loss.backward();
  optimizer.step();
  std::printf("Loss: %f\n", loss.item());
}
