// Everything of data/ that needs no library but Eigen: data sets, the loader, IDX files.
// Files compressed with gzip, and MNIST, are tenet/data/gzip.hpp and tenet/data/mnist.hpp.
#pragma once

#include <tenet/data/collate.hpp>
#include <tenet/data/data_loader.hpp>
#include <tenet/data/dataset.hpp>
#include <tenet/data/file.hpp>
#include <tenet/data/idx.hpp>
#include <tenet/data/prefetch.hpp>
#include <tenet/data/sampler.hpp>
