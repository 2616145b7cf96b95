// Scratch memory of the kernels: a few buffers a thread, which grow and are kept, so that steady work asks the system
// for nothing.
#pragma once

#include <tenet/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

/// Who uses a buffer. Kernels that are active at the same time in one thread need different ones.
enum class Scratch {
  gemm_panels,
  gemm_sums,
  conv_weights,
  conv_turned,
  conv_images,
  conv_sums,
  conv_tables,
  conv_offsets,
  conv_widened,
  conv_bias,
  linear_weight,
  count
};

}  // namespace cpu
}  // namespace TENET_CONFIG

namespace state {
struct ScratchBuffer {
  void* data;
  std::size_t bytes;
};
inline constinit thread_local ScratchBuffer scratch[16] = {};
}  // namespace state

inline namespace TENET_CONFIG {
namespace cpu {
static_assert(int(Scratch::count) <= 16);

namespace detail {

TENET_COLD inline void* grow_scratch(state::ScratchBuffer& buffer, std::size_t bytes) {
  struct FreeAtThreadExit {
    ~FreeAtThreadExit() {
      for (state::ScratchBuffer& b : state::scratch) {
        std::free(b.data);
        b = {};
      }
    }
  };
  static thread_local FreeAtThreadExit guard;
  std::free(buffer.data);
  buffer = {};
  const std::size_t size = (bytes / 4096 + 1) * 4096;
  buffer.data = std::aligned_alloc(64, size);
  if (!buffer.data) throw std::bad_alloc();
  buffer.bytes = size;
  return buffer.data;
}

}  // namespace detail

/// Memory for `count` elements, 64-byte aligned, of any content; valid until this thread asks for this buffer again.
/// Throws std::bad_alloc.
template <class T>
T* scratch(Scratch which, int64_t count) {
  state::ScratchBuffer& buffer = state::scratch[int(which)];
  const std::size_t bytes = std::size_t(count) * sizeof(T);
  return static_cast<T*>(bytes <= buffer.bytes && buffer.data ? buffer.data : detail::grow_scratch(buffer, bytes));
}

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
