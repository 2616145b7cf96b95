// Automatic differentiation: the graph, backward(), gradient checks.
#pragma once

#include <tenet/autograd/backward.hpp>
#include <tenet/autograd/engine.hpp>
#include <tenet/autograd/grad.hpp>
#include <tenet/autograd/grad_mode.hpp>
#include <tenet/autograd/gradcheck.hpp>
#include <tenet/autograd/hooks.hpp>
#include <tenet/autograd/node.hpp>
