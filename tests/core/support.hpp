// What several tests of core share.
#pragma once

#include <tenet/core/parallel.hpp>

#include <string>

/// The number of threads, for as long as it lives.
struct WithThreads {
  explicit WithThreads(int n) : old(tenet::num_threads()) { tenet::set_num_threads(n); }
  ~WithThreads() { tenet::set_num_threads(old); }
  int old;
};

/// The text of the E that `f()` throws.
template <class E, class F>
std::string message(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing thrown";
}
