#!/bin/sh
# quickstart.sh train: builds LeNet and trains it on the bundled digits.
# quickstart.sh test:  builds the tests and runs them.
# On a fresh Debian or Ubuntu machine it first installs the packages named below.
set -eu
cd "$(dirname "$0")/.."

packages="g++ make cmake pkg-config libeigen3-dev zlib1g-dev nlohmann-json3-dev libcli11-dev libgtest-dev"
if ! dpkg -s $packages >/dev/null 2>&1; then
  sudo=$([ "$(id -u)" = 0 ] || echo sudo)
  $sudo apt-get update
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages
fi

case ${1-} in
  train)
    cmake --preset release -DTENET_BUILD_TESTS=OFF -DTENET_BUILD_BENCHMARKS=OFF
    cmake --build --preset release -j "$(nproc)" --target example_mnist
    build/examples/mnist
    ;;
  test)
    cmake --preset release -DTENET_BUILD_TESTS=ON -DTENET_BUILD_BENCHMARKS=OFF
    cmake --build --preset release -j "$(nproc)"
    ctest --preset release -j "$(nproc)"
    ;;
  *)
    echo "usage: cmake/quickstart.sh train|test" >&2
    exit 2
    ;;
esac
