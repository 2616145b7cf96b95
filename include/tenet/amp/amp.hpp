// Mixed precision: autocast and the scaling of gradients.
#pragma once

#include <tenet/amp/autocast.hpp>
#include <tenet/amp/grad_scaler.hpp>
