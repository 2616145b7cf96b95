#include <tenet/parallel/parallel.hpp>

#include <gtest/gtest.h>

#include "parallel/restart_suite.hpp"

namespace tenet {
namespace {

using parallel::run_threads;
using test::expect_contains;
using test::Kind;
using test::message;
using test::Zoo;

void append(test::Losses& losses, const test::Losses& more) { losses.insert(losses.end(), more.begin(), more.end()); }

TEST(Restart, GoesOnWithAnotherNumberOfRanks) {
  const TemporaryFolder folder;
  const std::string path = folder.file("run.safetensors");
  test::Losses losses = test::continued_on_threads(4, path, 0, 20, 3, Kind::adamw);
  append(losses, test::continued_on_threads(2, path, 20, 50, 1, Kind::adamw));
  test::expect_close(losses, test::single_worker_losses(Kind::adamw));

  losses = test::continued_on_threads(4, path, 0, 20, 2, Kind::sgd);
  append(losses, test::continued_on_threads(2, path, 20, 35, 0, Kind::sgd));
  test::LeNet<double> model;  // and then one worker
  const auto optimizer = test::make_optimizer(Kind::sgd, model.parameters());
  EXPECT_EQ(load_training(model, *optimizer, path).batch, 35);
  test::Digits{}.train_with(
      *optimizer, 35, 50, [&](const Tensor<double>& x) { return model(x); },
      [&](double loss, std::int64_t) { losses.push_back(loss); });
  test::expect_close(losses, test::single_worker_losses());
}

/// Parameters of several types and uses, and the state of their optimizer, after a step from the same numbers.
template <class Wrapper>
void step(Wrapper& wrapper, optim::Optimizer& optimizer) {
  Generator numbers(4);
  optimizer.zero_grad();
  (wrapper(randn({4, 4}, numbers)) * 1.0f).mean().backward();
  optimizer.step();
}
void expect_same(const nn::StateDict& a, const nn::StateDict& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(a[i].first);
    EXPECT_EQ(a[i].first, b[i].first);
    ASSERT_EQ(a[i].second.dtype(), b[i].second.dtype());
    dispatch(a[i].second.dtype(), [&]<class T>(T) {
      const std::vector<T> x = Tensor<T>(a[i].second).to_vector(), y = Tensor<T>(b[i].second).to_vector();
      ASSERT_EQ(x.size(), y.size());
      for (std::size_t k = 0; k < x.size(); ++k) EXPECT_NEAR(double(x[k]), double(y[k]), 1e-6) << k;
    });
  }
}

TEST(Restart, TheStateIsThatOfOneWorker) {
  run_threads(3, [](auto& comm) {
    manual_seed(3);
    Zoo a, b, c;
    b.load_state_dict(a.state_dict());
    parallel::DistributedDataParallel ddp(a, comm);
    parallel::FullyShardedDataParallel fsdp(b, comm), other(c, comm, {.stage = 2});
    const auto train = [](Zoo& model) {
      std::vector<AnyTensor> trained;
      for (const AnyTensor& p : model.parameters()) {
        if (p.requires_grad()) trained.push_back(p);
      }
      return trained;
    };
    optim::AdamW whole(train(a), {.eps = 1e-3}), sharded(train(b), {.eps = 1e-3}), loaded(train(c), {.eps = 1e-3});
    step(ddp, whole);
    step(fsdp, sharded);
    const nn::StateDict state = fsdp.state_dict(), optimizer_state = fsdp.state_dict(sharded);
    if (comm.rank() == 0) {
      expect_same(state, a.state_dict());
      expect_same(optimizer_state, whole.state_dict());
    } else {
      EXPECT_TRUE(state.empty() && optimizer_state.empty());
    }
    // Loaded into other shards, it goes on alike.
    other.load_state_dict(a.state_dict());
    other.load_state_dict(loaded, whole.state_dict());
    step(ddp, whole);
    step(other, loaded);
    const nn::StateDict next = other.state_dict(), next_optimizer = other.state_dict(loaded);
    if (comm.rank() == 0) {
      expect_same(next, a.state_dict());
      expect_same(next_optimizer, whole.state_dict());
    }
    // What does not fit changes nothing.
    nn::StateDict wrong = whole.state_dict();
    for (auto& [key, tensor] : wrong) {
      if (key == "state.1.exp_avg") tensor = zeros({5});
    }
    expect_contains(message([&] { other.load_state_dict(loaded, wrong); }),
                    "state.1.exp_avg: expected [4, 4], got [5]");
    wrong = a.state_dict();
    wrong.back().first = "nothing";
    expect_contains(message([&] { other.load_state_dict(wrong); }), "unexpected: nothing");
    other.load_state_dict({{"seen", full({1}, 5.0f)}}, {.strict = false});
    EXPECT_EQ(c.seen.item(), 5);
    const nn::StateDict still = other.state_dict();
    if (comm.rank() == 0) expect_same({still.begin(), still.end() - 1}, {next.begin(), next.end() - 1});
  });
}

/// f(wrapper, optimizer) on each rank, with weights of all `value`.
template <class F>
void with_training(int ranks, float value, const F& f) {
  run_threads(ranks, [&](auto& comm) {
    nn::Linear<> model{3, 2};
    model.load_state_dict({{"weight", full({2, 3}, value)}, {"bias", full({2}, value)}});
    parallel::FullyShardedDataParallel fsdp(model, comm);
    optim::AdamW optimizer(fsdp.parameters());
    f(fsdp, optimizer);
  });
}

TEST(Restart, EachRankGoesOnWithItsRandomNumbers) {
  const TemporaryFolder folder;
  const std::string path = folder.file("run.safetensors");
  with_training(2, 1, [&](auto& fsdp, auto& optimizer) {
    manual_seed(10 + std::uint64_t(fsdp.communicator().rank()));
    rand({5});
    save_training(fsdp, optimizer, path, {.epoch = 7, .extra = {{"best", scalar(0.5)}}});
  });
  for (const int ranks : {1, 2, 3}) {
    with_training(ranks, 2, [&](auto& fsdp, auto& optimizer) {
      const int rank = fsdp.communicator().rank();
      manual_seed(10 + std::uint64_t(rank));
      rand({5});
      const std::vector<float> expected = rand({3}).to_vector();
      const TrainingProgress progress = load_training(fsdp, optimizer, path);
      EXPECT_EQ(progress.epoch, 7);
      EXPECT_EQ(progress.batch, 0);
      EXPECT_EQ(Tensor<double>(progress.extra.at(0).second).item(), 0.5);
      const std::vector<float> drawn = rand({3}).to_vector();
      if (rank < 2) {
        EXPECT_EQ(drawn, expected);
      }
      std::vector<float> all(std::size_t(3 * ranks));
      fsdp.communicator().all_gather(drawn.data(), all.data(), 12);
      for (int r = 0; r < ranks; ++r) EXPECT_EQ(all[std::size_t(3 * r)] == drawn[0], r == rank);
    });
  }
}

/// What every rank is told when it loads `path`, which must leave its training as it was.
std::string failure_of_load(const std::string& path, const std::string& path_of_rank_1 = "") {
  std::string said[2];
  with_training(2, 3, [&](auto& fsdp, auto& optimizer) {
    const int rank = fsdp.communicator().rank();
    const std::string mine = rank == 1 && !path_of_rank_1.empty() ? path_of_rank_1 : path;
    said[rank] = message([&] { load_training(fsdp, optimizer, mine); });
    const nn::StateDict state = fsdp.state_dict();
    if (rank == 0) {
      EXPECT_EQ(Tensor<float>(state[0].second).to_vector(), std::vector<float>(6, 3.0f));
    }
    EXPECT_EQ(optimizer.state_dict().size(), 1u);
  });
  EXPECT_EQ(said[0], said[1]);
  return said[0];
}

TEST(Restart, AHalfWrittenFileIsNeverTaken) {
  const TemporaryFolder folder;
  const std::string path = folder.file("run.safetensors"), cut = folder.file("cut.safetensors");
  const auto save = [&](const std::string& to, float value, std::int64_t epoch) {
    with_training(2, value, [&](auto& fsdp, auto& optimizer) { save_training(fsdp, optimizer, to, {.epoch = epoch}); });
  };
  save(path, 1, 1);
  const Bytes whole = read_bytes(path);
  for (const std::size_t size : {std::size_t(0), std::size_t(5), whole.size() / 2, whole.size() - 1}) {
    folder.write("cut.safetensors", {whole.begin(), whole.begin() + std::ptrdiff_t(size)});
    expect_contains(failure_of_load(cut), "load_training: rank 0 failed: load_tensors: '" + cut);
    // On one rank alone, too.
    expect_contains(failure_of_load(path, cut), "load_training: rank 1 failed: load_tensors: '" + cut);
  }
  // A writer that died leaves the file before it.
  folder.write("run.safetensors.1-1.tmp", {whole.begin(), whole.begin() + 50});
  with_training(3, 3, [&](auto& fsdp, auto& optimizer) {
    EXPECT_EQ(load_training(fsdp, optimizer, path).epoch, 1);
    const nn::StateDict state = fsdp.state_dict();
    if (fsdp.communicator().rank() == 0) {
      EXPECT_EQ(Tensor<float>(state[0].second).to_vector(), std::vector<float>(6, 1.0f));
    }
  });

  save(folder.file("later.safetensors"), 2, 2);
  expect_contains(failure_of_load(path, folder.file("later.safetensors")), "rank 1 has read another file than rank 0");
  nn::Linear<> model{3, 2};
  optim::AdamW optimizer(model.parameters());
  save_tensors(cut, model.state_dict());
  expect_contains(failure_of_load(cut), "the file holds a model only");
  nn::Linear<> wide{3, 4};
  optim::AdamW wide_optimizer(wide.parameters());
  save_training(wide, wide_optimizer, cut, {});
  expect_contains(failure_of_load(cut), "weight: expected [2, 3] of float32, got [4, 3] of float32");
  NamedTensors all = load_tensors(path).tensors;
  for (auto& [name, tensor] : all) {
    if (name == "training/generators") tensor = zeros<std::int64_t>({2});
  }
  save_tensors(cut, all);
  expect_contains(failure_of_load(cut), "expected two numbers a rank as training/generators, got shape [2]");
}

TEST(Restart, EveryRankLearnsThatRank0CannotWrite) {
  std::string said[3];
  with_training(3, 1, [&](auto& fsdp, auto& optimizer) {
    said[fsdp.communicator().rank()] = message([&] { save_training(fsdp, optimizer, "/nowhere/run.safetensors", {}); });
  });
  for (const std::string& s : said) {
    expect_contains(s, "save_training: rank 0 failed: save_tensors: cannot write '/nowhere/run.safetensors'");
  }
}

}  // namespace
}  // namespace tenet
