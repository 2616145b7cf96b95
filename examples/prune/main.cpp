// A LeNet loses four fifths of its weights, another half of its channels, and both learn to do without.
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
    x = relu(fc1(flatten(x, 1)));  // flatten fits any number of channels
    return fc2(x);
  }
};

void train(LeNet& model, const data::MNIST& digits, int epochs, double lr) {
  data::DataLoader loader(digits, {.batch_size = 64, .shuffle = true});
  optim::SGD optimizer(model.parameters(), {.lr = lr, .momentum = 0.9});
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (auto& [images, labels] : loader) {
      optimizer.zero_grad();
      cross_entropy(model(images), labels).backward();
      optimizer.step();
    }
  }
}

void report(const char* what, LeNet& model, const data::MNIST& digits) {
  const no_grad guard;
  data::DataLoader loader(digits, {.batch_size = 100});
  std::int64_t right = 0;
  for (auto& [images, labels] : loader) right += count_nonzero(argmax(model(images), 1) == labels).item();
  std::printf("%-28s %5.1f %% right, %6lld parameters, %2.0f %% of the weights are 0\n", what,
              100 * double(right) / double(digits.size()), static_cast<long long>(model.num_parameters()),
              100 * prune::sparsity(model));
}

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : TENET_DIGITS_DIR;
  const data::MNIST digits(folder), unseen(folder, false);
  LeNet model;
  train(model, digits, 8, 0.02);
  report("dense", model, unseen);

  LeNet sparse = model;
  prune::l1_unstructured(sparse.fc1, {.amount = 0.8});
  prune::l1_unstructured(sparse.conv2, {.amount = 0.8});
  report("80 % of the weights pruned", sparse, unseen);
  train(sparse, digits, 2, 0.01);  // what is pruned stays pruned
  prune::remove(sparse);           // for good
  report("  and fine-tuned", sparse, unseen);

  LeNet small = model;
  prune::ln_structured(small.conv1, {.amount = 0.5});
  prune::ln_structured(small.conv2, {.amount = 0.5});
  prune::ln_structured(small.fc1, {.amount = 0.5});
  report("half of the channels pruned", small, unseen);
  train(small, digits, 2, 0.01);
  report("  and fine-tuned", small, unseen);
  prune::shrink(small.conv1, small.conv2, nn::ReLU());
  prune::shrink(small.conv2, small.fc1, nn::ReLU());
  prune::shrink(small.fc1, small.fc2, nn::ReLU());
  report("  and shrunk", small, unseen);
}
