// What joins the files of bench_compare: each library lists the cases it knows, and cases of one name are one work.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace bench {

/// Runs prepared work once and returns one number of its result: it proves that the result was read, and that two
/// libraries did the same.
using Run = std::function<double()>;

/// A piece of work, whoever does it.
struct Work {
  std::string name;         ///< "gemm/f32/64x500x800"
  std::string unit;         ///< "GFLOP/s", "images/s": amount a second; "us": microseconds for one of the amount
  double amount = 1;        ///< what one run does, in the unit's measure
  double tolerance = 1e-3;  ///< by how much results may differ, relative to 1 + their size
};

/// A piece of work as one library does it. `prepare` makes the operands, with the numbers of fill().
struct Case {
  Work work;
  std::function<Run()> prepare;
};

/// A library that takes part.
struct Library {
  std::string name;  ///< "tenet", "libtorch"
  std::string description;
  void (*set_threads)(int);
  std::vector<Case> cases;
};

/// The libraries that are built in. A file adds its own before main() by `const bool added = add_library(...)`.
std::vector<Library>& libraries();
bool add_library(Library library);

}  // namespace bench
