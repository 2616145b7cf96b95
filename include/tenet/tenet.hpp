// The whole of tenet that needs nothing but Eigen: no library to link. Readers of compressed data and checkpoints
// are headers of their own (data/gzip.hpp, io/checkpoint.hpp).
#pragma once

#include <tenet/amp/amp.hpp>
#include <tenet/autograd/autograd.hpp>
#include <tenet/core/core.hpp>
#include <tenet/data/data.hpp>
#include <tenet/io/io.hpp>
#include <tenet/nn/nn.hpp>
#include <tenet/ops/ops.hpp>
#include <tenet/optim/optim.hpp>
#include <tenet/parallel/parallel.hpp>
#include <tenet/prune/prune.hpp>
#include <tenet/quant/quant.hpp>
#include <tenet/version.hpp>
