// What the example shows in a terminal: a progress bar, digits, a confusion table.
#pragma once

#include <tenet/core/tensor.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include <unistd.h>

namespace terminal {

inline bool is_interactive() { return isatty(STDOUT_FILENO) != 0; }

/// 12345.6 as "12,346".
inline std::string grouped(double n) {
  std::string s = std::to_string(static_cast<long long>(n + 0.5));
  for (std::size_t i = s.size(); i > 3;) s.insert(i -= 3, 1, ',');
  return s;
}

/// "epoch 1/2 [#####.....]  50 %  loss 0.2134  5,321 images/s", redrawn in place; without a terminal only the last.
class ProgressBar {
 public:
  ProgressBar(std::string label, bool visible)
      : label_(std::move(label)), live_(visible && is_interactive()), visible_(visible) {}

  void show(double part, double loss, double images_per_s) {
    const int percent = int(part * 100);
    if (!live_ || percent == percent_) return;
    percent_ = percent;
    draw(part, loss, images_per_s, "");
  }
  void finish(double loss, double images_per_s, double accuracy) {
    if (!visible_) return;
    char end[64];
    std::snprintf(end, sizeof end, "  test accuracy %.2f %%\n", 100 * accuracy);
    draw(1, loss, images_per_s, end);
  }

 private:
  void draw(double part, double loss, double images_per_s, const char* end) {
    constexpr int width = 24;
    std::string bar;
    for (int i = 0; i < width; ++i) bar += i < int(part * width + 0.5) ? "█" : "░";
    std::printf("%s%s %s %3d %%  loss %.4f  %s images/s%s", live_ ? "\r\033[K" : "", label_.c_str(), bar.c_str(),
                int(part * 100), loss, grouped(images_per_s).c_str(), end);
    std::fflush(stdout);
  }

  std::string label_;
  bool live_, visible_;
  int percent_ = -1;
};

/// Draws a digit [28, 28] of values in [0, 1] in shades, two characters a pixel; rows and columns that are empty all
/// around are left out.
inline void draw_digit(const tenet::Tensor<float>& pixels) {
  static constexpr const char* shades[] = {"  ", "░░", "▒▒", "▓▓", "██"};
  int top = 28, bottom = 0, left = 28, right = 0;
  for (int i = 0; i < 28; ++i) {
    for (int j = 0; j < 28; ++j) {
      if (pixels(i, j) <= 0.1f) continue;
      top = std::min(top, i), bottom = std::max(bottom, i + 1), left = std::min(left, j),
      right = std::max(right, j + 1);
    }
  }
  for (int i = top; i < bottom; ++i) {
    std::string line = "  ";
    for (int j = left; j < right; ++j) line += shades[std::clamp(int(pixels(i, j) * 4.99f), 0, 4)];
    std::printf("%s\n", line.c_str());
  }
}

/// A bar a class, with its probability.
inline void draw_probabilities(const tenet::Tensor<float>& probabilities) {
  for (int c = 0; c < 10; ++c) {
    const float p = probabilities(c);
    std::string bar;
    for (int i = 0; i < int(p * 40 + 0.5f); ++i) bar += "█";
    std::printf("  %d  %6.2f %%  %s\n", c, 100 * double(p), bar.c_str());
  }
}

using Confusion = std::array<std::array<int, 10>, 10>;  // [true class][predicted class]

inline void print_confusion(const Confusion& table) {
  std::printf("\n       predicted\ntrue ");
  for (int c = 0; c < 10; ++c) std::printf("%6d", c);
  std::printf("    right\n");
  for (int r = 0; r < 10; ++r) {
    const auto& row = table[std::size_t(r)];
    int total = 0;
    std::printf("%4d ", r);
    for (int c = 0; c < 10; ++c) {
      total += row[std::size_t(c)];
      if (row[std::size_t(c)]) std::printf("%6d", row[std::size_t(c)]);
      else std::printf("     ·");
    }
    std::printf("  %5.1f %%\n", total ? 100.0 * row[std::size_t(r)] / total : 0.0);
  }
}

}  // namespace terminal
