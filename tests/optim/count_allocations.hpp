// Counts what the process asks of malloc, by taking its place; include it once in a program. Operator new ends here
// too. Not under sanitizers, which take malloc's place themselves.
#pragma once

#include <tenet/core/memory.hpp>

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace tenet::test {

#if defined(__GLIBC__) && !TENET_SANITIZED
inline constexpr bool counts_allocations = true;
#else
inline constexpr bool counts_allocations = false;
#endif

inline constinit std::atomic<std::int64_t> allocations{0};

/// Counts from its construction on, in all threads.
class AllocationCount {
 public:
  std::int64_t stop() const { return allocations.load() - before_; }

 private:
  std::int64_t before_ = allocations.load();
};

}  // namespace tenet::test

#if defined(__GLIBC__) && !TENET_SANITIZED
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) noexcept {
  ++tenet::test::allocations;
  return __libc_malloc(size);
}
void* calloc(std::size_t n, std::size_t size) noexcept {
  ++tenet::test::allocations;
  return __libc_calloc(n, size);
}
void* realloc(void* p, std::size_t size) noexcept {
  ++tenet::test::allocations;
  return __libc_realloc(p, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  ++tenet::test::allocations;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** p, std::size_t alignment, std::size_t size) noexcept {
  ++tenet::test::allocations;
  *p = __libc_memalign(alignment, size);
  return *p ? 0 : ENOMEM;
}
}
#endif
