// The MNIST program on several ranks: LeNet, or a perceptron of 10 million parameters, with every rank's batch a part
// of the whole.
//   mpirun -np 2 build/examples/distributed
//   mpirun -np 4 build/examples/distributed --model mlp --stage 3
// As root, on a machine with fewer cores than ranks, see README.md.
#include <tenet/data/mnist.hpp>
#include <tenet/io/distributed_checkpoint.hpp>
#include <tenet/parallel/mpi.hpp>
#include <tenet/tenet.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "../mnist/lenet.hpp"

using namespace tenet;

namespace {

struct Options {
  std::string data = TENET_DIGITS_DIR, model = "lenet", checkpoint;
  int epochs = 2, stage = 0;
  std::int64_t batch = 64;
  double lr = 0.02;
  std::uint64_t seed = 0;
};

struct Perceptron : nn::Module<Perceptron> {
  nn::Linear<> fc1{784, 2048}, fc2{2048, 2048}, fc3{2048, 2048}, fc4{2048, 10};
  TENET_MODULE(fc1, fc2, fc3, fc4)

  Tensor<float> forward(Tensor<float> x) {
    x = relu(fc1(flatten(x, 1)));
    x = relu(fc2(x));
    x = relu(fc3(x));
    return fc4(x);
  }
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Sums a number over the ranks.
template <class C>
double total(C& comm, double mine) {
  comm.all_reduce(&mine, 1);
  return mine;
}

/// The part of the test images that all ranks together get right. Where the last batch has fewer images than there are
/// ranks, some of it count twice.
template <class D, class C>
double accuracy(D& ddp, C& comm, const Options& o) {
  data::DataLoader loader(data::MNIST(o.data, false),
                          {.batch_size = o.batch, .rank = comm.rank(), .ranks = comm.size()});
  const no_grad guard;
  ddp.module().eval();
  double right = 0, all = 0;
  for (auto& [images, labels] : loader) {
    right += double((argmax(ddp(images), 1) == labels).template to<float>().sum().item());
    all += double(labels.numel());
  }
  ddp.module().train();
  return total(comm, right) / total(comm, all);
}

template <class D, class C>
void train(D& ddp, const std::vector<AnyTensor>& parameters, C& comm, const Options& o) {
  optim::SGD optimizer(parameters, {.lr = o.lr, .momentum = 0.9});
  nn::CrossEntropyLoss criterion;
  data::DataLoader loader(data::MNIST(o.data), {.batch_size = std::max<std::int64_t>(1, o.batch / comm.size()),
                                                .shuffle = true,
                                                .seed = o.seed,
                                                .rank = comm.rank(),
                                                .ranks = comm.size()});
  std::int64_t epoch = 0;
  const bool resume = !o.checkpoint.empty() && std::filesystem::exists(o.checkpoint);
  if (resume) epoch = load_training(ddp, optimizer, o.checkpoint).epoch;
  for (; epoch < o.epochs; ++epoch) {
    loader.set_epoch(std::uint64_t(epoch));
    const double begin = now();
    double loss_sum = 0, images = 0;
    for (auto& [inputs, labels] : loader) {
      optimizer.zero_grad();
      auto loss = criterion(ddp(inputs), labels);
      loss.backward();
      optimizer.step();
      loss_sum += double(loss.item()) * double(labels.numel());
      images += double(labels.numel());
    }
    const double all = total(comm, images), mean = total(comm, loss_sum) / all, seconds = now() - begin;
    const double right = accuracy(ddp, comm, o);
    if (comm.rank() == 0) {
      std::printf("epoch %lld  loss %.4f  test accuracy %.2f %%  %.0f images/s\n", (long long)epoch + 1, mean,
                  100 * right, all / seconds);
      std::fflush(stdout);
    }
    if (!o.checkpoint.empty()) save_training(ddp, optimizer, o.checkpoint, {.epoch = epoch + 1});
  }
}

template <class Model, class C>
void run(C& comm, const Options& o) {
  manual_seed(o.seed);
  Model model;
  if (comm.rank() == 0) {
    std::printf("%d ranks, %lld parameters, stage %d\n", comm.size(), (long long)model.num_parameters(), o.stage);
  }
  if (o.stage == 0) {
    parallel::DistributedDataParallel ddp(model, comm);
    train(ddp, model.parameters(), comm, o);
  } else {
    parallel::FullyShardedDataParallel fsdp(model, comm, {.stage = o.stage});
    train(fsdp, fsdp.parameters(), comm, o);
  }
  if (comm.rank() == 0) {
    std::printf("rank 0 took %.1f MB at most\n", double(memory::stats().peak_reserved) / 1e6);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Trains on digits over MPI ranks");
  app.add_option("--data", o.data, "a folder of MNIST files");
  app.add_option("--model", o.model)->check(CLI::IsMember({"lenet", "mlp"}));
  app.add_option("--stage", o.stage,
                 "what a rank keeps a part of: 0 nothing, 1 the optimizer's state, 2 gradients too, "
                 "3 parameters too")
      ->check(CLI::Range(0, 3));
  app.add_option("--epochs", o.epochs)->check(CLI::Range(1, 1000));
  app.add_option("--batch", o.batch, "examples of all ranks together")->check(CLI::Range(1, 65536));
  app.add_option("--lr", o.lr);
  app.add_option("--seed", o.seed);
  app.add_option("--checkpoint", o.checkpoint, "written after each epoch, and gone on from, with any number of ranks");
  CLI11_PARSE(app, argc, argv);
  try {
    parallel::run_mpi([&](auto& comm) {
      if (o.model == "lenet") run<LeNet>(comm, o);
      else run<Perceptron>(comm, o);
    });
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
