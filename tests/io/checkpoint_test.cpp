#include <tenet/io/checkpoint.hpp>
#include <tenet/nn/nn.hpp>
#include <tenet/optim/optim.hpp>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include <data/files.hpp>

using namespace tenet;

namespace {

const std::string reference = TENET_REFERENCE_DIR;

bool has(const std::string& whole, const std::string& part) { return whole.find(part) != std::string::npos; }

// The model of tests/reference/checkpoint.py.
struct LeNet : nn::Module<LeNet> {
  nn::Conv2d<> conv1{1, 4, 3}, conv2{4, 6, 3};
  nn::MaxPool2d pool{2};
  nn::Linear<> fc1{6 * 2 * 2, 8}, fc2{8, 10};
  TENET_MODULE(conv1, conv2, pool, fc1, fc2)

  Tensor<float> forward(Tensor<float> x) {
    x = pool(relu(conv1(x)));
    x = pool(relu(conv2(x)));
    return fc2(relu(fc1(x.view({-1, 24}))));
  }
};

// With dropout, which draws from the default generator.
struct Net : nn::Module<Net> {
  nn::Linear<> fc1{6, 16}, fc2{16, 3};
  nn::Dropout dropout{0.5};
  TENET_MODULE(fc1, fc2, dropout)

  Tensor<float> forward(const Tensor<float>& x) { return fc2(dropout(relu(fc1(x)))); }
};

template <class M>
std::vector<float> parameters_of(M& m) {
  std::vector<float> all;
  for (const AnyTensor& p : m.parameters()) {
    for (const float x : Tensor<float>(p).to_vector()) all.push_back(x);
  }
  return all;
}

void train_epoch(Net& net, optim::Optimizer& optimizer, std::int64_t epoch) {
  Generator data(100 + std::uint64_t(epoch));
  for (int step = 0; step < 5; ++step) {
    optimizer.zero_grad();
    const Tensor<float> x = randn({4, 6}, data);
    const Tensor<std::int64_t> y = randint(3, {4}, data);
    cross_entropy(net(x), y).backward();
    optimizer.step();
  }
}

TEST(Checkpoint, ReadsTheWeightsOfPyTorch) {
  LeNet net;
  load(net, reference + "/checkpoint.safetensors");
  const TensorFile expected = load_tensors(reference + "/checkpoint_logits.safetensors");
  const auto logits = net(Tensor<float>(expected["input"])).to_vector();
  const auto right = Tensor<float>(expected["logits"]).to_vector();
  ASSERT_EQ(logits.size(), 50u);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_NEAR(logits[i], right[i], 1e-5);
}

TEST(Checkpoint, WritesTheBytesThatTheReferenceImplementationWrites) {
  const TemporaryFolder folder;
  for (const std::string file : {"checkpoint.safetensors", "checkpoint_logits.safetensors"}) {
    const TensorFile read = load_tensors(reference + "/" + file);
    save_tensors(folder.file(file), read.tensors, read.metadata);
    EXPECT_EQ(read_bytes(folder.file(file)), read_bytes(reference + "/" + file));
  }
}

TEST(Checkpoint, PyTorchReadsTheWeights) {
  const TemporaryFolder folder;
  LeNet net;
  const Tensor<float> x = randn({3, 1, 14, 14});
  save(net, folder.file("model"));
  save_tensors(folder.file("logits"), {{"input", x}, {"logits", net(x).detach()}});
  const std::string command = "python3 '" + reference + "/checkpoint.py' check '" + folder.file("model") + "' '" +
                              folder.file("logits") + "' > '" + folder.file("output") + "' 2>&1";
  const int status = std::system(command.c_str());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  const Bytes output = read_bytes(folder.file("output"));
  if (code == 77 || code == 127) GTEST_SKIP() << "no PyTorch with safetensors";
  EXPECT_EQ(code, 0) << std::string(output.begin(), output.end());
}

TEST(Checkpoint, ALoadedModelIsTheSavedOne) {
  const TemporaryFolder folder;
  LeNet a, b;
  ASSERT_NE(parameters_of(a), parameters_of(b));
  save(a, folder.file("a"));
  load(b, folder.file("a"));
  EXPECT_EQ(parameters_of(a), parameters_of(b));
  EXPECT_TRUE(b.fc1.weight.requires_grad());
  save(b, folder.file("b"));
  EXPECT_EQ(read_bytes(folder.file("a")), read_bytes(folder.file("b")));
}

TEST(Checkpoint, WhatDoesNotFitIsListedAndChangesNothing) {
  const TemporaryFolder folder;
  LeNet net;
  const auto before = parameters_of(net);
  NamedTensors wrong;
  for (const auto& [name, t] : net.state_dict()) {
    if (name == "fc1.bias") continue;
    wrong.emplace_back(name == "fc2.bias" ? "fc3.bias" : name, AnyTensor(zeros(t.shape())));
  }
  wrong.front().second = zeros({4, 1, 3, 2});
  save_tensors(folder.file("wrong"), wrong);
  const std::string why = message<Error>([&] { load(net, folder.file("wrong")); });
  for (const char* part : {"load: '", "wrong'", "missing: fc1.bias", "missing: fc2.bias", "unexpected: fc3.bias",
                           "conv1.weight: expected [4, 1, 3, 3] of float32, got [4, 1, 3, 2]"}) {
    EXPECT_TRUE(has(why, part)) << why;
  }
  EXPECT_THROW(load(net, folder.file("wrong"), {.strict = false}), Error);  // the shape is still wrong
  EXPECT_EQ(parameters_of(net), before);
  wrong.erase(wrong.begin());
  save_tensors(folder.file("partial"), wrong);
  load(net, folder.file("partial"), {.strict = false});
  EXPECT_EQ(net.conv2.bias.to_vector(), std::vector<float>(6, 0.0f));
}

template <class Optimizer>
void expect_resumes_as_if_never_stopped(auto options) {
  const TemporaryFolder folder;
  {
    manual_seed(1);
    Net net;
    Optimizer optimizer(net.parameters(), options);
    train_epoch(net, optimizer, 0);
    optimizer.set_lr(0.05);
    save_training(net, optimizer, folder.file("one"), {.epoch = 1, .extra = {{"best", scalar(0.75)}}});
    train_epoch(net, optimizer, 1);
    save_training(net, optimizer, folder.file("straight"), {.epoch = 2});
  }
  manual_seed(99);
  Net net;
  Optimizer optimizer(net.parameters(), options);
  const TrainingProgress progress = load_training(net, optimizer, folder.file("one"));
  EXPECT_EQ(progress.epoch, 1);
  ASSERT_EQ(progress.extra.size(), 1u);
  EXPECT_EQ(progress.extra[0].first, "best");
  EXPECT_EQ(Tensor<double>(progress.extra[0].second).item(), 0.75);
  EXPECT_EQ(optimizer.lr(), 0.05);
  train_epoch(net, optimizer, 1);
  save_training(net, optimizer, folder.file("resumed"), {.epoch = 2});
  EXPECT_EQ(read_bytes(folder.file("resumed")), read_bytes(folder.file("straight")));
  EXPECT_NE(read_bytes(folder.file("resumed")), read_bytes(folder.file("one")));
}

TEST(Checkpoint, ATrainingGoesOnAsIfItHadNotStopped) {
  expect_resumes_as_if_never_stopped<optim::SGD>(optim::SGDOptions{.lr = 0.1});
  expect_resumes_as_if_never_stopped<optim::SGD>(optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true});
  expect_resumes_as_if_never_stopped<optim::Adam>(optim::AdamOptions{.lr = 0.01, .amsgrad = true});
  expect_resumes_as_if_never_stopped<optim::AdamW>(optim::AdamWOptions{.lr = 0.01});
}

TEST(Checkpoint, AModelCanBeReadFromATraining) {
  const TemporaryFolder folder;
  Net a, b;
  optim::SGD optimizer(a.parameters(), {.lr = 0.1, .momentum = 0.9});
  train_epoch(a, optimizer, 0);
  save_training(a, optimizer, folder.file("training"), {});
  load(b, folder.file("training"));
  EXPECT_EQ(parameters_of(a), parameters_of(b));
}

TEST(Checkpoint, ATrainingThatDoesNotFitChangesNothing) {
  const TemporaryFolder folder;
  Net net;
  optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  train_epoch(net, sgd, 0);
  save_training(net, sgd, folder.file("sgd"), {});
  save(net, folder.file("model"));

  optim::Adam adam(net.parameters(), {.lr = 0.01});
  train_epoch(net, adam, 1);
  const auto unchanged = [&](const auto& load_it) {
    const GeneratorState generator = default_generator().state();
    save_training(net, adam, folder.file("before"), {});
    EXPECT_TRUE(has(message<Error>(load_it), "load_training: '" + folder.path()));
    EXPECT_EQ(default_generator().state(), generator);
    save_training(net, adam, folder.file("after"), {});
    EXPECT_EQ(read_bytes(folder.file("after")), read_bytes(folder.file("before")));
  };
  unchanged([&] { load_training(net, adam, folder.file("sgd")); });    // of another optimizer
  unchanged([&] { load_training(net, adam, folder.file("model")); });  // of a model alone

  LeNet other;  // another model, whose optimizer has no state yet: only the model does not fit
  optim::Adam fresh(other.parameters(), {.lr = 0.5});
  save_training(other, fresh, folder.file("other"), {});
  unchanged([&] { load_training(net, adam, folder.file("other")); });
  EXPECT_EQ(adam.lr(), 0.01);
}

}  // namespace
