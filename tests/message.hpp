// The texts of errors, for tests.
#pragma once

#include <gtest/gtest.h>
#include <tenet/core/error.hpp>

#include <string>

namespace tenet::test {

/// The text of the E that `f` throws; the test fails if it throws none.
template <class E = Error, class F>
std::string message(const F& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  ADD_FAILURE() << "expected an exception";
  return "";
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

}  // namespace tenet::test
