// Trains LeNet on MNIST, or on anything in its format, and reads digits with it.
#include <tenet/data/mnist.hpp>
#include <tenet/io/checkpoint.hpp>
#include <tenet/tenet.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <memory>

#include "lenet.hpp"
#include "pgm.hpp"
#include "plot.hpp"
#include "terminal.hpp"

using namespace tenet;

namespace {

struct Options {
  std::string data = TENET_DIGITS_DIR, optimizer = "sgd", save, resume, predict, plot;
  int epochs = 12, threads = 0, workers = 1;
  std::int64_t batch_size = 64;
  double lr = 0.01, momentum = 0.9;
  std::uint64_t seed = 0;
  bool json = false;
};

using Digits = data::DataLoader<data::MNIST>;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::unique_ptr<optim::Optimizer> make_optimizer(const Options& o, LeNet& model) {
  if (o.optimizer == "adam") {
    return std::make_unique<optim::Adam>(model.parameters(), optim::AdamOptions{.lr = o.lr});
  }
  if (o.optimizer == "adamw") {
    return std::make_unique<optim::AdamW>(model.parameters(), optim::AdamWOptions{.lr = o.lr});
  }
  return std::make_unique<optim::SGD>(model.parameters(), optim::SGDOptions{.lr = o.lr, .momentum = o.momentum});
}

/// What the model answers to every test image, by true and predicted class.
terminal::Confusion test(LeNet& model, Digits& loader) {
  const no_grad guard;
  model.eval();
  terminal::Confusion table{};
  for (auto& [images, labels] : loader) {
    const Tensor<std::int64_t> answers = model(images).argmax(1);
    for (std::int64_t i = 0; i < labels.numel(); ++i) ++table[std::size_t(labels(i))][std::size_t(answers(i))];
  }
  model.train();
  return table;
}

double accuracy(const terminal::Confusion& table) {
  int right = 0, all = 0;
  for (std::size_t r = 0; r < 10; ++r) {
    right += table[r][r];
    for (int n : table[r]) all += n;
  }
  return all ? double(right) / all : 0;
}

struct Epoch {
  double loss = 0, seconds = 0, images_per_s = 0;
};

/// One pass over the training images.
Epoch train(LeNet& model, optim::Optimizer& optimizer, Digits& loader, terminal::ProgressBar& bar,
            plot::History& history) {
  nn::CrossEntropyLoss criterion;
  const auto start = std::chrono::steady_clock::now();
  Epoch e;
  double sum = 0;
  std::int64_t images = 0, batches = 0;
  for (auto& [inputs, labels] : loader) {
    optimizer.zero_grad();
    const Tensor<float> loss = criterion(model(inputs), labels);
    loss.backward();
    optimizer.step();
    history.batch_loss.push_back(double(loss.item()));
    sum += double(loss.item()) * double(labels.numel());
    images += labels.numel();
    e.seconds = seconds_since(start);
    e.loss = sum / double(images);
    e.images_per_s = double(images) / e.seconds;
    bar.show(double(++batches) / double(loader.size()), e.loss, e.images_per_s);
  }
  return e;
}

/// A picture file, or the index of a test image.
Tensor<float> find_digit(const std::string& what, const data::MNIST& tests) {
  if (what.find_first_not_of("0123456789") != std::string::npos) return pgm::read_digit(what);
  const std::int64_t index = what.size() < 10 ? std::stoll(what) : tests.size();
  if (index >= tests.size()) {
    throw IndexError(text({"predict: expected an index below ", tests.size(), " or a picture, got ", what}));
  }
  std::printf("test image %s, labelled %d\n", what.c_str(), int(tests.labels()(index)));
  return tests.images()[index].to<float>() / 255;
}

void predict(LeNet& model, const Tensor<float>& digit) {
  const no_grad guard;
  model.eval();
  const Tensor<float> logits = model(digit.view({1, 1, 28, 28}));
  const Tensor<float> probabilities = softmax(logits, 1)[0];
  terminal::draw_digit(digit);
  std::printf("this is a %d\n", int(probabilities.argmax(0).item()));
  terminal::draw_probabilities(probabilities);
}

int run(const Options& o, bool epochs_given) {
  if (o.threads) set_num_threads(o.threads);
  manual_seed(o.seed);
  const data::MNIST trainset(o.data, true), testset(o.data, false);
  Digits trainloader(trainset, {.batch_size = o.batch_size, .shuffle = true, .seed = o.seed, .workers = o.workers});
  Digits testloader(testset, {.batch_size = 256});

  LeNet model;
  const auto optimizer = make_optimizer(o, model);
  int done = 0;
  if (!o.resume.empty()) {
    done = int(load_training(model, *optimizer, o.resume).epoch);
    trainloader.set_epoch(std::uint64_t(done));
  }
  const bool only_predict = !o.predict.empty() && !o.resume.empty() && !epochs_given;
  const bool quiet = o.json || only_predict;
  if (!quiet) {
    std::printf("%s", nn::summary(model, zeros({o.batch_size, 1, 28, 28})).c_str());
    std::printf("%s training images, %s test images, %d thread(s)\n\n",
                terminal::grouped(double(trainset.size())).c_str(), terminal::grouped(double(testset.size())).c_str(),
                num_threads());
  }

  plot::History history;
  terminal::Confusion table{};
  const int last = only_predict ? done : o.epochs;
  for (int epoch = done + 1; epoch <= last; ++epoch) {
    terminal::ProgressBar bar(text({"epoch ", epoch, "/", last}), !quiet);
    const Epoch e = train(model, *optimizer, trainloader, bar, history);
    table = test(model, testloader);
    history.epoch_end.push_back(history.batch_loss.size());
    history.test_accuracy.push_back(accuracy(table));
    bar.finish(e.loss, e.images_per_s, accuracy(table));
    if (o.json) {
      std::printf(
          "{\"epoch\": %d, \"train_loss\": %.6f, \"test_accuracy\": %.6f, \"images_per_s\": %.1f, \"seconds\": %.3f}\n",
          epoch, e.loss, accuracy(table), e.images_per_s, e.seconds);
      std::fflush(stdout);
    }
    if (!o.save.empty()) save_training(model, *optimizer, o.save, {.epoch = epoch});
  }

  if (!quiet) {
    if (history.test_accuracy.empty()) table = test(model, testloader);
    terminal::print_confusion(table);
    std::printf("\ntest accuracy %.2f %%\n", 100 * accuracy(table));
    if (!o.save.empty() && done < last) std::printf("saved to %s\n", o.save.c_str());
  }
  if (!o.plot.empty())
    plot::write_svg(o.plot, text({"LeNet, batches of ", o.batch_size, ", ", o.optimizer, ", lr ", o.lr}), history);
  if (!o.predict.empty() && !o.json) predict(model, find_digit(o.predict, testset));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains LeNet on MNIST digits, tests it, and reads digits with it.");
  app.get_formatter()->column_width(30);
  app.option_defaults()->always_capture_default();
  Options o;
  app.add_option("--data", o.data,
                 "folder with the MNIST or Fashion-MNIST files, plain or .gz (default: the bundled digits)");
  auto* epochs =
      app.add_option("--epochs", o.epochs, "epochs in all, those of --resume included")->check(CLI::Range(0, 100000));
  app.add_option("--batch-size", o.batch_size, "images a step")->check(CLI::Range(1, 60000));
  app.add_option("--lr", o.lr, "learning rate");
  app.add_option("--momentum", o.momentum, "momentum of SGD");
  app.add_option("--optimizer", o.optimizer, "sgd, adam or adamw")->check(CLI::IsMember({"sgd", "adam", "adamw"}));
  app.add_option("--seed", o.seed, "of the weights and the order of the images");
  app.add_option("--threads", o.threads, "threads of the operations; the result does not depend on it")
      ->check(CLI::Range(1, 1024));
  app.add_option("--workers", o.workers, "threads that prepare batches; neither on this")->check(CLI::Range(0, 256));
  app.add_option("--save", o.save, "write a checkpoint to FILE after every epoch")->type_name("FILE");
  app.add_option("--resume", o.resume, "go on from a checkpoint")->type_name("FILE");
  app.add_option("--predict", o.predict,
                 "read a digit: a PGM picture, or the index of a test image. With --resume, and "
                 "without --epochs, nothing is trained")
      ->type_name("IMAGE");
  app.add_option("--plot", o.plot, "draw loss and accuracy")->type_name("FILE.svg");
  app.add_flag("--json", o.json, "print one JSON object a line and epoch, and nothing else");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(o, epochs->count() > 0);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "mnist: %s\n", e.what());
    return 1;
  }
}
