// Draws the loss and the test accuracy of a training as an SVG picture.
#pragma once

#include <tenet/core/error.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace plot {

/// What a training leaves to draw.
struct History {
  std::vector<double> batch_loss;      // one a batch, all epochs after each other
  std::vector<double> test_accuracy;   // one an epoch, fractions
  std::vector<std::size_t> epoch_end;  // in batches
};

namespace detail {

struct Panel {
  double x, y, width, height;  // of the area between the axes
  double low, high;            // of the values
  double batches;
  double at_x(double batch) const { return x + width * batch / batches; }
  double at_y(double value) const { return y + height * (1 - (std::clamp(value, low, high) - low) / (high - low)); }
};

inline void axes(std::FILE* f, const Panel& p, const char* title, const char* format, double scale,
                 const std::vector<std::size_t>& epoch_end) {
  std::fprintf(f, "<text x='%g' y='%g' class='title'>%s</text>\n", p.x, p.y - 14, title);
  for (int i = 0; i <= 4; ++i) {
    const double value = p.low + (p.high - p.low) * i / 4, y = p.at_y(value);
    std::fprintf(f, "<line x1='%g' x2='%g' y1='%.1f' y2='%.1f' class='grid'/>", p.x, p.x + p.width, y, y);
    std::fprintf(f, "<text x='%g' y='%.1f' class='tick' text-anchor='end'>", p.x - 8, y + 4);
    std::fprintf(f, format, value * scale);
    std::fprintf(f, "</text>\n");
  }
  const std::size_t every = (epoch_end.size() + 9) / 10;
  for (std::size_t e = 0; e < epoch_end.size(); ++e) {
    if ((e + 1) % every) continue;
    const double x = p.at_x(double(epoch_end[e]));
    std::fprintf(f, "<text x='%.1f' y='%g' class='tick' text-anchor='middle'>%zu</text>\n", x, p.y + p.height + 18,
                 e + 1);
  }
  std::fprintf(f, "<text x='%g' y='%g' class='tick' text-anchor='middle'>epoch</text>\n", p.x + p.width / 2,
               p.y + p.height + 38);
}

/// The mean over a window around each batch: what the eye would draw through the noise.
inline std::vector<double> smoothed(const std::vector<double>& v) {
  const std::size_t half = std::max<std::size_t>(1, v.size() / 60);
  std::vector<double> sums(v.size() + 1), out(v.size());
  for (std::size_t i = 0; i < v.size(); ++i) sums[i + 1] = sums[i] + v[i];
  for (std::size_t i = 0; i < v.size(); ++i) {
    const std::size_t a = i < half ? 0 : i - half, b = std::min(v.size(), i + half + 1);
    out[i] = (sums[b] - sums[a]) / double(b - a);
  }
  return out;
}

inline void line(std::FILE* f, const Panel& p, const std::vector<double>& values, const char* style) {
  const std::size_t step = std::max<std::size_t>(1, values.size() / 800);  // a point a pixel is enough
  std::fprintf(f, "<polyline class='%s' points='", style);
  for (std::size_t i = 0; i < values.size(); i += step) {
    std::fprintf(f, "%.1f,%.1f ", p.at_x(double(i + 1)), p.at_y(values[i]));
  }
  std::fprintf(f, "'/>\n");
}

}  // namespace detail

/// Writes the picture to `path`; throws tenet::Error if it cannot.
inline void write_svg(const std::string& path, const std::string& title, const History& h) {
  if (h.batch_loss.empty() || h.test_accuracy.empty())
    throw tenet::Error("plot: nothing was trained, so nothing to draw");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
  if (!file) throw tenet::Error("plot: cannot write '" + path + "'");
  std::FILE* f = file.get();
  const double batches = double(h.batch_loss.size());
  const double top = *std::max_element(h.batch_loss.begin(), h.batch_loss.end());
  const double worst = *std::min_element(h.test_accuracy.begin(), h.test_accuracy.end());
  const double floor = worst > 0.95 ? 0.95 : worst > 0.9 ? 0.9 : worst > 0.5 ? 0.5 : 0;
  const detail::Panel loss{70, 80, 380, 240, 0, std::max(top, 1e-6), batches};
  const detail::Panel accuracy{540, 80, 380, 240, floor, 1, batches};
  std::fprintf(f,
               "<svg xmlns='http://www.w3.org/2000/svg' width='960' height='380' viewBox='0 0 960 380'>\n"
               "<style>text{font-family:sans-serif;fill:#333}.head{font-size:17px;font-weight:bold}"
               ".title{font-size:14px}.tick{font-size:12px;fill:#666}.grid{stroke:#ddd}"
               ".noise{fill:none;stroke:#9ecae1;stroke-width:1}.mean{fill:none;stroke:#08519c;stroke-width:2.5}"
               ".accuracy{fill:none;stroke:#238b45;stroke-width:2.5}.dot{fill:#238b45}</style>\n"
               "<rect width='960' height='380' fill='white'/>\n<text x='70' y='34' class='head'>%s</text>\n",
               title.c_str());
  detail::axes(f, loss, "training loss (each batch, and smoothed)", "%.2f", 1, h.epoch_end);
  detail::line(f, loss, h.batch_loss, "noise");
  detail::line(f, loss, detail::smoothed(h.batch_loss), "mean");
  detail::axes(f, accuracy, "test accuracy", "%.1f %%", 100, h.epoch_end);
  std::fprintf(f, "<polyline class='accuracy' points='");
  for (std::size_t e = 0; e < h.test_accuracy.size(); ++e) {
    std::fprintf(f, "%.1f,%.1f ", accuracy.at_x(double(h.epoch_end[e])), accuracy.at_y(h.test_accuracy[e]));
  }
  std::fprintf(f, "'/>\n");
  for (std::size_t e = 0; e < h.test_accuracy.size(); ++e) {
    std::fprintf(f, "<circle class='dot' r='4' cx='%.1f' cy='%.1f'/>", accuracy.at_x(double(h.epoch_end[e])),
                 accuracy.at_y(h.test_accuracy[e]));
  }
  std::fprintf(f, "<text x='%.1f' y='%.1f' class='tick' text-anchor='end'>%.2f %%</text>\n</svg>\n",
               accuracy.at_x(batches), accuracy.at_y(h.test_accuracy.back()) - 10, 100 * h.test_accuracy.back());
  if (std::ferror(f) || std::fflush(f)) throw tenet::Error("plot: cannot write '" + path + "'");
}

}  // namespace plot
