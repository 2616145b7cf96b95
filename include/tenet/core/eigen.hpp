// as_eigen: a tensor's memory as a matrix of Eigen.
#pragma once

#include <tenet/core/tensor.hpp>

#include <Eigen/Core>

namespace tenet {
inline namespace TENET_CONFIG {

/// The elements of `t` as a matrix of Eigen: [rows, cols] as they are, [n] as one column, of any strides. The memory is
/// shared, and must be kept alive by a tensor. As with data(), what is written there is not recorded. Throws ShapeError
/// unless t has one or two dimensions, DeviceError unless it is on the CPU. See Eigen's documentation of Map.
template <class T>
auto as_eigen(const Tensor<T>& t) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Stride = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  if (t.dim() != 1 && t.dim() != 2) {
    throw ShapeError(text({"as_eigen: expected one or two dimensions, got ", t.shape()}));
  }
  if (!t.device().is_cpu()) throw DeviceError(text({"as_eigen: the tensor is on ", t.device(), ", not on the CPU"}));
  const bool column = t.dim() == 1;
  const Stride strides(t.strides()[0], column ? 1 : t.strides()[1]);
  return Eigen::Map<Matrix, Eigen::Unaligned, Stride>(t.data(), t.shape()[0], column ? 1 : t.shape()[1], strides);
}

}  // namespace TENET_CONFIG
}  // namespace tenet
