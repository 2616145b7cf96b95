// Draws the table of the example as an SVG picture: a row a model, a bar a figure.
#pragma once

#include <tenet/core/error.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace chart {

struct Column {
  std::string title;
  const char* format;          // of a figure, for printf
  double low;                  // where bars begin
  std::vector<double> values;  // one a row; a negative one is left out
};

/// Writes the picture to `path`; throws tenet::Error if it cannot.
inline void write_svg(const std::string& path, const std::string& title, const std::vector<std::string>& rows,
                      const std::vector<Column>& columns) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
  if (!file) throw tenet::Error("chart: cannot write '" + path + "'");
  std::FILE* const f = file.get();
  constexpr double left = 190, top = 84, row_height = 26, bar = 120, column_width = 206;
  const double width = left + column_width * double(columns.size()),
               height = top + row_height * double(rows.size()) + 16;
  std::fprintf(f,
               "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %g %g' width='%g' height='%g' "
               "font-family='sans-serif' font-size='13'>\n"
               "<rect width='100%%' height='100%%' fill='white'/>\n"
               "<text x='16' y='30' font-size='17' fill='#222'>%s</text>\n",
               width, height, width, height, title.c_str());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double y = top + row_height * double(r);
    if (r % 2 == 0) {
      std::fprintf(f, "<rect x='8' y='%g' width='%g' height='%g' fill='#f4f6f8'/>\n", y, width - 16, row_height);
    }
    std::fprintf(f, "<text x='16' y='%g' fill='#222'>%s</text>\n", y + 18, rows[r].c_str());
  }
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const Column& column = columns[c];
    const double x = left + column_width * double(c);
    const double high = std::max(*std::max_element(column.values.begin(), column.values.end()), column.low + 1e-9);
    std::fprintf(f, "<text x='%g' y='%g' fill='#555'>%s</text>\n", x, top - 12, column.title.c_str());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const double value = column.values[r], y = top + row_height * double(r);
      if (value < 0) continue;
      const double length = bar * std::clamp((value - column.low) / (high - column.low), 0.01, 1.0);
      std::fprintf(f, "<rect x='%g' y='%g' width='%.1f' height='14' fill='#3b78b5'/>\n", x, y + 6, length);
      std::fprintf(f, "<text x='%.1f' y='%g' fill='#222'>", x + length + 6, y + 18);
      std::fprintf(f, column.format, value);
      std::fprintf(f, "</text>\n");
    }
  }
  std::fprintf(f, "</svg>\n");
  if (std::ferror(f) || std::fflush(f)) throw tenet::Error("chart: cannot write '" + path + "'");
}

}  // namespace chart
