#include <tenet/core/memory.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif

#if TENET_SANITIZED
// The sanitizers end the process at a request that no system can serve, unless told otherwise.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
#endif

using namespace tenet;

namespace {

using Block = std::pair<void*, std::size_t>;

#if defined(THREAD_SANITIZER)
// It is to see the free lists at work.
[[maybe_unused]] const bool switched_on = state::process_lists.caching = true;
#endif
bool caching() { return state::process_lists.caching; }

Block make(std::size_t bytes) { return {memory::allocate(bytes), bytes}; }
void drop(const Block& b) { memory::deallocate(b.first, b.second); }

/// Hands blocks from one thread to another.
class Channel {
 public:
  void put(const Block& b) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(b);
    ready_.notify_one();
  }
  Block take() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return !blocks_.empty(); });
    const Block b = blocks_.front();
    blocks_.pop_front();
    return b;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Block> blocks_;
};

}  // namespace

TEST(Memory, BlocksAreAlignedAndApart) {
  std::vector<Block> blocks;
  std::vector<std::size_t> sizes = {0, 1, 63, 64, 65, 127, 128, 4031, 4032, 4033, 4095, 4096, 4097, 5119, 5120, 5121};
  for (int power = 13; power <= 22; ++power) {
    for (int d : {-1, 0, 1}) sizes.push_back((std::size_t(1) << power) + std::size_t(d));
  }
  for (std::size_t size : sizes) {
    for (int copies = 0; copies < 3; ++copies) {
      blocks.push_back(make(size));
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().first) % 64, 0u) << size;
      std::memset(blocks.back().first, int(blocks.size() % 251), size);
    }
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto* p = static_cast<unsigned char*>(blocks[i].first);
    for (std::size_t at = 0; at < blocks[i].second; ++at) ASSERT_EQ(p[at], (i + 1) % 251) << blocks[i].second;
    drop(blocks[i]);
  }
}

TEST(Memory, LargeClassesHoldTheirSizeAndWasteAtMostAQuarter) {
  int before = 0;
  for (std::size_t size = 4097; size < (std::size_t(1) << 61); size += size / 7) {
    for (std::size_t bytes : {size, std::size_t(std::bit_ceil(size)), std::size_t(std::bit_ceil(size) + 1)}) {
      std::size_t rounded = 0;
      const int c = memory::detail::large_class(bytes, rounded);
      ASSERT_GE(rounded, bytes);
      ASSERT_LE(rounded - bytes, bytes / 4);
      ASSERT_EQ(rounded % 64, 0u);
      ASSERT_TRUE(c >= 0 && c < state::large_classes);
      // Every size of the class rounds to the same one.
      std::size_t again = 0;
      ASSERT_EQ(memory::detail::large_class(rounded, again), c);
      ASSERT_EQ(again, rounded);
    }
    std::size_t rounded = 0;
    const int c = memory::detail::large_class(size, rounded);
    ASSERT_GE(c, before);
    before = c;
  }
}

TEST(Memory, StatsCountWhatIsInUse) {
  const auto before = memory::stats();
  std::vector<Block> blocks;
  std::int64_t bytes = 0;
  for (std::size_t size : {std::size_t{64}, std::size_t{4096}, std::size_t{1} << 20}) {
    for (int i = 0; i < 100; ++i) blocks.push_back(make(size));
    bytes += 100 * std::int64_t(size);
  }
  const auto during = memory::stats();
  EXPECT_EQ(during.in_use - before.in_use, bytes);
  EXPECT_EQ(during.reserved, during.in_use + during.cached);
  EXPECT_GE(during.peak_reserved, during.reserved);
  for (const Block& b : blocks) drop(b);
  const auto after = memory::stats();
  EXPECT_EQ(after.in_use, before.in_use);
  EXPECT_EQ(after.peak_reserved, during.peak_reserved);
  EXPECT_EQ(after.reserved, caching() ? during.reserved : before.reserved);
}

TEST(Memory, SlabsHaveNoRemainderInUse) {
  const auto before = memory::stats();
  for (std::size_t size = 64; size <= 4096; size += 64) drop(make(size));
  EXPECT_EQ(memory::stats().in_use, before.in_use);
}

TEST(Memory, SteadyStateAsksNothingOfTheSystem) {
  if (!caching()) GTEST_SKIP() << "no caching under this sanitizer";
  auto round = [] {
    std::vector<Block> blocks;
    for (std::size_t size : {100, 100, 500, 4000, 5000, 70000, 1 << 20}) blocks.push_back(make(size));
    for (const Block& b : blocks) drop(b);
  };
  round();
  const auto before = memory::stats();
  for (int i = 0; i < 1000; ++i) round();
  const auto after = memory::stats();
  EXPECT_EQ(after.system_requests, before.system_requests);
  EXPECT_EQ(after.reserved, before.reserved);
}

TEST(Memory, EmptyCacheGivesLargeBlocksBack) {
  drop(make(std::size_t{10} << 20));
  memory::empty_cache();
  const auto before = memory::stats();
  const Block b = make(std::size_t{10} << 20);
  EXPECT_GE(memory::stats().reserved - before.reserved, 10 << 20);
  drop(b);
  memory::empty_cache();
  EXPECT_EQ(memory::stats().reserved, before.reserved);
  EXPECT_EQ(memory::stats().cached, before.cached);
}

TEST(Memory, SizesThatComeOnceDoNotPileUp) {
  memory::empty_cache();
  EXPECT_THROW(memory::allocate(std::size_t{1} << 60), Error);  // what was refused was never in use
  const auto before = memory::stats();
  for (std::size_t mb = 8; mb < 64; ++mb) drop(make(mb << 20));
  EXPECT_LT(memory::stats().reserved - before.reserved, std::int64_t{300} << 20);
  memory::empty_cache();
}

TEST(Memory, SizesThatAlternateAskNothingOfTheSystem) {
  if (!caching()) GTEST_SKIP() << "no caching under this sanitizer";
  const auto round = [] {
    for (const std::size_t mb : {150, 100}) drop(make(mb << 20));
  };
  round();
  const auto before = memory::stats();
  for (int i = 0; i < 3; ++i) round();
  EXPECT_EQ(memory::stats().system_requests, before.system_requests);
  memory::empty_cache();
}

TEST(Memory, OutOfMemoryThrowsAndLeavesTheAllocatorWhole) {
  const auto before = memory::stats();
  for (std::size_t bytes : {std::size_t{1} << 60, (std::size_t{1} << 62) + 1, ~std::size_t{0}}) {
    EXPECT_THROW(memory::allocate(bytes), Error) << bytes;
  }
  EXPECT_EQ(memory::stats().in_use, before.in_use);
  drop(make(1 << 20));
  drop(make(64));
  EXPECT_EQ(memory::stats().in_use, before.in_use);
}

TEST(Memory, AThreadThatOnlyFreesDoesNotHoard) {
  const auto before = memory::stats();
  constexpr int rounds = 20000, window = 100;
  for (std::size_t size : {std::size_t{64}, std::size_t{1000}, std::size_t{20000}}) {
    Channel there, back;
    std::thread consumer([&] {
      for (int i = 0; i < rounds; ++i) {
        drop(there.take());
        if (i % window == window - 1) back.put({});
      }
    });
    for (int i = 0; i < rounds; ++i) {
      there.put(make(size));
      if (i % window == window - 1) back.take();
    }
    consumer.join();
  }
  // All sent would be 420 MB: a window, some lists and a slab are in flight at a time.
  EXPECT_LT(memory::stats().reserved - before.reserved, 8 << 20);
  EXPECT_EQ(memory::stats().in_use, before.in_use);
}

TEST(Memory, AThreadThatEndsLeavesItsBlocks) {
  const auto before = memory::stats();
  std::vector<Block> left;
  std::thread([&] {
    std::vector<Block> blocks;
    for (int i = 0; i < 500; ++i) blocks.push_back(make(192));
    for (int i = 0; i < 500; ++i) (i % 2 ? left : blocks).push_back(blocks[std::size_t(i)]);
    for (std::size_t i = 500; i < blocks.size(); ++i) drop(blocks[i]);
  }).join();
  EXPECT_EQ(memory::stats().in_use - before.in_use, 250 * 192);
  const auto requests = memory::stats().system_requests;
  for (int i = 0; i < 250; ++i) left.push_back(make(192));
  if (caching()) {
    EXPECT_EQ(memory::stats().system_requests, requests);
  }
  for (const Block& b : left) drop(b);
  EXPECT_EQ(memory::stats().in_use, before.in_use);
}

namespace {
struct FreesLate {
  Block block{};
  ~FreesLate() {
    if (!block.first) return;
    drop(block);
    drop(make(64));
  }
};
thread_local FreesLate frees_late;
}  // namespace

TEST(Memory, MayBeUsedWhileAThreadEnds) {
  const auto before = memory::stats();
  std::thread([] {
    frees_late = {};  // made before the thread's lists, so destroyed after them
    frees_late.block = make(64);
  }).join();
  EXPECT_EQ(memory::stats().in_use, before.in_use);
}

TEST(Memory, ThreadsTradeBlocksFreely) {
  const auto before = memory::stats();
  constexpr int threads = 4;
  std::mutex mutex;
  std::vector<Block> pool;
  std::vector<std::thread> workers;
  std::atomic<int> clashes{0};
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      std::mt19937 random{unsigned(t)};
      for (int i = 0; i < 5000; ++i) {
        Block b{};
        if (random() % 2) {
          const std::lock_guard lock(mutex);
          if (!pool.empty()) {
            const std::size_t at = random() % pool.size();
            std::swap(pool[at], pool.back());
            b = pool.back();
            pool.pop_back();
          }
        }
        if (b.first) {
          const auto* p = static_cast<unsigned char*>(b.first);
          clashes += p[0] != (b.second & 255) || p[b.second - 1] != (b.second & 255);
          drop(b);
        } else {
          b = make(1 + random() % (random() % 8 ? 600 : 30000));
          std::memset(b.first, int(b.second & 255), b.second);
          const std::lock_guard lock(mutex);
          pool.push_back(b);
        }
        if (i % 500 == 0) memory::stats();
        if (i % 1000 == 0) memory::empty_cache();
      }
    });
  }
  for (auto& w : workers) w.join();
  EXPECT_EQ(clashes, 0);
  for (const Block& b : pool) drop(b);
  EXPECT_EQ(memory::stats().in_use, before.in_use);
}

TEST(Memory, AForkedChildGoesOn) {
  drop(make(64));
  std::promise<void> locked, seen;
  std::thread other([&] {
    drop(make(64));  // has lists of its own, which the child must forget
    {
      const std::lock_guard lock(state::process_lists.mutex);
      locked.set_value();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the fork falls into this
    }
    seen.get_future().wait();
  });
  locked.get_future().wait();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);  // a hang ends here
    drop(make(100000));
    memory::stats();
    const auto* mine = &state::thread_lists;
    const bool alone = !caching() || (state::process_lists.threads == mine && !mine->next && !mine->previous);
#if !defined(THREAD_SANITIZER)  // which allows no threads there
    std::thread([] { drop(make(64)); }).join();
    memory::stats();
#endif
    _exit(alone ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  seen.set_value();
  other.join();
}
