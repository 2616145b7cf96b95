// LeNet in two parts on two workers. Every worker runs the same program; each holds its own part, and activations and
// gradients move between them. Under MPI: parallel::run_mpi(train) in a program linked to tenet::mpi.
#include <tenet/data/mnist.hpp>
#include <tenet/tenet.hpp>

#include <cstdio>

using namespace tenet;

struct Features : nn::Module<Features> {
  nn::Conv2d<> conv1{1, 20, 5}, conv2{20, 50, 5};
  nn::MaxPool2d pool{2, 2};
  TENET_MODULE(conv1, conv2, pool)

  Tensor<float> forward(Tensor<float> x) {
    x = pool(relu(conv1(x)));
    return pool(relu(conv2(x)));
  }
};

struct Classifier : nn::Module<Classifier> {
  nn::Linear<> fc1{50 * 4 * 4, 500}, fc2{500, 10};
  TENET_MODULE(fc1, fc2)

  Tensor<float> forward(const Tensor<float>& x) { return fc2(relu(fc1(x.flatten(1)))); }
};

template <class C>
struct Net : nn::Module<Net<C>> {
  parallel::Part<Features, C> part1;
  parallel::Part<Classifier, C> part2;
  TENET_MODULE(part1, part2)
  explicit Net(C& comm) : part1(0, comm), part2(1, comm) {}

  auto forward(const Tensor<float>& x) {
    auto y = part1(x);
    return part2(y.to(1));
  }
};

int main(int argc, char** argv) {
  const char* folder = argc > 1 ? argv[1] : TENET_DIGITS_DIR;
  const auto train = [&]<class C>(C& comm) {
    data::DataLoader trainloader(data::MNIST(folder), {.batch_size = 64, .shuffle = true});
    Net model(comm);
    parallel::Part<nn::CrossEntropyLoss, C> criterion(1, comm);
    optim::SGD optimizer(model.parameters(), {.lr = 0.02, .momentum = 0.9});

    for (int epoch = 0; epoch < 2; ++epoch) {
      double running_loss = 0;
      for (auto& [data, labels] : trainloader) {
        optimizer.zero_grad();
        auto y = model(data);
        auto loss = criterion(y, labels);
        loss.backward();
        optimizer.step();
        running_loss += loss.item();
      }
      if (comm.rank() == 0) std::printf("Epoch %d, Loss: %f\n", epoch + 1, running_loss / trainloader.size());
    }
  };
  parallel::run_threads(2, train);
}
