// Optimizers, schedules and clipping.
#pragma once

#include <tenet/optim/adam.hpp>
#include <tenet/optim/clip.hpp>
#include <tenet/optim/schedule.hpp>
#include <tenet/optim/sgd.hpp>
