// Quantization: integers in place of float, for weights and for arithmetic.
#pragma once

#include <tenet/quant/affine.hpp>
