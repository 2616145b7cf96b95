// Modules, layers, losses and initialization.
#pragma once

#include <tenet/nn/activation.hpp>
#include <tenet/nn/attention.hpp>
#include <tenet/nn/container.hpp>
#include <tenet/nn/conv.hpp>
#include <tenet/nn/dropout.hpp>
#include <tenet/nn/embedding.hpp>
#include <tenet/nn/flatten.hpp>
#include <tenet/nn/init.hpp>
#include <tenet/nn/linear.hpp>
#include <tenet/nn/lora.hpp>
#include <tenet/nn/loss.hpp>
#include <tenet/nn/module.hpp>
#include <tenet/nn/norm.hpp>
#include <tenet/nn/parameter.hpp>
#include <tenet/nn/pooling.hpp>
#include <tenet/nn/state_dict.hpp>
#include <tenet/nn/summary.hpp>
#include <tenet/nn/weight.hpp>
