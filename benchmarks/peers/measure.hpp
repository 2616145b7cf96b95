// Times two libraries at one work, in turns.
#pragma once

#include "case.hpp"

namespace bench {

struct Measured {
  double tenet, peer;  ///< medians, in the unit of the work
  double ratio;        ///< the median over the pairs of how many times tenet is faster
};

/// Runs both until they are warm, then `pairs` times one after the other, the first one changing from pair to pair. A
/// sample repeats its run for some milliseconds. With one thread, time is what the process spent on the processor,
/// which other programs disturb less; else it is that of the clock. Throws std::runtime_error if the results of the
/// first runs differ.
Measured measure(const Work& work, const Run& tenet, const Run& peer, int pairs, int threads);

}  // namespace bench
