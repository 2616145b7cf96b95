// The caching allocator of tensors, their headers and graph nodes.
//
// Blocks are 64-byte aligned whatever the compile flags. Small ones (to 4 KiB, classes of 64 bytes) come
// from free lists of the thread, which trade batches with the process's lists, so that a thread that only
// frees does not hoard. Larger ones come from one list a size class (four classes a power of two) under a
// lock. In steady state nothing is asked of the system.
#pragma once

#include <tenet/core/error.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <type_traits>

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif
#include <pthread.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TENET_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TENET_SANITIZED 1
#endif
#endif
#ifndef TENET_SANITIZED
#define TENET_SANITIZED 0
#endif

namespace tenet {

namespace memory {
/// What the allocator holds, in bytes, and how often it asked the system.
struct Stats {
  std::int64_t reserved = 0;         ///< held from the system
  std::int64_t cached = 0;           ///< of it, free and waiting to be used again
  std::int64_t in_use = 0;           ///< of it, in tensors and graphs: reserved - cached
  std::int64_t peak_reserved = 0;    ///< the most `reserved` has been
  std::int64_t system_requests = 0;  ///< allocations asked of the system so far
};
}  // namespace memory

namespace state {

struct FreeBlock {
  FreeBlock* next;
};

inline constexpr int small_classes = 64;   // of 64 bytes each
inline constexpr int large_classes = 208;  // four a power of two, from 4 KiB to 2^64
inline constexpr int batch_blocks = 64;    // what a thread and the process trade at a time

/// The free lists of one thread. Trivially destructible and constant-initialized: reached without a guard.
struct ThreadLists {
  FreeBlock* head[small_classes + 1];
  std::uint32_t count[small_classes + 1];
  std::atomic<std::int64_t> cached;  // written by its thread alone, read by stats()
  ThreadLists *previous, *next;      // all threads' lists, for stats()
  bool registered, closed;
};
inline constinit thread_local ThreadLists thread_lists{};

struct ProcessLists {
  std::mutex mutex;
  FreeBlock* small[small_classes + 1] = {};
  FreeBlock* large[large_classes] = {};
  std::int64_t cached = 0;  // in the two above
  std::int64_t cached_large = 0;
  std::int64_t peak_in_use = 0;  // as large blocks saw it
  std::int64_t reserved = 0, peak_reserved = 0, system_requests = 0;
  ThreadLists* threads = nullptr;
  bool caching = !TENET_SANITIZED;  // off, every block is the system's: sanitizers see each one
  bool survives_fork = false;
};
inline constinit ProcessLists process_lists{};
// Tensors of static lifetime may be freed after everything else that is static.
static_assert(std::is_trivially_destructible_v<ProcessLists>);

}  // namespace state

namespace memory {
inline namespace TENET_CONFIG {

using state::FreeBlock;

namespace detail {

inline constexpr std::size_t alignment = 64;
inline constexpr std::size_t small_limit = std::size_t(state::small_classes) * 64;
inline constexpr std::size_t slab_bytes = std::size_t(1) << 16;

inline int small_class(std::size_t bytes) { return bytes ? int((bytes + 63) / 64) : 1; }

/// Class of a large block and its rounded size: at most a quarter is lost.
inline int large_class(std::size_t bytes, std::size_t& rounded) {
  const int power = int(std::bit_width(bytes - 1)) - 1;  // 2^power < bytes <= 2^(power + 1)
  const std::size_t step = std::size_t(1) << (power - 2);
  rounded = (bytes + step - 1) & ~(step - 1);
  return (power - 11) * 4 + int((rounded - (std::size_t(1) << power)) / step) - 1;
}

[[noreturn]] TENET_COLD inline void out_of_memory(std::size_t bytes) {
  throw Error(text({"memory: the system has no ", bytes, " bytes"}));
}

/// Gives every cached large block back; the caller holds the lock.
inline void release_large(state::ProcessLists& all) {
  for (int c = 0; c < state::large_classes; ++c) {
    const int power = c / 4 + 11;
    const std::size_t size = (std::size_t(1) << power) + std::size_t(c % 4 + 1) * (std::size_t(1) << (power - 2));
    while (FreeBlock* b = all.large[c]) {
      all.large[c] = b->next;
      all.cached -= std::int64_t(size);
      all.cached_large -= std::int64_t(size);
      all.reserved -= std::int64_t(size);
      std::free(b);
    }
  }
}

/// The child of a fork() gets the lock in peace, and forgets the lists of threads that it does not have.
TENET_COLD inline void survive_fork(state::ProcessLists& all) {
  all.survives_fork = true;
#if defined(__GLIBC__) && __GLIBC__ == 2 && __GLIBC_MINOR__ < 34
#pragma weak pthread_atfork  // there with -pthread only; where it always is, a weak one would lack in static programs
  if (!pthread_atfork) return;
#endif
  pthread_atfork([] { state::process_lists.mutex.lock(); }, [] { state::process_lists.mutex.unlock(); },
                 [] {
                   auto& mine = state::thread_lists;
                   mine.previous = mine.next = nullptr;
                   state::process_lists.threads = mine.registered && !mine.closed ? &mine : nullptr;
                   state::process_lists.mutex.unlock();
                 });
}

/// Memory of the system, or null. Large blocks ask for huge pages: long rows and far apart ones cost fewer searches for
/// their pages, and new memory fewer faults.
inline void* allocate_aligned(std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::size_t huge_page = std::size_t(1) << 21;
  if (bytes >= huge_page) {
    void* p = nullptr;  // aligned_alloc would want whole pages
    if (::posix_memalign(&p, huge_page, bytes) != 0) return nullptr;
    ::madvise(p, bytes, MADV_HUGEPAGE);  // a wish only
    return p;
  }
#endif
  return std::aligned_alloc(alignment, bytes);
}

/// Asks the system; the caller holds the lock.
inline void* request(state::ProcessLists& all, std::size_t bytes) {
  if (!all.survives_fork) survive_fork(all);
  void* p = allocate_aligned(bytes);
  if (!p) {
    release_large(all);
    p = allocate_aligned(bytes);
    if (!p) out_of_memory(bytes);
  }
  ++all.system_requests;
  all.reserved += std::int64_t(bytes);
  if (all.reserved > all.peak_reserved) all.peak_reserved = all.reserved;
  return p;
}

inline void count_cached(state::ThreadLists& mine, std::int64_t bytes) {
  mine.cached.store(mine.cached.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
}

/// Moves up to `blocks` blocks of class `c` to the process's list; the caller holds the lock.
inline void give(state::ThreadLists& mine, state::ProcessLists& all, int c, std::uint32_t blocks) {
  for (; blocks && mine.head[c]; --blocks) {
    FreeBlock* b = mine.head[c];
    mine.head[c] = b->next;
    b->next = all.small[c];
    all.small[c] = b;
    --mine.count[c];
    count_cached(mine, -c * 64);
    all.cached += c * 64;
  }
}

/// When a thread ends, its blocks become the process's.
struct ThreadExit {
  ~ThreadExit() {
    auto& mine = state::thread_lists;
    auto& all = state::process_lists;
    const std::lock_guard lock(all.mutex);
    for (int c = 1; c <= state::small_classes; ++c) give(mine, all, c, mine.count[c]);
    (mine.previous ? mine.previous->next : all.threads) = mine.next;
    if (mine.next) mine.next->previous = mine.previous;
    mine.closed = true;
  }
};

TENET_COLD inline void enroll(state::ThreadLists& mine, state::ProcessLists& all) {
  static thread_local ThreadExit at_exit;
  (void)at_exit;
  mine.registered = true;
  mine.next = all.threads;
  if (all.threads) all.threads->previous = &mine;
  all.threads = &mine;
}

/// Fills the thread's list of class `c` from the process's list or a new slab; returns one block.
TENET_COLD inline void* refill(int c) {
  auto& mine = state::thread_lists;
  auto& all = state::process_lists;
  const std::size_t size = std::size_t(c) * 64;
  const std::lock_guard lock(all.mutex);
  if (!all.caching) return request(all, size);
  if (!all.small[c]) {
    const std::size_t bytes = slab_bytes / size * size;
    auto* slab = static_cast<char*>(request(all, bytes));
    for (std::size_t at = 0; at < bytes; at += size) {
      auto* b = reinterpret_cast<FreeBlock*>(slab + at);
      b->next = all.small[c];
      all.small[c] = b;
      all.cached += std::int64_t(size);
    }
  }
  FreeBlock* first = all.small[c];
  all.small[c] = first->next;
  all.cached -= std::int64_t(size);
  if (mine.closed) return first;
  if (!mine.registered) enroll(mine, all);
  for (int i = 1; i < state::batch_blocks && all.small[c]; ++i) {
    FreeBlock* b = all.small[c];
    all.small[c] = b->next;
    b->next = mine.head[c];
    mine.head[c] = b;
    ++mine.count[c];
    all.cached -= std::int64_t(size);
    count_cached(mine, std::int64_t(size));
  }
  return first;
}

/// A full list, a thread that is ending or has not allocated yet, or no caching.
TENET_COLD inline void put_slow(void* p, int c) {
  auto& mine = state::thread_lists;
  auto& all = state::process_lists;
  const std::lock_guard lock(all.mutex);
  if (!all.caching) {
    all.reserved -= c * 64;
    return std::free(p);
  }
  auto* b = static_cast<FreeBlock*>(p);
  if (mine.closed) {
    b->next = all.small[c];
    all.small[c] = b;
    all.cached += c * 64;
    return;
  }
  if (!mine.registered) enroll(mine, all);
  give(mine, all, c, state::batch_blocks);
  b->next = mine.head[c];
  mine.head[c] = b;
  ++mine.count[c];
  count_cached(mine, c * 64);
}

TENET_NOINLINE inline void* get_large(std::size_t bytes) {
  if (bytes > (std::size_t(1) << 62)) out_of_memory(bytes);
  std::size_t size = 0;
  const int c = large_class(bytes, size);
  auto& all = state::process_lists;
  const std::lock_guard lock(all.mutex);
  void* p = all.large[c];
  if (p) {
    all.large[c] = all.large[c]->next;
    all.cached -= std::int64_t(size);
    all.cached_large -= std::int64_t(size);
  } else {
    // Sizes that changed for good must not pile up: what waits may not outgrow what was ever used at once.
    if (all.cached_large > all.peak_in_use + (std::int64_t(64) << 20)) release_large(all);
    p = request(all, size);
  }
  const std::int64_t in_use = all.reserved - all.cached;
  if (in_use > all.peak_in_use) all.peak_in_use = in_use;
  return p;
}

TENET_NOINLINE inline void put_large(void* p, std::size_t bytes) {
  std::size_t size = 0;
  const int c = large_class(bytes, size);
  auto& all = state::process_lists;
  const std::lock_guard lock(all.mutex);
  if (!all.caching) {
    all.reserved -= std::int64_t(size);
    return std::free(p);
  }
  auto* b = static_cast<FreeBlock*>(p);
  b->next = all.large[c];
  all.large[c] = b;
  all.cached += std::int64_t(size);
  all.cached_large += std::int64_t(size);
}

}  // namespace detail

/// A 64-byte aligned block of at least `bytes` bytes; throws Error when the system has none.
inline void* allocate(std::size_t bytes) {
  if (bytes > detail::small_limit) return detail::get_large(bytes);
  const int c = detail::small_class(bytes);
  auto& mine = state::thread_lists;
  FreeBlock* b = mine.head[c];
  if (!b) [[unlikely]]
    return detail::refill(c);
  mine.head[c] = b->next;
  --mine.count[c];
  detail::count_cached(mine, -c * 64);
  return b;
}

/// Gives back what allocate(bytes) returned, from any thread.
inline void deallocate(void* p, std::size_t bytes) {
  if (bytes > detail::small_limit) return detail::put_large(p, bytes);
  const int c = detail::small_class(bytes);
  auto& mine = state::thread_lists;
  if (!mine.registered || mine.closed || mine.count[c] >= 2 * state::batch_blocks) [[unlikely]]
    return detail::put_slow(p, c);
  auto* b = static_cast<FreeBlock*>(p);
  b->next = mine.head[c];
  mine.head[c] = b;
  ++mine.count[c];
  detail::count_cached(mine, c * 64);
}

/// What the allocator holds now. Counts of other running threads may be a moment old.
inline Stats stats() {
  auto& all = state::process_lists;
  const std::lock_guard lock(all.mutex);
  Stats s;
  s.reserved = all.reserved;
  s.cached = all.cached;
  for (auto* t = all.threads; t; t = t->next) s.cached += t->cached.load(std::memory_order_relaxed);
  s.in_use = s.reserved - s.cached;
  s.peak_reserved = all.peak_reserved;
  s.system_requests = all.system_requests;
  return s;
}

/// Gives cached blocks above 4 KiB back to the system.
inline void empty_cache() {
  auto& all = state::process_lists;
  const std::lock_guard lock(all.mutex);
  detail::release_large(all);
}

}  // namespace TENET_CONFIG
}  // namespace memory
}  // namespace tenet
