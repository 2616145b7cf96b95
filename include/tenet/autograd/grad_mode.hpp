// Whether operations of this thread are recorded.
#pragma once

#include <tenet/core/config.hpp>

#include <utility>

namespace tenet {

namespace state {
inline constinit thread_local bool grad_enabled = true;  // a new thread starts with recording on
inline constinit thread_local bool detect_anomaly = false;
}  // namespace state

inline namespace TENET_CONFIG {

/// Whether operations of this thread are recorded for backward().
inline bool is_grad_enabled() { return state::grad_enabled; }

/// Switches recording on or off while it lives; of this thread only.
class set_grad_enabled {
 public:
  explicit set_grad_enabled(bool on) : old_(std::exchange(state::grad_enabled, on)) {}
  ~set_grad_enabled() { state::grad_enabled = old_; }
  set_grad_enabled(const set_grad_enabled&) = delete;
  set_grad_enabled& operator=(const set_grad_enabled&) = delete;

 private:
  bool old_;
};

/// While it lives, nothing this thread does is recorded: `{ no_grad guard; y = model(x); }`
class no_grad : set_grad_enabled {
 public:
  no_grad() : set_grad_enabled(false) {}
};

/// Records again inside a no_grad scope.
class enable_grad : set_grad_enabled {
 public:
  enable_grad() : set_grad_enabled(true) {}
};

}  // namespace TENET_CONFIG

namespace autograd {
inline namespace TENET_CONFIG {

/// While it lives, backward() of this thread checks every gradient and throws Error naming the first
/// operation whose gradient holds a NaN.
class detect_anomaly {
 public:
  explicit detect_anomaly(bool on = true) : old_(std::exchange(state::detect_anomaly, on)) {}
  ~detect_anomaly() { state::detect_anomaly = old_; }
  detect_anomaly(const detect_anomaly&) = delete;
  detect_anomaly& operator=(const detect_anomaly&) = delete;

 private:
  bool old_;
};

}  // namespace TENET_CONFIG
}  // namespace autograd
}  // namespace tenet
