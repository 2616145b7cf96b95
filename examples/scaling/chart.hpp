// Draws curves over the number of ranks as an SVG picture: filled dots were measured, lines are predictions.
#pragma once

#include <tenet/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace chart {

struct Point {
  double ranks, value;
};
struct Curve {
  std::string name;
  std::vector<Point> predicted, measured;
};
struct Panel {
  std::string title, unit;
  std::vector<Curve> curves;
  bool logarithmic = false;  // the values; ranks always are
  double limit = 0;          // a line across, if positive
  std::string limit_name;
};

namespace detail {

struct Axes {
  double x, y, width, height, ranks, low, high;
  bool logarithmic;
  double at_x(double r) const { return x + width * std::log2(r) / std::log2(ranks); }
  double at_y(double v) const {
    const double part = logarithmic ? std::log(v / low) / std::log(high / low) : (v - low) / (high - low);
    return y + height * (1 - std::clamp(part, 0.0, 1.0));
  }
};

inline Axes axes_of(const Panel& p, double x, double y, double width, double height) {
  double ranks = 2, low = 1e300, high = p.limit;
  for (const Curve& c : p.curves) {
    for (const auto* points : {&c.predicted, &c.measured}) {
      for (const Point& q : *points) {
        ranks = std::max(ranks, q.ranks);
        low = std::min(low, q.value);
        high = std::max(high, q.value);
      }
    }
  }
  if (p.logarithmic) return {x, y, width, height, ranks, std::pow(10, std::floor(std::log10(low))), high * 1.3, true};
  return {x, y, width, height, ranks, 0, high * 1.1, false};
}

inline void grid(std::FILE* f, const Axes& a, const Panel& p) {
  std::fprintf(f, "<text x='%g' y='%g' class='title'>%s</text>\n", a.x, a.y - 16, p.title.c_str());
  const auto line = [&](double value) {
    std::fprintf(f, "<line x1='%g' x2='%g' y1='%.1f' y2='%.1f' class='grid'/>", a.x, a.x + a.width, a.at_y(value),
                 a.at_y(value));
    std::fprintf(f, "<text x='%g' y='%.1f' class='tick' text-anchor='end'>%g%s</text>\n", a.x - 6, a.at_y(value) + 4,
                 value, p.unit.c_str());
  };
  if (p.logarithmic) {
    for (double v = a.low; v <= a.high; v *= 10) line(v);
  } else {
    const double raw = a.high / 5, scale = std::pow(10, std::floor(std::log10(raw)));
    const double step = scale * (raw / scale < 2 ? 2 : raw / scale < 5 ? 5 : 10);
    for (double v = 0; v <= a.high; v += step) line(v);
  }
  for (double r = 1; r <= a.ranks; r *= a.ranks > 64 ? 4 : 2) {
    std::fprintf(f, "<text x='%.1f' y='%g' class='tick' text-anchor='middle'>%g</text>\n", a.at_x(r),
                 a.y + a.height + 18, r);
  }
  std::fprintf(f, "<text x='%g' y='%g' class='tick' text-anchor='middle'>ranks</text>\n", a.x + a.width / 2,
               a.y + a.height + 36);
  if (p.limit > 0) {
    std::fprintf(f, "<line x1='%g' x2='%g' y1='%.1f' y2='%.1f' stroke='#888' stroke-dasharray='5 4'/>", a.x,
                 a.x + a.width, a.at_y(p.limit), a.at_y(p.limit));
    std::fprintf(f, "<text x='%g' y='%.1f' class='tick' text-anchor='end'>%s</text>\n", a.x + a.width,
                 a.at_y(p.limit) + 15, p.limit_name.c_str());
  }
}

inline void curves(std::FILE* f, const Axes& a, const Panel& p) {
  constexpr const char* colors[] = {"#1f5fa8", "#c8501e", "#2b8a3e", "#7b3fa0", "#a07c00", "#0c8599"};
  double legend = a.y + a.height + 60;
  std::size_t next = 0;
  for (const Curve& c : p.curves) {
    const char* color = colors[next++ % std::size(colors)];
    std::fprintf(f, "<polyline fill='none' stroke='%s' stroke-width='2' points='", color);
    for (const Point& q : c.predicted) std::fprintf(f, "%.1f,%.1f ", a.at_x(q.ranks), a.at_y(q.value));
    std::fprintf(f, "'/>\n");
    for (const Point& q : c.measured) {
      std::fprintf(f, "<circle cx='%.1f' cy='%.1f' r='5' fill='%s'/>\n", a.at_x(q.ranks), a.at_y(q.value), color);
    }
    std::fprintf(f, "<line x1='%g' x2='%g' y1='%g' y2='%g' stroke='%s' stroke-width='2'/>", a.x, a.x + 24, legend - 4,
                 legend - 4, color);
    std::fprintf(f, "<text x='%g' y='%g' class='name'>%s, predicted</text>\n", a.x + 32, legend, c.name.c_str());
    legend += 19;
    if (c.measured.empty()) continue;
    std::fprintf(f, "<circle cx='%g' cy='%g' r='5' fill='%s'/>", a.x + 12, legend - 4, color);
    std::fprintf(f, "<text x='%g' y='%g' class='name'>%s, measured</text>\n", a.x + 32, legend, c.name.c_str());
    legend += 19;
  }
}

}  // namespace detail

/// Writes the panels side by side to `path`; throws tenet::Error if it cannot.
inline void write_svg(const std::string& path, const std::string& title, const std::vector<Panel>& panels) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
  if (!file) throw tenet::Error("chart: cannot write '" + path + "'");
  std::FILE* const f = file.get();
  std::size_t lines = 0;
  for (const Panel& p : panels) {
    std::size_t own = 0;
    for (const Curve& c : p.curves) own += c.measured.empty() ? 1 : 2;
    lines = std::max(lines, own);
  }
  const double width = 20 + 400 * double(panels.size()), height = 440 + 19 * double(lines);
  std::fprintf(f,
               "<svg xmlns='http://www.w3.org/2000/svg' width='%g' height='%g' viewBox='0 0 %g %g'>\n"
               "<style>text{font-family:sans-serif;fill:#333}.head{font-size:17px;font-weight:bold}"
               ".title{font-size:14px}.tick{font-size:12px;fill:#666}.name{font-size:12px}.grid{stroke:#e2e2e2}"
               "</style>\n<rect width='100%%' height='100%%' fill='white'/>\n"
               "<text x='20' y='30' class='head'>%s</text>\n",
               width, height, width, height, title.c_str());
  double x = 74;
  for (const Panel& p : panels) {
    const detail::Axes a = detail::axes_of(p, x, 90, 310, 270);
    detail::grid(f, a, p);
    detail::curves(f, a, p);
    x += 400;
  }
  std::fprintf(f, "</svg>\n");
  if (std::ferror(f) || std::fflush(f)) throw tenet::Error("chart: cannot write '" + path + "'");
}

}  // namespace chart
