// Many workers on one model.
#pragma once

#include <tenet/parallel/agreement.hpp>
#include <tenet/parallel/attention.hpp>
#include <tenet/parallel/communicator.hpp>
#include <tenet/parallel/communicator_ref.hpp>
#include <tenet/parallel/cost_model.hpp>
#include <tenet/parallel/data_parallel.hpp>
#include <tenet/parallel/distributed.hpp>
#include <tenet/parallel/exchange.hpp>
#include <tenet/parallel/mesh.hpp>
#include <tenet/parallel/message.hpp>
#include <tenet/parallel/pass.hpp>
#include <tenet/parallel/pipeline.hpp>
#include <tenet/parallel/placed.hpp>
#include <tenet/parallel/reducer.hpp>
#include <tenet/parallel/shard.hpp>
#include <tenet/parallel/stages.hpp>
#include <tenet/parallel/sync_batch_norm.hpp>
#include <tenet/parallel/tensor_parallel.hpp>
#include <tenet/parallel/thread_group.hpp>
#include <tenet/parallel/thread_state.hpp>
#include <tenet/parallel/threads.hpp>
#include <tenet/parallel/transfer.hpp>
#include <tenet/parallel/workers.hpp>
