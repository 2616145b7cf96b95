// The ways to show ratios: as text, as JSON, as a picture.
#pragma once

#include "measure.hpp"

#include <string>
#include <vector>

namespace bench {

struct Row {
  Work work;
  std::string peer;
  Measured measured;
};

void print_head(const std::vector<std::string>& environment);
void print_row(const Row& row);
/// The geometric mean and the least ratio of each group of rows of one peer.
void print_summary(const std::vector<Row>& rows);

/// {"name": ..., "unit": ..., "tenet": ..., "peer": ..., "peer_name": ..., "ratio": ...}
void print_json(const Row& row);

/// A bar chart of the ratios on a logarithmic axis. Throws std::runtime_error if the file cannot be written.
void write_svg(const std::string& path, const std::vector<Row>& rows, const std::vector<std::string>& environment);

}  // namespace bench
