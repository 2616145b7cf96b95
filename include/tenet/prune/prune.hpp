// Pruning, and other ways to make a trained model smaller.
#pragma once

#include <tenet/prune/formats.hpp>
#include <tenet/prune/low_rank.hpp>
#include <tenet/prune/mask.hpp>
#include <tenet/prune/methods.hpp>
#include <tenet/prune/schedule.hpp>
#include <tenet/prune/shrink.hpp>
#include <tenet/prune/sparse.hpp>
