#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

namespace bench {

void print_head(const std::vector<std::string>& environment) {
  for (const std::string& line : environment) std::printf("%s\n", line.c_str());
  std::printf("\n%-43s %-9s %12s %12s  %-13s %s\n", "work", "unit", "tenet", "peer", "", "times faster");
}

void print_row(const Row& row) {
  std::printf("%-43s %-9s %12.5g %12.5g  %-13s %.3g\n", row.work.name.c_str(), row.work.unit.c_str(),
              row.measured.tenet, row.measured.peer, row.peer.c_str(), row.measured.ratio);
  std::fflush(stdout);
}

void print_summary(const std::vector<Row>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> groups;
  for (const Row& row : rows) {
    const std::string& name = row.work.name;
    const std::string group = name.substr(0, name.find('/', name.find('/') + 1));
    groups[{group, row.peer}].push_back(row.measured.ratio);
  }
  bool first = true;
  for (const auto& [key, ratios] : groups) {
    if (ratios.size() < 2) continue;
    if (std::exchange(first, false)) {
      std::printf("\n%-43s %-13s %5s  %-14s %s\n", "group", "peer", "rows", "geometric mean", "least");
    }
    double logarithms = 0;
    for (double r : ratios) logarithms += std::log(r);
    std::printf("%-43s %-13s %5zu  %-14.3g %.3g\n", key.first.c_str(), key.second.c_str(), ratios.size(),
                std::exp(logarithms / double(ratios.size())), *std::min_element(ratios.begin(), ratios.end()));
  }
}

void print_json(const Row& row) {
  std::printf(R"({"name": "%s", "unit": "%s", "tenet": %.6g, "peer": %.6g, "peer_name": "%s", "ratio": %.6g})"
              "\n",
              row.work.name.c_str(), row.work.unit.c_str(), row.measured.tenet, row.measured.peer, row.peer.c_str(),
              row.measured.ratio);
  std::fflush(stdout);
}

}  // namespace bench
