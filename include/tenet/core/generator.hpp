// Random numbers by counting: a number is a function of (seed, position), so that any thread can compute
// any of them and the result does not depend on how work is spread.
#pragma once

#include <tenet/core/error.hpp>

#include <cstdint>
#include <mutex>
#include <utility>

namespace tenet {

/// Four random words of 32 bits: what one step of Philox gives.
struct RandomBlock {
  std::uint32_t word[4];

  TENET_TAG std::uint64_t word64(int i) const { return word[2 * i] | std::uint64_t(word[2 * i + 1]) << 32; }
};

/// Where a stream of random blocks stands: enough to go on from a checkpoint.
struct GeneratorState {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;  // in blocks

  TENET_TAG friend bool operator==(const GeneratorState&, const GeneratorState&) = default;
};

/// A stream of random blocks. Threads may share one: each call takes a range of the stream for itself.
class Generator {
 public:
  static constexpr std::uint64_t default_seed = 67280421310721;  // of torch.Generator

  TENET_TAG constexpr Generator() = default;
  TENET_TAG explicit Generator(std::uint64_t seed) : state_{seed, 0} {}

  /// Starts the stream of `seed` from its beginning.
  TENET_TAG void manual_seed(std::uint64_t seed) { set_state({seed, 0}); }
  TENET_TAG std::uint64_t seed() const { return state().seed; }

  TENET_TAG GeneratorState state() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }
  TENET_TAG void set_state(const GeneratorState& state) {
    const std::lock_guard lock(mutex_);
    state_ = state;
  }

  /// Takes the next `blocks` blocks for the caller: [offset, offset + blocks) of the state returned.
  TENET_TAG GeneratorState reserve(std::uint64_t blocks) {
    const std::lock_guard lock(mutex_);
    const GeneratorState taken = state_;
    state_.offset += blocks;
    return taken;
  }

 private:
  mutable std::mutex mutex_;
  GeneratorState state_{default_seed, 0};
};

namespace state {
inline constinit Generator generator;
inline constinit thread_local Generator* own_generator = nullptr;  // of a thread that has its own
}  // namespace state

inline namespace TENET_CONFIG {

/// Philox4x32-10: the N blocks from a 128-bit counter on, under a 64-bit key (Salmon et al., Parallel random
/// numbers: as easy as 1, 2, 3, SC 2011). They are computed side by side, since each alone is a chain of
/// dependent products.
template <int N>
void philox(std::uint64_t key, std::uint64_t counter, std::uint64_t counter_high, RandomBlock (&out)[N]) {
  std::uint32_t c0[N], c1[N], c2[N], c3[N];
  for (int n = 0; n < N; ++n) {
    c0[n] = std::uint32_t(counter + std::uint64_t(n));
    c1[n] = std::uint32_t((counter + std::uint64_t(n)) >> 32);
    c2[n] = std::uint32_t(counter_high);
    c3[n] = std::uint32_t(counter_high >> 32);
  }
  std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int n = 0; n < N; ++n) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * c0[n], b = std::uint64_t{0xCD9E8D57} * c2[n];
      c0[n] = std::uint32_t(b >> 32) ^ c1[n] ^ k0;
      c1[n] = std::uint32_t(b);
      c2[n] = std::uint32_t(a >> 32) ^ c3[n] ^ k1;
      c3[n] = std::uint32_t(a);
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  for (int n = 0; n < N; ++n) out[n] = {{c0[n], c1[n], c2[n], c3[n]}};
}
inline RandomBlock philox(std::uint64_t key, std::uint64_t counter, std::uint64_t counter_high = 0) {
  RandomBlock block[1];
  philox(key, counter, counter_high, block);
  return block[0];
}

/// The generator of every function that is not given another one. Its seed is the same in each run unless
/// manual_seed() changes it. When several threads draw from it, their order decides what each one gets.
inline Generator& default_generator() { return state::own_generator ? *state::own_generator : state::generator; }

/// While it lives, `generator` is the default generator of this thread alone.
class GeneratorScope {
 public:
  explicit GeneratorScope(Generator& generator) : old_(std::exchange(state::own_generator, &generator)) {}
  ~GeneratorScope() { state::own_generator = old_; }
  GeneratorScope(const GeneratorScope&) = delete;
  GeneratorScope& operator=(const GeneratorScope&) = delete;

 private:
  Generator* old_;
};

/// Starts the default generator anew.
inline void manual_seed(std::uint64_t seed) { default_generator().manual_seed(seed); }

}  // namespace TENET_CONFIG
}  // namespace tenet
