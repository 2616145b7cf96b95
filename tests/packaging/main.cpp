// The program that each consumer project builds.
#include <tenet/core/parallel.hpp>
#include <tenet/version.hpp>

#include <cstdio>

int main() {
  std::printf("tenet %d.%d, %d threads\n", TENET_VERSION_MAJOR, TENET_VERSION_MINOR, tenet::num_threads());
  return 0;
}
