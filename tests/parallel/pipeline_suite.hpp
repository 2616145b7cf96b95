// What a pipeline over ranks must do; the same for each engine. Each function runs on every rank.
#pragma once

#include "parallel/support.hpp"

namespace tenet::test {

using parallel::Pipeline;
using parallel::PipelineOptions;
using parallel::PipelineSchedule;

inline constexpr PipelineSchedule schedules[] = {PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward};

/// Blocks [begin, end) of the four of a LeNet.
struct LeNetBlocks : nn::Module<LeNetBlocks> {
  LeNet<double> net = lenet();
  int begin, end;
  TENET_MODULE(net)
  LeNetBlocks(int stage, int stages) : begin(4 * stage / stages), end(4 * (stage + 1) / stages) {}

  Tensor<double> forward(Tensor<double> x) {
    for (int block = begin; block < end; ++block) {
      if (block == 0) x = net.pool(relu(net.conv1(x)));
      if (block == 1) x = net.pool(relu(net.conv2(x)));
      if (block == 2) x = relu(net.fc1(x.view({-1, 50 * 4 * 4})));
      if (block == 3) x = net.fc2(x);
    }
    return x;
  }
};

/// Trains LeNet over the ranks of `comm`, where `model` is this rank's stage or what wraps it; the loss of each step.
template <class M, parallel::Communicator C>
Losses pipeline_losses(M& model, LeNetBlocks& stage, C& comm, const PipelineOptions& options,
                       const Digits& digits = {}) {
  Pipeline pipeline(model, comm, options);
  nn::CrossEntropyLoss criterion;
  optim::SGD optimizer(stage.parameters(), {.lr = 0.02, .momentum = 0.9});
  data::DataLoader loader(data::MNIST(digits_folder()), digits.options);
  Losses losses;
  for (auto& [inputs, labels] : loader) {
    if (losses.size() == 50) break;
    optimizer.zero_grad();
    losses.push_back(pipeline.template step<double>(inputs.template to<double>(), labels, criterion));
    optimizer.step();
  }
  return losses;
}
template <parallel::Communicator C>
Losses pipeline_losses(C& comm, const PipelineOptions& options) {
  LeNetBlocks stage(comm.rank(), comm.size());
  return pipeline_losses(stage, stage, comm, options);
}

/// Each schedule trains as one worker does, and repeats the other bit by bit.
template <parallel::Communicator C>
void check_pipeline_trains(C& comm) {
  const Losses losses = pipeline_losses(comm, {.micro_batches = 5});
  expect_close(losses, single_worker_losses());
  EXPECT_EQ(pipeline_losses(comm, {.micro_batches = 5, .schedule = PipelineSchedule::gpipe}), losses);
}

/// Two pipelines of two stages, each trained over two ranks: the mean loss of their parts of the batches.
template <parallel::Communicator C>
Losses hybrid_losses(C& comm) {
  parallel::Mesh mesh(comm, {.data = 2, .pipeline = 2});
  LeNetBlocks stage(mesh.pipeline.rank(), mesh.pipeline.size());
  parallel::DistributedDataParallel ddp(stage, mesh.data);
  Digits digits;
  digits.options.rank = mesh.data.rank();
  digits.options.ranks = mesh.data.size();
  digits.options.batch_size /= mesh.data.size();
  Losses losses = pipeline_losses(ddp, stage, mesh.pipeline, {.micro_batches = 3}, digits);
  mesh.data.all_reduce(losses.data(), std::int64_t(losses.size()));
  for (double& l : losses) l /= mesh.data.size();
  ddp.check_agreement();
  return losses;
}
template <parallel::Communicator C>
void check_hybrid_trains(C& comm) {
  const Losses losses = hybrid_losses(comm);
  expect_close(losses, single_worker_losses());
  EXPECT_EQ(hybrid_losses(comm), losses);
}

/// LeNet in two parts, as plain user code: what one worker computes, bit by bit. Every rank calls it.
template <parallel::Communicator C>
void check_parts_train(C& comm) {
  parallel::Part<LeNetBlocks, C> part1(0, comm, 0, 2), part2(1, comm, 1, 2);
  parallel::Part<nn::CrossEntropyLoss, C> criterion(1, comm);
  optim::SGD optimizer((comm.rank() == 0 ? part1 : part2).parameters(), {.lr = 0.02, .momentum = 0.9});
  data::DataLoader loader(data::MNIST(digits_folder()), Digits{}.options);
  Losses losses;
  for (auto& [inputs, labels] : loader) {
    if (losses.size() == 50) break;
    optimizer.zero_grad();
    const auto loss = criterion(part2(part1(inputs.template to<double>())), labels);
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item());
  }
  EXPECT_EQ(losses, single_worker_losses());
}

/// A linear layer, and a count of the results whose gradient has not come.
template <class T>
struct Counted : nn::Module<Counted<T>> {
  nn::Linear<T> layer;
  std::int64_t alive = 0, most = 0;
  TENET_MODULE(layer)
  Counted(std::int64_t in, std::int64_t out) : layer(in, out) {}

  Tensor<T> forward(const Tensor<T>& x) {
    const Tensor<T> y = layer(x);
    if (!y.requires_grad()) return y;
    most = std::max(most, ++alive);
    y.register_hook([this](const Tensor<T>&) { --alive; });
    return y;
  }
};

/// Batches of any size in any number of parts, of every type: loss and gradients are the unsplit model's.
template <class T, parallel::Communicator C>
void check_pipeline_gradients(C& comm, double tolerance) {
  const int rank = comm.rank(), size = comm.size();
  manual_seed(3);
  std::vector<Counted<T>> whole;
  for (int s = 0; s < size; ++s) whole.emplace_back(5 + s, 6 + s);
  Counted<T>& stage = whole[std::size_t(rank)];
  const auto criterion = [](const Tensor<T>& y, const Tensor<T>& t) { return mse_loss(y, t); };
  for (const std::int64_t n : {1, 2, 7}) {
    const auto x = randn<T>({n, 5}), target = randn<T>({n, 5 + size});
    Tensor<T> y = x;
    for (auto& s : whole) y = s.layer(y);
    const Tensor<T> loss = criterion(y, target);
    loss.backward();
    const std::vector<T> expected = stage.layer.weight.grad().to_vector();
    for (const PipelineSchedule schedule : schedules) {
      for (const int parts : {1, 3, 100}) {
        stage.zero_grad();
        stage.most = 0;
        Pipeline pipeline(stage, comm, {.micro_batches = parts, .schedule = schedule});
        EXPECT_NEAR(pipeline.template step<T>(x, target, criterion), double(loss.item()), tolerance);
        const std::vector<T> gradient = stage.layer.weight.grad().to_vector();
        for (std::size_t i = 0; i < gradient.size(); ++i) {
          EXPECT_NEAR(double(gradient[i]), double(expected[i]), tolerance) << n << " examples in " << parts;
        }
        const std::int64_t count = std::min<std::int64_t>(parts, n);
        const bool early = schedule == PipelineSchedule::one_forward_one_backward;
        EXPECT_EQ(stage.most, early ? std::min<std::int64_t>(count, size - rank) : count);
        EXPECT_EQ(stage.alive, 0);

        const Tensor<T> out = pipeline.template forward<T, T>(x);
        ASSERT_EQ(out.shape(), y.shape());
        for (std::int64_t i = 0; i < out.numel(); ++i) {
          EXPECT_NEAR(double(out.data()[i]), double(y.data()[i]), tolerance);
        }
      }
    }
    for (auto& s : whole) s.zero_grad();
  }
}

/// Token numbers go in, and half precision goes on; the first stage is frozen in the second step.
struct Tokens : nn::Module<Tokens> {
  nn::Embedding<> table{4, 3};
  TENET_MODULE(table)
  Tensor<half> forward(const Tensor<std::int64_t>& x) { return table(x).to<half>(); }
};
struct Head : nn::Module<Head> {
  nn::Linear<> layer{3, 1};
  TENET_MODULE(layer)
  Tensor<float> forward(const Tensor<half>& x) { return layer(x.to<float>()); }
};
inline Tensor<float> mean_square(const Tensor<float>& y, const Tensor<float>& t) { return mse_loss(y, t); }

/// Runs on two ranks.
template <parallel::Communicator C>
void check_pipeline_of_types(C& comm) {
  manual_seed(4);
  Tokens tokens;
  Head head;
  const auto x = tensor<std::int64_t>({0, 3, 1});
  const auto target = tensor<float>({{1}, {2}, {3}});
  const Tensor<float> loss = mse_loss(head(tokens(x)), target);
  loss.backward();
  const std::vector<float> expected[] = {tokens.table.weight.grad().to_vector(), head.layer.weight.grad().to_vector()};
  tokens.zero_grad(), head.zero_grad();
  const auto run = [&](auto& stage, const Tensor<float>& weight) {
    Pipeline pipeline(stage, comm, {.micro_batches = 1});
    EXPECT_EQ(float(pipeline.template step<half>(x, target, mean_square)), loss.item());
    EXPECT_EQ(weight.grad().to_vector(), expected[comm.rank()]);
    stage.zero_grad();
    tokens.requires_grad_(false);
    pipeline.template step<half>(x, target, mean_square);
    EXPECT_EQ(bool(weight.grad()), comm.rank() == 1);
    stage.zero_grad();
    const no_grad guard;
    EXPECT_EQ(float(pipeline.template step<half>(x, target, mean_square)), loss.item());
    EXPECT_FALSE(weight.grad());
  };
  if (comm.rank() == 0) run(tokens, tokens.table.weight);
  else run(head, head.layer.weight);
}

/// A stage that fails in its second micro-batch, in forward or in backward.
struct Failing : nn::Module<Failing> {
  nn::Linear<> layer{2, 2};
  bool fails = false, in_backward = false;
  int calls = 0;
  TENET_MODULE(layer)

  Tensor<float> forward(const Tensor<float>& x) {
    const bool now = fails && ++calls == 2;
    if (now && !in_backward) throw Error("out of luck");
    const Tensor<float> y = layer(x);
    if (now) y.register_hook([](const Tensor<float>&) { throw Error("out of luck"); });
    return y;
  }
};
template <parallel::Communicator C>
void fail_in_stage(C& comm, int rank, bool in_backward) {
  Failing stage;
  stage.fails = comm.rank() == rank;
  stage.in_backward = in_backward;
  Pipeline pipeline(stage, comm);
  for (int step = 0; step < 3; ++step) pipeline.step(ones({4, 2}), ones({4, 2}), mean_square);
}
/// A stage whose width is not the next one's.
template <parallel::Communicator C>
void fail_by_shape(C& comm) {
  nn::Linear<> stage{2 + comm.rank(), 2};
  Pipeline pipeline(stage, comm);
  pipeline.step(ones({4, 2}), ones({4, 2}), mean_square);
}
/// A stage that gives what the next one does not take.
template <parallel::Communicator C>
void fail_by_type(C& comm) {
  const auto run = [&](auto stage) {
    Pipeline pipeline(stage, comm);
    pipeline.step(tensor<std::int64_t>({0, 1}), ones({2, 2}), mean_square);
  };
  if (comm.rank() == 0) run(Tokens());
  else run(nn::Linear<>{2, 2});
}

}  // namespace tenet::test
