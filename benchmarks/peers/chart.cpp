#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace bench {

namespace {

constexpr int row_height = 18, bar_height = 12, line_height = 15, left = 290, plot_width = 560, right = 70;
constexpr const char* colours[] = {"#2a78b5", "#d9772b", "#4c9a4c", "#8d5fb0", "#b04a5a"};

std::string escaped(const std::string& s) {
  std::string out;
  for (char c : s) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
  return out;
}

std::string number(double x) {
  std::ostringstream out;
  out.precision(x < 10 ? 2 : 3);
  out << x;
  return out.str();
}

/// The axis runs over whole powers of two, with 1 among them.
struct Axis {
  int low = -1, high = 1;
  explicit Axis(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      low = std::min(low, int(std::floor(std::log2(row.measured.ratio))));
      high = std::max(high, int(std::ceil(std::log2(row.measured.ratio))));
    }
  }
  double x(double ratio) const { return left + plot_width * (std::log2(ratio) - low) / (high - low); }
};

void text(std::ostream& out, double x, double y, const std::string& s, const char* attributes = "") {
  out << "<text x=\"" << x << "\" y=\"" << y << "\" " << attributes << ">" << escaped(s) << "</text>\n";
}

}  // namespace

void write_svg(const std::string& path, const std::vector<Row>& rows, const std::vector<std::string>& environment) {
  const Axis axis(rows);
  std::map<std::string, const char*> colour;
  for (const Row& row : rows) colour.emplace(row.peer, colours[colour.size() % std::size(colours)]);

  const int legend = 40, top = legend + 32, bottom = top + row_height * int(rows.size());
  const int height = bottom + 34 + line_height * int(environment.size()) + 10, width = left + plot_width + right;
  std::ofstream out(path);
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << height
      << "\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  text(out, 12, 22, "How many times faster tenet is (right of 1) than", "font-size=\"15\" font-weight=\"bold\"");
  double x = 12;
  for (const auto& [peer, fill] : colour) {
    out << "<rect x=\"" << x << "\" y=\"" << legend - 8 << "\" width=\"11\" height=\"11\" fill=\"" << fill << "\"/>\n";
    text(out, x + 16, legend + 2, peer);
    x += 110;
  }

  for (int power = axis.low; power <= axis.high; ++power) {
    const double at = axis.x(std::exp2(power));
    const char* stroke = power == 0 ? "#222\" stroke-width=\"1.5" : "#ddd";
    out << "<path d=\"M" << at << " " << top - 4 << "V" << bottom << "\" stroke=\"" << stroke << "\"/>\n";
    for (const int y : {top - 8, bottom + 14}) {
      text(out, at, y, number(std::exp2(power)), "text-anchor=\"middle\" fill=\"#555\"");
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const double y = top + row_height * double(i), end = axis.x(row.measured.ratio), one = axis.x(1);
    if (i == 0 || row.work.name != rows[i - 1].work.name) {
      text(out, left - 8, y + 12, row.work.name, "text-anchor=\"end\"");
    }
    out << "<rect x=\"" << std::min(one, end) << "\" y=\"" << y + 2 << "\" width=\"" << std::abs(end - one)
        << "\" height=\"" << bar_height << "\" fill=\"" << colour[row.peer] << "\"/>\n";
    text(out, std::max(one, end) + 4, y + 12, number(row.measured.ratio), "fill=\"#222\"");
  }
  for (std::size_t i = 0; i < environment.size(); ++i) {
    text(out, 12, bottom + 40 + line_height * double(i), environment[i], "fill=\"#555\" font-size=\"10\"");
  }
  out << "</svg>\n";
  if (!out.flush()) throw std::runtime_error("bench_compare: could not write " + path);
}

}  // namespace bench
