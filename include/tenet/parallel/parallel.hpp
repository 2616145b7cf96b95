// Many workers on one model.
#pragma once

#include <tenet/parallel/agreement.hpp>
#include <tenet/parallel/communicator.hpp>
#include <tenet/parallel/data_parallel.hpp>
#include <tenet/parallel/distributed.hpp>
#include <tenet/parallel/fully_sharded.hpp>
#include <tenet/parallel/packing.hpp>
#include <tenet/parallel/pass.hpp>
#include <tenet/parallel/reducer.hpp>
#include <tenet/parallel/shard.hpp>
#include <tenet/parallel/thread_state.hpp>
#include <tenet/parallel/threads.hpp>
#include <tenet/parallel/units.hpp>
#include <tenet/parallel/workers.hpp>
