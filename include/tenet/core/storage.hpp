// The memory behind one or more tensors.
#pragma once

#include <tenet/core/counted.hpp>
#include <tenet/core/device.hpp>
#include <tenet/core/memory.hpp>

#include <cstddef>
#include <cstdint>
#include <new>

namespace tenet {

/// Header of a block of memory; the allocator's blocks hold header and data in one piece.
struct Storage {
  Count count;
  /// Grows with every change in place: a tensor kept for backward remembers the version it saw.
  std::uint32_t version = 0;
  /// Grows with changes in place that autograd recorded: they make the history of views stale.
  std::uint32_t recorded_changes = 0;
  Device device;
  bool borrowed = false;  // memory of somebody else's: never reused for an output
  std::size_t bytes;      // of the data
  void* data;
  void (*destroy_)(Storage*);
  // Of memory that is somebody else's:
  void (*deleter)(void* context) = nullptr;
  void* context = nullptr;

  TENET_TAG Storage(std::size_t size, void* memory, void (*destroy_function)(Storage*))
      : bytes(size), data(memory), destroy_(destroy_function) {}
  TENET_TAG void destroy() { destroy_(this); }
};

using StorageRef = Ref<Storage>;

inline namespace TENET_CONFIG {

namespace detail {
// The header fills whole cache lines, so that the data keep their alignment.
inline constexpr std::size_t storage_offset = (sizeof(Storage) + 63) / 64 * 64;
}  // namespace detail

/// Uninitialized memory of `bytes` bytes on the CPU; throws Error when there is none.
inline StorageRef make_storage(std::size_t bytes) {
  void* block = memory::allocate(bytes + detail::storage_offset);
  return StorageRef::adopt(new (block)
                               Storage(bytes, static_cast<char*>(block) + detail::storage_offset,
                                       [](Storage* s) { memory::deallocate(s, s->bytes + detail::storage_offset); }));
}

/// Memory that belongs to somebody else, who is told through `deleter(context)` when it is no longer used.
inline StorageRef borrow_storage(void* data, std::size_t bytes, void (*deleter)(void*), void* context) {
  void* block = memory::allocate(sizeof(Storage));
  auto* s = new (block) Storage(bytes, data, [](Storage* x) {
    if (x->deleter) x->deleter(x->context);
    memory::deallocate(x, sizeof(Storage));
  });
  s->borrowed = true;
  s->deleter = deleter;
  s->context = context;
  return StorageRef::adopt(s);
}

}  // namespace TENET_CONFIG
}  // namespace tenet
