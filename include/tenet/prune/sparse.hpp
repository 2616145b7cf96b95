// Sparse weights of Linear layers: only what is not 0 is stored and multiplied.
#pragma once

#include <tenet/kernels/cpu/sparse.hpp>
#include <tenet/prune/mask.hpp>

namespace tenet {
inline namespace TENET_CONFIG {
namespace op {

/// x m^T, or x m if `transposed`, for x [n, ...] and a sparse matrix m [rows, cols], which gets no gradient.
struct SparseProduct {
  struct Options {
    std::int64_t rows, cols;
    bool transposed;
  };
  static constexpr const char* name = "sparse_product";
  template <class T>
  static Tensor<T> forward(Context& ctx, const Tensor<T>& x, const Tensor<T>& values,
                           const Tensor<std::int32_t>& columns, const Tensor<std::int64_t>& starts, Options o) {
    ctx.keep(values);
    ctx.keep(columns);
    ctx.keep(starts);
    const cpu::SparseMatrix<T> m{o.rows, o.cols, starts.data(), columns.data(), values.data()};
    const Tensor<T> in = packed(x), y = empty<T>({x.shape()[0], o.transposed ? o.cols : o.rows});
    if (o.transposed) cpu::sparse_product_transposed<T>(m, in.shape()[0], in.data(), y.data());
    else cpu::sparse_product<T>(m, in.shape()[0], in.data(), y.data());
    return y;
  }
  template <class T>
  static void backward(Grad grad, const Tensor<T>& g) {
    if (grad.wants(1)) throw NotImplemented("sparse_product: the matrix cannot be trained; make the weight dense");
    Options o = grad.options<Options>();
    o.transposed = !o.transposed;
    grad[0] = apply<SparseProduct>(g, grad.kept<T>(0), grad.kept<std::int32_t>(1), grad.kept<std::int64_t>(2), o);
  }
};

}  // namespace op
}  // namespace TENET_CONFIG

namespace prune {

/// The elements of a matrix [out, in] that are not 0, row after row. They do not train: gradients go to the input and
/// the bias only.
template <class T = float>
class Sparse final : public nn::WeightFormat<T> {
 public:
  /// Elements [starts[r], starts[r + 1]) of `columns` and `values` [n] are those of row r; starts is [out + 1]. Throws
  /// Error unless the columns of each row ascend in [0, in) and the starts go from 0 to n without a step back.
  TENET_TAG Sparse(std::int64_t in, Tensor<std::int64_t> starts, Tensor<std::int32_t> columns, Tensor<T> values)
      : in_(in), starts_(packed(starts)), columns_(packed(columns)), values_(packed(values)) {
    const std::int64_t n = values_.numel();
    const std::int64_t* s = starts_.data();
    bool fits = starts_.dim() == 1 && starts_.numel() > 0 && columns_.dim() == 1 && values_.dim() == 1 &&
                columns_.numel() == n && s[0] == 0 && s[starts_.numel() - 1] == n;
    for (std::int64_t r = 0; fits && r + 1 < starts_.numel(); ++r) fits = s[r] <= s[r + 1];
    for (std::int64_t r = 0; fits && r + 1 < starts_.numel(); ++r) {
      std::int64_t next = 0;
      for (std::int64_t k = s[r]; fits && k < s[r + 1]; ++k) {
        const std::int64_t column = columns_.data()[k];
        fits = column >= next && column < in;
        next = column + 1;
      }
    }
    if (!fits) {
      throw Error(text({"sparse: starts ", starts_.shape(), ", columns ", columns_.shape(), " and values ",
                        values_.shape(), " are not those of a matrix with ", in, " columns"}));
    }
  }

  TENET_TAG std::string_view name() const override { return "sparse"; }
  TENET_TAG Shape shape() const override { return {starts_.numel() - 1, in_}; }
  TENET_TAG Tensor<T> dense(const Tensor<T>&) const override {
    const Tensor<T> out = zeros<T>(shape());
    for (std::int64_t r = 0; r < out.shape()[0]; ++r) {
      for (std::int64_t k = starts_.data()[r]; k < starts_.data()[r + 1]; ++k) {
        out.data()[r * in_ + columns_.data()[k]] = values_.data()[k];
      }
    }
    return out;
  }
  TENET_TAG std::shared_ptr<nn::WeightFormat<T>> clone() const override { return std::make_shared<Sparse>(*this); }
  TENET_TAG void collect(const std::string& prefix, std::vector<nn::StateSlot>& slots) override {
    slots.push_back(this->slot(prefix, "starts", starts_));
    slots.push_back(this->slot(prefix, "columns", columns_));
    slots.push_back(this->slot(prefix, "values", values_));
  }
  TENET_TAG bool fits(const nn::StateDict&) const override { return false; }  // another has other columns

  TENET_TAG Tensor<T> linear(const Tensor<T>& x, const Tensor<T>&, const Tensor<T>& bias) const override {
    if (x.dim() == 0 || x.size(-1) != in_) {
      throw ShapeError(text({"linear: expected ", in_, " input features, got input ", x.shape()}));
    }
    Dims sizes = x.shape();
    std::int64_t rows = 1;
    for (int d = 0; d + 1 < x.dim(); ++d) rows *= sizes[d];
    sizes[x.dim() - 1] = shape()[0];
    const op::SparseProduct::Options o{shape()[0], in_, false};
    const Tensor<T>& values = values_;
    const Tensor<std::int32_t>& columns = columns_;
    const Tensor<std::int64_t>& starts = starts_;
    const Tensor<T> y = reshape(apply<op::SparseProduct>(reshape(x, {rows, in_}), values, columns, starts, o), sizes);
    return bias ? add(y, bias) : y;
  }

  /// Reads it from a state. Throws Error where it does not fit.
  TENET_TAG static std::shared_ptr<nn::WeightFormat<T>> read(const Shape& shape, const nn::StateDict& part) {
    const AnyTensor *starts = nn::detail::find(part, "starts"), *columns = nn::detail::find(part, "columns"),
                    *values = nn::detail::find(part, "values");
    if (!starts || !columns || !values) throw Error("sparse: expected starts, columns and values");
    if (shape.size() != 2 || !(starts->shape() == Shape{shape[0] + 1})) {
      throw Error(text({"sparse: starts ", starts->shape(), " are not those of a weight ", shape}));
    }
    return std::make_shared<Sparse>(shape[1], Tensor<std::int64_t>(*starts).clone(),
                                    Tensor<std::int32_t>(*columns).clone(), Tensor<T>(*values).clone());
  }

 private:
  std::int64_t in_;
  nn::Buffer<std::int64_t> starts_;
  nn::Buffer<std::int32_t> columns_;
  nn::Buffer<T> values_;
};

inline namespace TENET_CONFIG {

namespace detail {

template <class T>
std::shared_ptr<nn::WeightFormat<T>> sparse_of(const Tensor<T>& weight) {
  const std::int64_t rows = weight.size(0), cols = weight.size(1), n = count_nonzero(weight).item();
  if (cols > std::numeric_limits<std::int32_t>::max()) {
    throw ShapeError(text({"to_sparse: expected fewer than 2^31 inputs, got ", weight.shape()}));
  }
  const Tensor<T> dense = packed(weight), values = empty<T>({n});
  const Tensor<std::int32_t> columns = empty<std::int32_t>({n});
  const Tensor<std::int64_t> starts = zeros<std::int64_t>({rows + 1});
  std::int64_t k = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      const T value = dense.data()[r * cols + c];
      if (value == T(0)) continue;
      columns.data()[k] = std::int32_t(c);
      values.data()[k++] = value;
    }
    starts.data()[r + 1] = k;
  }
  return std::make_shared<Sparse<T>>(cols, starts, columns, values);
}

}  // namespace detail

/// Keeps the weights of Linear layers of `x`, dense or pruned, as Sparse from now on: for inference, where few elements
/// are left. Below a density of some 0.25 it is faster than dense, and smaller below one half. An optimizer that holds
/// the old weights does not train them any longer. Throws Error if there is no such weight, or one in another format;
/// nothing is changed then.
template <class X>
void to_sparse(X& x) {
  const no_grad guard;
  bool found = false;
  detail::each_weight(x, [&](const std::string& name, auto& weight) {
    if (weight.full_shape().size() != 2) return;
    detail::masked("to_sparse", name, weight);
    found = true;
  });
  if (!found) throw Error("to_sparse: there is no weight of a Linear layer");
  detail::each_weight(x, [&](const std::string&, auto& weight) {
    if (weight.full_shape().size() == 2) weight.set_format(detail::sparse_of(weight.dense()));
  });
}

/// Keeps each weight of `x` dense from now on, whatever its format: a new parameter, which trains.
template <class X>
void to_dense(X& x) {
  const no_grad guard;
  detail::each_weight(x, [&]<class T>(const std::string&, nn::Weight<T>& weight) {
    if (weight.format()) weight = nn::Weight<T>(weight.dense().clone());
  });
}

}  // namespace TENET_CONFIG
}  // namespace prune
}  // namespace tenet
