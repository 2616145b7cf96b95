// LeNet learns to read digits, each batch split over two threads.
#include <tenet/data/mnist.hpp>
#include <tenet/tenet.hpp>

#include <cstdio>

using namespace tenet;

struct LeNet : nn::Module<LeNet> {
  nn::Conv2d<> conv1{1, 20, 5}, conv2{20, 50, 5};
  nn::MaxPool2d pool{2, 2};
  nn::Linear<> fc1{50 * 4 * 4, 500}, fc2{500, 10};
  TENET_MODULE(conv1, conv2, pool, fc1, fc2)

  Tensor<float> forward(Tensor<float> x) {
    x = pool(relu(conv1(x)));
    x = pool(relu(conv2(x)));
    x = x.view({-1, 50 * 4 * 4});
    x = relu(fc1(x));
    return fc2(x);
  }
};

int main(int argc, char** argv) {
  data::MNIST digits(argc > 1 ? argv[1] : TENET_DIGITS_DIR);
  data::DataLoader trainloader(digits, {.batch_size = 256, .shuffle = true});

  LeNet model;
  auto replicas = parallel::DataParallel(model, {.replicas = 2});
  nn::CrossEntropyLoss criterion;
  optim::SGD optimizer(model.parameters(), {.lr = 0.05, .momentum = 0.9});

  for (int epoch = 0; epoch < 2; ++epoch) {
    double running_loss = 0;
    for (auto& [data, labels] : trainloader) {
      optimizer.zero_grad();
      Tensor<float> y = replicas(data);
      auto loss = criterion(y, labels);
      loss.backward();
      optimizer.step();
      running_loss += loss.item();
    }
    std::printf("Epoch %d, Loss: %f\n", epoch + 1, running_loss / trainloader.size());
  }
}
