// Products with a sparse matrix against their definition.
#include <tenet/kernels/cpu/sparse.hpp>

#include <cmath>
#include <vector>

#include "isas.hpp"

namespace {

using namespace tenet;

/// Numbers that depend on the position alone.
double number(std::int64_t i) { return double((i * 7919 + 13) % 101) / 50 - 1; }

template <class T>
struct Matrix {
  std::int64_t rows, cols;
  std::vector<T> dense, values;
  std::vector<std::int64_t> starts{0};
  std::vector<std::int32_t> columns;

  /// Row r holds each (r % 5 + 1)-th element, every seventh row none.
  Matrix(std::int64_t r, std::int64_t c) : rows(r), cols(c), dense(std::size_t(r * c), T(0)) {
    for (std::int64_t i = 0; i < r; ++i) {
      for (std::int64_t j = i % 3; j < c && i % 7 != 6; j += i % 5 + 1) {
        dense[std::size_t(i * c + j)] = T(number(i * c + j));
        columns.push_back(std::int32_t(j));
        values.push_back(T(number(i * c + j)));
      }
      starts.push_back(std::int64_t(values.size()));
    }
  }
  cpu::SparseMatrix<T> view() const { return {rows, cols, starts.data(), columns.data(), values.data()}; }
};

template <class T>
void check(std::int64_t rows, std::int64_t cols, std::int64_t n) {
  const Matrix<T> m(rows, cols);
  const double tolerance = std::is_same_v<T, float> ? 1e-4 : 1e-12;
  std::vector<T> x(std::size_t(n * cols)), g(std::size_t(n * rows));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = T(number(std::int64_t(i) + 5));
  for (std::size_t i = 0; i < g.size(); ++i) g[i] = T(number(std::int64_t(i) + 9));
  std::vector<T> y(g.size(), T(99)), dx(x.size(), T(99));
  cpu::sparse_product<T>(m.view(), n, x.data(), y.data());
  cpu::sparse_product_transposed<T>(m.view(), n, g.data(), dx.data());
  for (std::int64_t b = 0; b < n; ++b) {
    for (std::int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (std::int64_t c = 0; c < cols; ++c) {
        sum += double(m.dense[std::size_t(r * cols + c)]) * double(x[std::size_t(b * cols + c)]);
      }
      ASSERT_NEAR(double(y[std::size_t(b * rows + r)]), sum, tolerance) << b << " " << r;
    }
    for (std::int64_t c = 0; c < cols; ++c) {
      double sum = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        sum += double(m.dense[std::size_t(r * cols + c)]) * double(g[std::size_t(b * rows + r)]);
      }
      ASSERT_NEAR(double(dx[std::size_t(b * cols + c)]), sum, tolerance) << b << " " << c;
    }
  }
}

TEST(SparseKernels, MultiplyAsTheDefinition) {
  for_each_isa([] {
    for (const std::int64_t n : {0, 1, 3, 4, 16, 33, 70}) {
      check<float>(23, 61, n);
      check<double>(23, 61, n);
      check<float>(1, 1, n);
      check<float>(7, 0, n);
      check<float>(0, 7, n);
    }
  });
}

}  // namespace
