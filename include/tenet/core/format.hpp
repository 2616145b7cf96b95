// Tensors as text, laid out as PyTorch prints them.
#pragma once

#include <tenet/core/tensor.hpp>

#include <cmath>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

namespace tenet {

/// How tensors are printed.
struct PrintOptions {
  int precision = 4;     ///< digits behind the point
  int threshold = 1000;  ///< a tensor of more elements is summarized
  int edge_items = 3;    ///< of a summarized dimension, shown at each end
  int line_width = 80;
};

namespace state {
struct Printing {
  std::mutex mutex;
  PrintOptions options;
};
inline constinit Printing printing{};
}  // namespace state

inline namespace TENET_CONFIG {

/// Sets how tensors are printed from now on, in the whole process. Throws Error unless precision is in
/// [0, 99], edge_items and line_width are at least 1 and threshold is not negative.
inline void set_print_options(const PrintOptions& o) {
  if (o.precision < 0 || o.precision > 99 || o.threshold < 0 || o.edge_items < 1 || o.line_width < 1) {
    throw Error(
        text({"set_print_options: expected precision in [0, 99], threshold >= 0, edge_items >= 1 and ",
              "line_width >= 1, got ", o.precision, ", ", o.threshold, ", ", o.edge_items, " and ", o.line_width}));
  }
  const std::lock_guard lock(state::printing.mutex);
  state::printing.options = o;
}

inline PrintOptions print_options() {
  const std::lock_guard lock(state::printing.mutex);
  return state::printing.options;
}

namespace detail {

/// Writes one tensor: chooses the elements that are shown, turns them into cells of one width, lays these out.
class Printer {
 public:
  explicit Printer(const AnyTensor& t) : t_(t), options_(print_options()), summarize_(t.numel() > options_.threshold) {}

  std::string str() {
    std::string body = "[]";
    std::vector<std::string> notes;
    const DType type = t_.dtype();
    const bool usual = type == DType::float32 || type == DType::int64 || type == DType::boolean;
    if (!t_.device().is_cpu()) {
      body = "...";
      notes = {"size=" + t_.shape().str(), "device=" + t_.device().str()};
    } else if (t_.numel() == 0) {
      if (t_.dim() != 1) notes.push_back("size=" + t_.shape().str());
    } else {
      collect(0, 0);
      write_cells();
      body = lay_out(0);
    }
    if (!(t_.numel() ? usual : type == DType::float32)) notes.push_back(std::string("dtype=") + name(type));
    if (t_.requires_grad()) notes.push_back("requires_grad=true");
    return with_notes("tensor(" + body, notes);
  }

 private:
  static constexpr int indent = 7;  // of "tensor("

  bool cut(int dim) const { return summarize_ && t_.shape()[dim] > 2 * std::int64_t(options_.edge_items); }

  /// Calls f(i) for each index of `dim` that is shown, and f(-1) in the place of those that are not.
  template <class F>
  void for_shown(int dim, const F& f) const {
    const std::int64_t n = t_.shape()[dim], edge = cut(dim) ? options_.edge_items : n;
    for (std::int64_t i = 0; i < edge; ++i) f(i);
    if (!cut(dim)) return;
    f(std::int64_t{-1});
    for (std::int64_t i = n - edge; i < n; ++i) f(i);
  }

  void collect(int dim, std::int64_t offset) {
    if (dim == t_.dim()) return offsets_.push_back(offset);
    for_shown(dim, [&](std::int64_t i) {
      if (i >= 0) collect(dim + 1, offset + i * t_.strides()[dim]);
    });
  }

  // ---- elements

  void write_cells() {
    std::vector<double> floats;
    std::vector<std::int64_t> integers;
    dispatch(t_.dtype(), [&](auto zero) {
      const auto* data = static_cast<const decltype(zero)*>(t_.data_ptr());
      for (std::int64_t at : offsets_) {
        if constexpr (FloatElement<decltype(zero)>) floats.push_back(double(data[at]));
        else integers.push_back(data[at]);
      }
    });
    write_floats(floats);
    for (std::int64_t v : integers) {
      cells_.push_back(t_.dtype() == DType::boolean ? (v ? "true" : "false") : std::to_string(v));
      widen(cells_.back());
    }
    for (std::string& cell : cells_) cell.insert(0, cell.size() < width_ ? width_ - cell.size() : 0, ' ');
  }

  void write_floats(const std::vector<double>& values) {
    bool whole = true;
    double least = INFINITY, most = 0;
    for (double v : values) {
      if (v == 0 || !std::isfinite(v)) continue;
      whole = whole && v == std::trunc(v);
      least = std::fmin(least, std::fabs(v));
      most = std::fmax(most, std::fabs(v));
    }
    const bool scientific = most > 0 && (most / least > 1000 || most > 1e8 || (!whole && least < 1e-4));
    for (double v : values) {
      cells_.push_back(number(v, scientific, whole));
      if (v != 0 && std::isfinite(v)) widen(cells_.back());  // as PyTorch: the others take what width there is
    }
  }

  std::string number(double v, bool scientific, bool whole) const {
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
    char digits[160];  // fixed form holds at most 1e8, with 99 digits behind the point
    const int precision = !scientific && whole ? 0 : options_.precision;
    std::snprintf(digits, sizeof digits, scientific ? "%.*e" : "%.*f", precision, v);
    return !scientific && whole ? std::string(digits) + "." : std::string(digits);
  }

  void widen(const std::string& cell) {
    if (cell.size() > width_) width_ = cell.size();
  }

  // ---- layout

  std::string lay_out(int dim) {
    if (t_.dim() == 0) return cells_[0];
    if (dim == t_.dim() - 1) return row(dim);
    const std::string line_break =
        "," + std::string(std::size_t(t_.dim() - 1 - dim), '\n') + std::string(std::size_t(indent + dim + 1), ' ');
    std::string all = "[";
    for_shown(dim, [&](std::int64_t i) {
      if (i != 0) all += line_break;
      all += i < 0 ? "..." : lay_out(dim + 1);
    });
    return all + "]";
  }

  std::string row(int dim) {
    const int fit = (options_.line_width - indent - dim) / int(width_ + 2);
    const int per_line = fit > 1 ? fit : 1;
    std::string all = "[";
    int column = 0;
    for_shown(dim, [&](std::int64_t i) {
      if (column && column % per_line == 0) all += ",\n" + std::string(std::size_t(indent + dim + 1), ' ');
      else if (column) all += ", ";
      ++column;
      all += i < 0 ? " ..." : cells_[next_++];
    });
    return all + "]";
  }

  std::string with_notes(std::string all, const std::vector<std::string>& notes) const {
    const std::size_t line_start = all.rfind('\n') + 1;  // 0 if there is none
    std::size_t length = all.size() - line_start + 2;
    for (const std::string& note : notes) {
      const bool fits = length + note.size() + 2 <= std::size_t(options_.line_width);
      all += (fits ? ", " : ",\n" + std::string(indent, ' ')) + note;
      length = fits ? length + note.size() + 2 : indent + note.size();
    }
    return all + ")";
  }

  const AnyTensor& t_;
  const PrintOptions options_;
  const bool summarize_;
  std::vector<std::int64_t> offsets_;  // of the elements shown, row-major
  std::vector<std::string> cells_;     // the same as text
  std::size_t next_ = 0;               // cell to lay out
  std::size_t width_ = 1;
};

}  // namespace detail

/// The tensor as text, as PyTorch prints it: `tensor([1., 2.], requires_grad=true)`. One of many elements is
/// summarized (see PrintOptions); one that is not on the CPU shows its size only.
inline std::string to_string(const AnyTensor& t) {
  return t.defined() ? detail::Printer(t).str() : "tensor(undefined)";
}

/// Prints to anything that takes a std::string.
template <class Stream>
requires requires(Stream& out, const std::string& s) { out << s; }
Stream& operator<<(Stream& out, const AnyTensor& t) {
  out << to_string(t);
  return out;
}

}  // namespace TENET_CONFIG
}  // namespace tenet
