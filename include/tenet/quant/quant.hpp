// Quantization: integers in place of float, for weights and for arithmetic.
#pragma once

#include <tenet/quant/compare.hpp>
#include <tenet/quant/dynamic.hpp>
#include <tenet/quant/fold.hpp>
#include <tenet/quant/formats.hpp>
#include <tenet/quant/qat.hpp>
#include <tenet/quant/static.hpp>
#include <tenet/quant/weights.hpp>
