// The surroundings of a measurement: set alike for all libraries, and told.
#pragma once

#include <string>
#include <vector>

namespace bench {

/// Starts the program anew if variables that are read at a program's start are missing from its environment: the
/// number of threads; for libtorch, that freed memory stays with the process, and that Debian's OpenBLAS, which takes
/// newer processors for a Haswell, uses AVX-512 where the machine has it. What the user has set of the latter stays.
void prepare_environment(char** argv, int threads);

/// Keeps a program of one thread on the processor it is on.
void pin();

/// What a reader of figures needs to know, one thing a line.
std::vector<std::string> describe_environment(int threads);

}  // namespace bench
