#include <tenet/data/data_loader.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

using namespace tenet;
using namespace tenet::data;

namespace {

using Indices = std::vector<std::int64_t>;

// Example i is (i, 2 i), as tensors.
TensorDataset<std::int64_t, std::int64_t> pairs(std::int64_t n) {
  return TensorDataset(arange<std::int64_t>(n), arange<std::int64_t>(0, 2 * n, 2));
}

// What the loader gives in one epoch, or the rest of one, batch by batch.
template <class D>
std::vector<Indices> epoch(DataLoader<D>& loader, std::int64_t skipped = 0) {
  std::vector<Indices> batches;
  for (auto& [a, b] : loader) {
    batches.push_back(a.to_vector());
    for (std::int64_t i = 0; i < a.numel(); ++i) EXPECT_EQ(b.data()[i], 2 * a.data()[i]);
  }
  EXPECT_EQ(std::int64_t(batches.size()), loader.size() - std::min(skipped, loader.size()));
  return batches;
}

TEST(DataLoader, TheLastBatchMayBeSmaller) {
  for (const int workers : {0, 1, 3}) {
    const auto sizes = [&](std::int64_t n, std::int64_t batch_size, bool drop_last) {
      DataLoader loader(pairs(n), {.batch_size = batch_size, .workers = workers, .drop_last = drop_last});
      Indices all;
      for (const Indices& batch : epoch(loader)) all.push_back(std::int64_t(batch.size()));
      return all;
    };
    EXPECT_EQ(sizes(10, 4, false), (Indices{4, 4, 2}));
    EXPECT_EQ(sizes(10, 4, true), (Indices{4, 4}));
    EXPECT_EQ(sizes(8, 4, false), (Indices{4, 4}));
    EXPECT_EQ(sizes(3, 4, false), (Indices{3}));
    EXPECT_EQ(sizes(3, 4, true), Indices{});
    EXPECT_EQ(sizes(0, 4, false), Indices{});
    EXPECT_EQ(sizes(2, std::numeric_limits<std::int64_t>::max(), false), (Indices{2}));
  }
}

TEST(DataLoader, KeepsTheOrderUnlessAskedToShuffle) {
  DataLoader loader(pairs(5), {.batch_size = 2});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(epoch(loader), (std::vector<Indices>{{0, 1}, {2, 3}, {4}}));
}

TEST(DataLoader, ShufflesByItsSeedAndEpoch) {
  DataLoader loader(pairs(100), {.batch_size = 100, .shuffle = true, .seed = 5});
  const Indices first = epoch(loader)[0], second = epoch(loader)[0];
  EXPECT_NE(first, second);
  Indices sorted = second;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, arange<std::int64_t>(100).to_vector());

  DataLoader again(pairs(100), {.batch_size = 100, .shuffle = true, .seed = 5});
  again.set_epoch(1);
  EXPECT_EQ(again.epoch(), 1u);
  EXPECT_EQ(epoch(again)[0], second);
  EXPECT_EQ(again.epoch(), 2u);

  DataLoader other(pairs(100), {.batch_size = 100, .shuffle = true, .seed = 6});
  EXPECT_NE(epoch(other)[0], first);
  manual_seed(1);  // the default generator plays no part
  again.set_epoch(0);
  EXPECT_EQ(epoch(again)[0], first);
}

TEST(DataLoader, GoesOnInTheMiddleOfAnEpoch) {
  for (const int workers : {0, 2}) {
    DataLoader loader(pairs(11), {.batch_size = 2, .shuffle = true, .workers = workers});
    epoch(loader);
    const auto whole = epoch(loader), next = epoch(loader);
    for (const std::int64_t batches : {0, 1, 5, 6, 7}) {
      loader.set_epoch(1, batches);
      const auto rest = epoch(loader, batches);
      EXPECT_EQ(rest, std::vector<Indices>(whole.begin() + std::min<std::ptrdiff_t>(batches, 6), whole.end()));
      EXPECT_EQ(epoch(loader), next);
    }
    const std::int64_t most = std::int64_t(1) << 62;
    loader.set_epoch(1, most);
    EXPECT_TRUE(epoch(loader, most).empty());
    EXPECT_THROW(loader.set_epoch(0, -1), Error);
  }
}

TEST(DataLoader, ABatchMayHoldMoreThanThereIs) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  DataLoader one(pairs(3), {.batch_size = most}), second(pairs(3), {.batch_size = most, .rank = 1, .ranks = 2});
  EXPECT_EQ(epoch(one), (std::vector<Indices>{{0, 1, 2}}));
  EXPECT_EQ(epoch(second), (std::vector<Indices>{{2}}));
  for (const std::int64_t skipped : {std::int64_t(1), std::int64_t(2), most}) {
    one.set_epoch(0, skipped);
    second.set_epoch(0, skipped);
    EXPECT_TRUE(epoch(one, skipped).empty());
    EXPECT_TRUE(epoch(second, skipped).empty());
  }
}

TEST(DataLoader, WorkersDoNotChangeTheStream) {
  DataLoader reference(pairs(101), {.batch_size = 4, .shuffle = true});
  const auto first = epoch(reference), second = epoch(reference);
  for (const int workers : {1, 2, 7}) {
    for (const int prefetch : {1, 2, 50, 1'000'000'000}) {
      DataLoader loader(pairs(101), {.batch_size = 4, .shuffle = true, .workers = workers, .prefetch = prefetch});
      EXPECT_EQ(epoch(loader), first);
      EXPECT_EQ(epoch(loader), second);
    }
  }
}

TEST(DataLoader, ABatchIsTheUsersToChangeAndKeep) {
  DataLoader loader(pairs(6), {.batch_size = 2, .workers = 2});
  std::vector<Tensor<std::int64_t>> kept;
  for (auto& [a, b] : loader) {
    kept.push_back(a);
    a = b;
  }
  EXPECT_EQ(kept[0].to_vector(), (Indices{0, 1}));
  EXPECT_EQ(kept[2].to_vector(), (Indices{4, 5}));
}

TEST(DataLoader, TakesDataSetsThatOnlyHaveExamples) {
  struct Words {
    std::int64_t size() const { return 3; }
    std::pair<std::string, float> get(std::int64_t i) const { return {std::string(std::size_t(i), 'x'), float(i)}; }
  };
  DataLoader loader(Words{}, {.batch_size = 2});
  std::vector<std::string> all;
  for (const auto& [words, lengths] : loader) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      EXPECT_EQ(lengths(i), float(words[i].size()));
      all.push_back(words[i]);
    }
  }
  EXPECT_EQ(all, (std::vector<std::string>{"", "x", "xx"}));
}

struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Throws at example 5 while `broken`; counts what was asked for.
struct Fragile {
  std::shared_ptr<std::atomic<bool>> broken = std::make_shared<std::atomic<bool>>(true);
  std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);
  std::int64_t n = 12;
  std::int64_t size() const { return n; }
  std::int64_t get(std::int64_t i) const {
    ++*calls;
    if (i == 5 && *broken) throw Refused("no example 5");
    return i;
  }
};

TEST(DataLoader, AnExceptionArrivesWhereItsBatchWould) {
  for (const int workers : {0, 1, 2, 4}) {
    Fragile dataset;
    DataLoader loader(dataset, {.batch_size = 2, .workers = workers});
    for (int round = 0; round < 3; ++round) {
      int batches = 0;
      try {
        for (auto& batch : loader) batches += int(batch.numel() == 2);
        ADD_FAILURE() << "expected an exception";
      } catch (const Refused& e) {
        EXPECT_STREQ(e.what(), "no example 5");
      }
      EXPECT_EQ(batches, 2);
    }
    auto at = loader.begin();
    ++at;
    EXPECT_THROW(++at, Refused);
    EXPECT_EQ(at, loader.end());
    *dataset.broken = false;
    Indices all;
    for (auto& batch : loader) all.push_back(batch.data()[0]);
    EXPECT_EQ(all, (Indices{0, 2, 4, 6, 8, 10}));
  }
}

TEST(DataLoader, AnExceptionOfTheFirstBatchArrivesAtTheStart) {
  for (const int workers : {0, 2}) {
    DataLoader loader(Fragile{}, {.batch_size = 6, .workers = workers});
    EXPECT_THROW(loader.begin(), Refused);
  }
}

TEST(DataLoader, LeavingALoopEarlyEndsTheWorkers) {
  Fragile dataset{.n = 1000};
  *dataset.broken = false;
  DataLoader loader(dataset, {.batch_size = 1, .workers = 3, .prefetch = 2});
  for (int round = 0; round < 20; ++round) {
    *dataset.calls = 0;
    int batches = 0;
    for ([[maybe_unused]] auto& batch : loader) {
      if (++batches == 4) break;
    }
    EXPECT_EQ(batches, 4);
    EXPECT_LE(*dataset.calls, 4 + 3 * 2);  // never further ahead than asked
    EXPECT_EQ(dataset.calls.use_count(), 2);
  }
  loader.begin();  // an epoch of which nothing is read
}

TEST(DataLoader, TwoEpochsMayBeReadAtOnce) {
  DataLoader loader(pairs(6), {.batch_size = 2, .workers = 1});
  auto a = loader.begin();
  auto b = loader.begin();
  ++a;
  EXPECT_EQ(std::get<0>(*a).to_vector(), (Indices{2, 3}));
  EXPECT_EQ(std::get<0>(*b).to_vector(), (Indices{0, 1}));
  auto moved = std::move(a);
  ++moved;
  EXPECT_EQ(std::get<0>(*moved).to_vector(), (Indices{4, 5}));
}

TEST(DataLoader, ReusesTheMemoryOfBatches) {
  if (TENET_SANITIZED) GTEST_SKIP() << "sanitizers see each block";
  const TensorDataset dataset(zeros({64, 5000}), zeros<std::int64_t>({64}));
  for (const int workers : {0, 2}) {
    DataLoader loader(dataset, {.batch_size = 4, .shuffle = true, .workers = workers});
    const std::int64_t before = memory::stats().system_requests;
    for (int i = 0; i < 10; ++i) {
      for (auto& [x, y] : loader) EXPECT_EQ(x.numel() + y.numel(), 20004);
    }
    EXPECT_LE(memory::stats().system_requests - before, 16);  // for 320 tensors
  }
}

TEST(DataLoader, RefusesOptionsThatMakeNoSense) {
  const auto expect_refused = [](const DataLoaderOptions& options) {
    EXPECT_THROW(DataLoader(pairs(3), options), Error);
  };
  expect_refused({.batch_size = 0});
  expect_refused({.batch_size = -4});
  expect_refused({.workers = -1});
  expect_refused({.workers = 1'000'000});
  expect_refused({.workers = 1, .prefetch = 0});
}

}  // namespace
