// One LeNet made smaller and faster in every way the library has: what each costs, and what it saves.
#include <tenet/data/mnist.hpp>
#include <tenet/io/checkpoint.hpp>
#include <tenet/tenet.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>

#include "../mnist/lenet.hpp"
#include "chart.hpp"

using namespace tenet;

namespace {

struct Options {
  std::string data = TENET_DIGITS_DIR, plot;
  int epochs = 12, tuning = 4;
  double lr = 0.01;
  std::uint64_t seed = 0;
};

struct Row {
  std::string name;
  double accuracy;             // of the test images, a fraction
  std::int64_t file, memory;   // bytes: of the checkpoint; of the model once it has answered
  double inference, training;  // images a second; training is negative where there was none
};

using Digits = data::DataLoader<data::MNIST>;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Products in bfloat16 while it lives, if asked for.
using Precision = std::optional<amp::autocast>;

class Bench {
 public:
  explicit Bench(const Options& o)
      : o_(o),
        trainset_(o.data, true),
        testset_(o.data, false),
        trainloader_(trainset_, {.batch_size = 64, .shuffle = true, .seed = o.seed}),
        testloader_(testset_, {.batch_size = 64}) {}

  /// Some images to find the bounds of activations by.
  std::vector<Tensor<float>> calibration() {
    std::vector<Tensor<float>> batches;
    for (auto& [images, labels] : trainloader_) {
      batches.push_back(images.clone());
      if (batches.size() == 8) break;
    }
    return batches;
  }
  std::int64_t steps(int epochs) const { return epochs * std::int64_t(trainloader_.size()); }

  /// Trains; images a second. `after_step` runs after each step of the optimizer.
  double train(LeNet& model, int epochs, double lr, bool low = false, const std::function<void()>& after_step = {}) {
    optim::SGD optimizer(model.parameters(), {.lr = lr, .momentum = 0.9});
    const double start = now();
    std::int64_t images = 0;
    for (int epoch = 0; epoch < epochs; ++epoch) {
      for (auto& [inputs, labels] : trainloader_) {
        optimizer.zero_grad();
        Precision precision;
        if (low) precision.emplace(DType::bfloat16);
        const auto loss = cross_entropy(model(inputs), labels);
        precision.reset();
        loss.backward();
        optimizer.step();
        if (after_step) after_step();
        images += labels.numel();
      }
    }
    return double(images) / (now() - start);
  }

  /// How a model is run.
  enum class Run { as_it_is, low, integers };

  /// Measures a model, and prints its row.
  void add(const std::string& name, const LeNet& model, double training = -1, Run run = Run::as_it_is) {
    const no_grad guard;
    Precision precision;
    if (run == Run::low) precision.emplace(DType::bfloat16);
    const auto [images, labels] = *testloader_.begin();
    const std::int64_t before = memory::stats().in_use;
    LeNet copy = model.clone();
    const auto answer = [&](const Tensor<float>& x) {
      return run == Run::integers ? copy(quant::Activation(x)).dequantize() : copy(x);
    };
    answer(images);
    Row row{name, 0, 0, memory::stats().in_use - before, 0, training};
    row.accuracy = accuracy(answer);
    row.inference = speed(answer, images);
    row.file = file_size(copy);
    std::printf("%-24s %8.2f %% %8.0f KB %8.0f KB %10.0f ", name.c_str(), 100 * row.accuracy, double(row.file) / 1e3,
                double(row.memory) / 1e3, row.inference);
    if (training >= 0) std::printf("%10.0f\n", training);
    else std::printf("%10s\n", "-");
    std::fflush(stdout);
    rows_.push_back(row);
  }

  void head() const {
    std::printf("%-24s %10s %11s %11s %10s %10s\n", "LeNet", "accuracy", "file", "memory", "inference", "training");
    std::printf("%60s %21s\n", "", "images/s");
  }
  void draw(const std::string& path) const {
    std::vector<std::string> names;
    chart::Column accuracy{"accuracy, %, from 90", "%.2f", 90, {}}, file{"file, KB", "%.0f", 0, {}},
        memory{"memory, KB", "%.0f", 0, {}}, inference{"inference, images/s", "%.0f", 0, {}},
        training{"training, images/s", "%.0f", 0, {}};
    for (const Row& row : rows_) {
      names.push_back(row.name);
      accuracy.values.push_back(100 * row.accuracy);
      file.values.push_back(double(row.file) / 1e3);
      memory.values.push_back(double(row.memory) / 1e3);
      inference.values.push_back(row.inference);
      training.values.push_back(row.training);
    }
    chart::write_svg(path, "LeNet, made smaller", names, {accuracy, file, memory, inference, training});
  }

 private:
  double accuracy(const auto& answer) {
    std::int64_t right = 0;
    for (auto& [images, labels] : testloader_) right += count_nonzero(argmax(answer(images), 1) == labels).item();
    return double(right) / double(testset_.size());
  }
  /// Images a second, of batches of 64: the best of several runs.
  static double speed(const auto& answer, const Tensor<float>& images) {
    double best = 0;
    for (int run = 0; run < 5; ++run) {
      const double start = now();
      std::int64_t batches = 0;
      for (; now() - start < 0.1; ++batches) answer(images);
      best = std::max(best, double(batches * images.size(0)) / (now() - start));
    }
    return best;
  }
  static std::int64_t file_size(LeNet& model) {
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("tenet_compress_" + std::to_string(std::int64_t(now() * 1e6)));
    save(model, path.string());
    const auto size = std::int64_t(std::filesystem::file_size(path));
    std::filesystem::remove(path);
    return size;
  }

  Options o_;
  data::MNIST trainset_, testset_;
  Digits trainloader_, testloader_;
  std::vector<Row> rows_;
};

void run(const Options& o) {
  manual_seed(o.seed);
  Bench bench(o);
  bench.head();
  const double tuning_rate = o.lr / 2;

  LeNet model;
  const LeNet start = model;
  const double speed = bench.train(model, o.epochs, o.lr);
  bench.add("float", model, speed);
  {
    LeNet low = start;
    const double low_speed = bench.train(low, o.epochs, o.lr, true);
    bench.add("bfloat16 autocast", low, low_speed, Bench::Run::low);
  }

  bench.add("int8, dynamic", quant::quantize_dynamic<nn::Linear>(model));
  const auto some = bench.calibration();
  bench.add("int8, static", quant::quantize_static<nn::Conv2d, nn::Linear>(model, some), -1, Bench::Run::integers);
  {
    LeNet trained = model;
    quant::prepare_qat_<nn::Conv2d, nn::Linear>(trained);
    const double qat_speed = bench.train(trained, o.tuning, tuning_rate);
    quant::convert_(trained);
    bench.add("int8, trained for", quant::pass_integers_(trained, some[0]), qat_speed, Bench::Run::integers);
  }
  bench.add("int4 weights", quant::quantize_weights<nn::Conv2d, nn::Linear>(model, {.bits = 4}));

  for (const double sparsity : {0.8, 0.9, 0.95}) {
    LeNet sparse = model;
    prune::GradualMagnitude pruning(
        prune::weights(sparse),
        {.sparsity = sparsity, .end = bench.steps(o.tuning) / 2, .frequency = 10, .global = true});
    const double sparse_speed = bench.train(sparse, o.tuning, tuning_rate, false, [&] { pruning.step(); });
    prune::remove(sparse);
    prune::to_sparse(sparse);
    bench.add(text({std::int64_t(sparsity * 100 + 0.5), " % pruned"}), sparse, sparse_speed);
  }
  {
    LeNet small = model;
    prune::ln_structured(small.conv1, {.amount = 0.5});
    prune::ln_structured(small.conv2, {.amount = 0.5});
    prune::ln_structured(small.fc1, {.amount = 0.5});
    bench.train(small, o.tuning, tuning_rate);
    prune::shrink(small.conv1, small.conv2, nn::ReLU());
    prune::shrink(small.conv2, small.fc1, nn::ReLU());
    prune::shrink(small.fc1, small.fc2, nn::ReLU());
    const double small_speed = bench.train(small, o.tuning, tuning_rate);
    bench.add("half of the channels", small, small_speed);
  }
  {
    LeNet factored = model;
    prune::low_rank(factored.fc1, {.rank = 50});
    const double factored_speed = bench.train(factored, o.tuning, tuning_rate);
    bench.add("rank 50", factored, factored_speed);
  }
  if (!o.plot.empty()) bench.draw(o.plot);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains LeNet, makes it smaller in many ways, and compares them.");
  app.get_formatter()->column_width(30);
  app.option_defaults()->always_capture_default();
  Options o;
  app.add_option("--data", o.data, "folder with the MNIST files, plain or .gz (default: the bundled digits)");
  app.add_option("--epochs", o.epochs, "of training")->check(CLI::Range(1, 100000));
  app.add_option("--tuning", o.tuning, "epochs of training after a change")->check(CLI::Range(1, 100000));
  app.add_option("--lr", o.lr, "learning rate; half of it after a change");
  app.add_option("--seed", o.seed, "of the weights and the order of the images");
  app.add_option("--plot", o.plot, "draw the table")->type_name("FILE.svg");
  CLI11_PARSE(app, argc, argv);
  try {
    run(o);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
