// Reads a grey picture (PGM, plain or raw) and fits it to what the network was trained on.
#pragma once

#include <tenet/core/factories.hpp>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string>

namespace pgm {

namespace detail {

/// The next number of a PGM header or body; comments run from # to the end of the line.
inline int number(std::istream& in, const std::string& path) {
  int c = in.get();
  while (c == '#' || std::isspace(c)) {
    if (c == '#') {
      while (c != '\n' && c != EOF) c = in.get();
    } else {
      c = in.get();
    }
  }
  if (!std::isdigit(c)) throw tenet::FormatError("pgm: '" + path + "' ends or goes wrong where a number should stand");
  int n = 0;
  for (; std::isdigit(c); c = in.get()) {
    n = n * 10 + (c - '0');
    if (n > 65535) throw tenet::FormatError("pgm: '" + path + "' has a number above 65535");
  }
  return n;
}

}  // namespace detail

/// The picture as [28, 28] values in [0, 1], white on black: scaled by areas if it has another size, and inverted if
/// its border is bright. Throws FormatError for anything that is not a PGM of at most 4096 x 4096.
inline tenet::Tensor<float> read_digit(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw tenet::Error("pgm: cannot open '" + path + "'");
  char magic[2] = {};
  in.read(magic, 2);
  if (magic[0] != 'P' || (magic[1] != '2' && magic[1] != '5')) {
    throw tenet::FormatError("pgm: '" + path + "' does not begin with P2 or P5");
  }
  const int width = detail::number(in, path), height = detail::number(in, path), most = detail::number(in, path);
  if (width < 1 || height < 1 || width > 4096 || height > 4096 || most < 1 || (magic[1] == '5' && most > 255)) {
    throw tenet::FormatError("pgm: expected at most 4096 x 4096 pixels of a byte in '" + path + "'");
  }
  tenet::Tensor<float> picture = tenet::empty({height, width});
  for (int i = 0; i < height; ++i) {
    for (int j = 0; j < width; ++j) {
      const int v = magic[1] == '5' ? in.get() : detail::number(in, path);
      if (v == EOF || v < 0) throw tenet::FormatError("pgm: '" + path + "' ends before its last pixel");
      picture(i, j) = float(std::min(v, most)) / float(most);
    }
  }

  double border = 0;
  for (int j = 0; j < width; ++j) border += double(picture(0, j) + picture(height - 1, j)) / (2 * width);
  tenet::Tensor<float> digit = tenet::zeros({28, 28});
  for (int i = 0; i < 28; ++i) {
    for (int j = 0; j < 28; ++j) {
      // The mean over the part of the picture that this pixel covers.
      const int top = i * height / 28, bottom = std::max(top + 1, (i + 1) * height / 28);
      const int left = j * width / 28, right = std::max(left + 1, (j + 1) * width / 28);
      double sum = 0;
      for (int y = top; y < bottom; ++y) {
        for (int x = left; x < right; ++x) sum += double(picture(y, x));
      }
      const double mean = sum / double((bottom - top) * (right - left));
      digit(i, j) = float(border > 0.5 ? 1 - mean : mean);
    }
  }
  return digit;
}

}  // namespace pgm
