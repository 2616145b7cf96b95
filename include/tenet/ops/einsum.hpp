// einsum: sums of products, written by naming the dimensions.
//
// Operands are contracted from left to right, each pair as one batched matrix product.
#pragma once

#include <tenet/ops/matmul.hpp>
#include <tenet/ops/reduce.hpp>

#include <string_view>

namespace tenet {
inline namespace TENET_CONFIG {

namespace detail {

/// A dimension has a label: the letter that names it; a dimension of "..." counts from the end, the last is 7.
inline constexpr int einsum_labels = 128;

/// What an equation says.
struct Einsum {
  std::vector<Dims> inputs;
  Dims output;
  std::int64_t size[einsum_labels];  // of the dimensions of a label

  Einsum(std::string_view equation, const Shape* shapes, std::size_t count);

 private:
  [[noreturn]] TENET_COLD static void fail(std::string_view equation, const Piece& why) {
    throw ShapeError(text({"einsum: ", why, " in '", equation, "'"}));
  }
  /// Reads the subscripts of a term, of which "..." stands for `dots` dimensions.
  static Dims read(std::string_view equation, std::string_view term, int dots);
  static Dims implicit_output(const std::vector<Dims>& inputs);
};

inline bool einsum_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

inline Dims Einsum::read(std::string_view equation, std::string_view term, int dots) {
  Dims labels;
  bool dotted = false;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (einsum_letter(term[i])) {
      labels.push_back(term[i]);
    } else if (!dotted && term.substr(i, 3) == "...") {
      dotted = true;
      i += 2;
      for (int d = max_rank - dots; d < max_rank; ++d) labels.push_back(d);
    } else {
      fail(equation, "expected letters and at most one '...' an operand");
    }
  }
  return labels;
}

/// The dimensions of "...", then the letters that occur once, in the order of the alphabet.
inline Dims Einsum::implicit_output(const std::vector<Dims>& inputs) {
  int count[einsum_labels] = {};
  for (const Dims& labels : inputs) {
    for (std::int64_t l : labels) ++count[l];
  }
  Dims output;
  for (int l = 0; l < einsum_labels; ++l) {
    if (count[l] == 1 || (count[l] > 0 && l < max_rank)) output.push_back(l);
  }
  return output;
}

inline Einsum::Einsum(std::string_view equation, const Shape* shapes, std::size_t count) {
  std::string all;
  for (char c : equation) {
    if (c != ' ') all += c;
  }
  const std::size_t arrow = all.find("->");
  std::string_view left = std::string_view(all).substr(0, arrow);
  int most_dots = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t comma = left.find(',');
    const std::string_view term = left.substr(0, comma);
    if ((comma == left.npos) != (i + 1 == count)) fail(equation, text({"expected terms for ", count, " tensors"}));
    left.remove_prefix(comma == left.npos ? left.size() : comma + 1);
    const bool dotted = term.find('.') != term.npos;
    const int dots = dotted ? shapes[i].size() - int(term.size()) + 3 : 0;
    if (dots < 0 || (!dotted && int(term.size()) != shapes[i].size())) {
      fail(equation, text({"the subscripts '", term, "' do not fit shape ", shapes[i]}));
    }
    inputs.push_back(read(equation, term, dots));
    most_dots = std::max(most_dots, dots);
  }

  std::fill_n(size, einsum_labels, std::int64_t(-1));
  for (std::size_t i = 0; i < count; ++i) {
    for (int d = 0; d < inputs[i].size(); ++d) {
      std::int64_t& n = size[inputs[i][d]];
      const std::int64_t here = shapes[i][d];
      if (n >= 0 && n != 1 && here != 1 && here != n) {
        fail(equation, text({"dimension ", d, " of ", shapes[i], " does not fit the size ", n, " it has elsewhere"}));
      }
      if (n < 0 || n == 1) n = here;
    }
  }

  output =
      arrow == all.npos ? implicit_output(inputs) : read(equation, std::string_view(all).substr(arrow + 2), most_dots);
  bool seen[einsum_labels] = {};
  for (std::int64_t l : output) {
    if (size[l] < 0 || seen[l]) fail(equation, "expected in the output what occurs in the input, once");
    seen[l] = true;
  }
}

/// A tensor whose dimensions have labels, each once.
template <class T>
struct Labelled {
  Tensor<T> x;
  Dims labels;

  int find(std::int64_t label) const {
    int d = 0;
    while (labels[d] != label) ++d;
    return d;
  }

  /// Repeated labels become diagonals; a dimension of size 1 that only repeats goes.
  void simplify(const Einsum& e) {
    for (int a = 0; a < labels.size(); ++a) {
      for (int b = a + 1; b < labels.size(); ++b) {
        if (labels[a] != labels[b]) continue;
        if (x.shape()[a] != x.shape()[b]) {
          throw ShapeError(text({"einsum: expected equal sizes where a subscript repeats, got ", x.shape()}));
        }
        x = diagonal(x, 0, a, b);
        const std::int64_t label = labels[a];
        labels.erase(b);
        labels.erase(a);
        labels.push_back(label);
        return simplify(e);
      }
    }
    for (int d = labels.size() - 1; d >= 0; --d) {
      if (x.shape()[d] == e.size[labels[d]]) continue;
      x = squeeze(x, d);
      labels.erase(d);
    }
  }

  /// Sums over the dimensions whose labels are not `needed`.
  void sum_unless(const bool* needed) {
    Dims dims, left;
    for (int d = 0; d < labels.size(); ++d)
      (needed[labels[d]] ? left : dims).push_back(needed[labels[d]] ? labels[d] : d);
    if (dims.empty()) return;
    x = to<T>(sum(x, dims));
    labels = left;
  }

  /// The dimensions in the order of `to`, as many as there are here.
  Tensor<T> ordered(const Dims& to) const {
    Dims dims;
    for (std::int64_t l : to) dims.push_back(find(l));
    return permute(x, dims);
  }
};

inline std::int64_t volume(const Einsum& e, const Dims& labels) {
  std::int64_t n = 1;
  for (std::int64_t l : labels) n *= e.size[l];
  return n;
}

/// The labels of several lists, one after the other.
inline Dims chain(Dims first, const Dims& second, const Dims& third = {}) {
  for (std::int64_t l : second) first.push_back(l);
  for (std::int64_t l : third) first.push_back(l);
  return first;
}

/// The sum of products over the labels that both have and nobody needs later.
template <class T>
Labelled<T> contract(const Einsum& e, const Labelled<T>& a, const Labelled<T>& b, const bool* needed) {
  Dims both, summed, left, right;
  for (std::int64_t l : a.labels) (!b.labels.contains(l) ? left : needed[l] ? both : summed).push_back(l);
  for (std::int64_t l : b.labels) {
    if (!a.labels.contains(l)) right.push_back(l);
  }
  const std::int64_t m = volume(e, left), k = volume(e, summed), n = volume(e, right);
  Dims lhs{m, k}, rhs{k, n};
  if (!both.empty()) {
    lhs.insert(0, volume(e, both));
    rhs.insert(0, volume(e, both));
  }
  Labelled<T> y;
  y.labels = chain(both, left, right);
  Dims sizes;
  for (std::int64_t l : y.labels) sizes.push_back(e.size[l]);
  y.x = reshape(
      matmul(reshape(a.ordered(chain(both, left, summed)), lhs), reshape(b.ordered(chain(both, summed, right)), rhs)),
      sizes);
  return y;
}

}  // namespace detail

/// Products of the operands' elements, summed over the dimensions that the output lacks: "ij,jk->ik" is a matrix
/// product, "ii" a trace, "...ij->...ji" a transposition. Without "->" the output has the dimensions of "...", then
/// the letters that occur once, in alphabetical order. Sizes of 1 broadcast. Throws ShapeError on an equation that
/// is not one, or that does not fit the shapes, and above 8 dimensions on the way. See torch.einsum.
template <class T>
Tensor<T> einsum(std::string_view equation, const std::vector<Tensor<T>>& operands) {
  if (operands.empty()) throw ShapeError("einsum: expected at least one tensor, got none");
  std::vector<Shape> shapes;
  for (const Tensor<T>& x : operands) shapes.push_back(x.shape());
  const detail::Einsum e(equation, shapes.data(), shapes.size());
  std::vector<detail::Labelled<T>> terms;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    terms.push_back({operands[i], e.inputs[i]});
    terms.back().simplify(e);
  }
  // Of a pair, what the output and the operands still to come name is kept.
  const auto sum_rest = [&](detail::Labelled<T>& term, std::size_t begin, const detail::Labelled<T>* other,
                            bool* needed) {
    std::fill_n(needed, detail::einsum_labels, false);
    for (std::int64_t l : e.output) needed[l] = true;
    for (std::size_t i = begin; i < terms.size(); ++i) {
      for (std::int64_t l : terms[i].labels) needed[l] = true;
    }
    bool kept[detail::einsum_labels];
    std::copy_n(needed, detail::einsum_labels, kept);
    if (other) {
      for (std::int64_t l : other->labels) kept[l] = true;
    }
    term.sum_unless(kept);
  };
  bool needed[detail::einsum_labels];
  detail::Labelled<T> y = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    sum_rest(y, i + 1, &terms[i], needed);
    sum_rest(terms[i], i + 1, &y, needed);
    y = contract(e, y, terms[i], needed);
  }
  sum_rest(y, terms.size(), nullptr, needed);
  return y.ordered(e.output);
}
template <class T>
Tensor<T> einsum(std::string_view equation, std::initializer_list<Tensor<T>> operands) {
  return einsum(equation, std::vector<Tensor<T>>(operands));
}
template <TensorLike X, TensorLike... More>
tensor_t<X> einsum(std::string_view equation, const X& x, const More&... more) {
  return einsum(equation, std::vector<tensor_t<X>>{x, more...});
}

}  // namespace TENET_CONFIG
}  // namespace tenet
