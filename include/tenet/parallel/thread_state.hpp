// What a worker thread takes over from the thread that it works for.
#pragma once

#include <tenet/autograd/grad_mode.hpp>
#include <tenet/ops/autocast.hpp>

namespace tenet::parallel {
inline namespace TENET_CONFIG {

/// Grad mode, anomaly mode and autocast of a thread.
struct ThreadState {
  bool grad_enabled = state::grad_enabled, detect_anomaly = state::detect_anomaly;
  const AutocastPolicy* autocast = state::autocast;
};

/// While it lives, this thread has the state of another.
class StateScope {
 public:
  explicit StateScope(const ThreadState& s) { set(s); }
  ~StateScope() { set(old_); }
  StateScope(const StateScope&) = delete;
  StateScope& operator=(const StateScope&) = delete;

 private:
  static void set(const ThreadState& s) {
    state::grad_enabled = s.grad_enabled;
    state::detect_anomaly = s.detect_anomaly;
    state::autocast = s.autocast;
  }
  ThreadState old_;
};

}  // namespace TENET_CONFIG
}  // namespace tenet::parallel
