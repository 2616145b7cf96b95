// What several tests of autograd need.
#pragma once

#include <gtest/gtest.h>
#include <tenet/core/core.hpp>

#include <pthread.h>

#include <limits>
#include <string>
#include <vector>

namespace tenet::test {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double inf = std::numeric_limits<double>::infinity();

template <class T>
std::vector<T> values(const Tensor<T>& x) {
  return x.to_vector();
}

/// A leaf that collects gradients.
inline Tensor<double> leaf(const std::vector<double>& v) { return from_vector(v).requires_grad_(); }
inline Tensor<double> leaf(double v) { return scalar(v).requires_grad_(); }

/// Runs `f` in a thread with a stack of 512 KiB.
template <class F>
void on_small_stack(F f) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 512 * 1024), 0);
  pthread_t thread;
  const auto run = [](void* p) -> void* {
    (*static_cast<F*>(p))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &f), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

/// The text of the Error that `f` throws; empty if it throws none.
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

/// Expects that `f` throws an Error whose text holds `words`.
template <class F>
void expect_error(F f, const std::string& words) {
  const std::string error = error_of(f);
  EXPECT_NE(error.find(words), std::string::npos) << "expected an error with '" << words << "', got '" << error << "'";
}

/// Expects that what `f` makes is gone afterwards; it runs once before, for whatever is made only once.
template <class F>
void expect_no_leak(F f) {
  f();
  const std::int64_t before = memory::stats().in_use;
  for (int i = 0; i < 10; ++i) f();
  EXPECT_EQ(memory::stats().in_use, before);
}

}  // namespace tenet::test
