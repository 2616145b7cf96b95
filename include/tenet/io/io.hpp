// Everything of io/ that needs no library but Eigen. Checkpoints are tenet/io/safetensors.hpp and
// tenet/io/checkpoint.hpp.
#pragma once

#include <tenet/io/atomic_file.hpp>
#include <tenet/io/mapped_file.hpp>
