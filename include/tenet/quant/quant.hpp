// Quantization: integers in place of float, for weights and for arithmetic.
#pragma once

#include <tenet/quant/affine.hpp>
#include <tenet/quant/dynamic.hpp>
#include <tenet/quant/formats.hpp>
#include <tenet/quant/int8.hpp>
#include <tenet/quant/layers.hpp>
#include <tenet/quant/linear_shape.hpp>
