// Everything of core/: tensors, their elements and memory, random numbers, printing, parallel_for.
#pragma once

#include <tenet/core/config.hpp>
#include <tenet/core/counted.hpp>
#include <tenet/core/device.hpp>
#include <tenet/core/dtype.hpp>
#include <tenet/core/eigen.hpp>
#include <tenet/core/error.hpp>
#include <tenet/core/factories.hpp>
#include <tenet/core/format.hpp>
#include <tenet/core/generator.hpp>
#include <tenet/core/hash.hpp>
#include <tenet/core/memory.hpp>
#include <tenet/core/parallel.hpp>
#include <tenet/core/random.hpp>
#include <tenet/core/shape.hpp>
#include <tenet/core/storage.hpp>
#include <tenet/core/tensor.hpp>
#include <tenet/core/tensor_impl.hpp>
