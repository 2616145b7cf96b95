// The heights of register tiles a machine has, and how to cut rows into them.
#pragma once

#include <tenet/core/config.hpp>

#include <cstdint>

namespace tenet {
inline namespace TENET_CONFIG {
namespace cpu {

struct TileHeights {
  static constexpr int most = 14;
  unsigned bits;  // bit (height - 1)

  /// The tallest tile of at most `rows` rows.
  std::int64_t fit(std::int64_t rows) const {
    std::int64_t height = rows < most ? rows : most;
    while ((bits >> (height - 1) & 1) == 0) --height;
    return height;
  }

  /// The height of the strips that `rows` rows are best cut into. A tile takes its height in time, but at least 4, and
  /// half a row to begin and to end.
  std::int64_t strip(std::int64_t rows) const {
    const auto time = [](std::int64_t height) { return 2 * (height < 4 ? 4 : height) + 1; };
    std::int64_t best = 1, best_cost = INT64_MAX;
    for (std::int64_t height = 1; height <= most && height <= rows; ++height) {
      if ((bits >> (height - 1) & 1) == 0) continue;
      std::int64_t cost = rows / height * time(height);
      for (std::int64_t rest = rows % height; rest > 0; rest -= fit(rest)) cost += time(fit(rest));
      if (cost <= best_cost) best = height, best_cost = cost;
    }
    return best;
  }
};

}  // namespace cpu
}  // namespace TENET_CONFIG
}  // namespace tenet
