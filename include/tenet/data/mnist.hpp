// MNIST (LeCun, Bottou, Bengio and Haffner, Gradient-based learning applied to document recognition, 1998) and
// Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017), which comes in the same files. Needs zlib: tenet::gzip.
#pragma once

#include <tenet/data/gzip.hpp>

#include <cmath>
#include <span>
#include <tuple>

#include <unistd.h>

namespace tenet::data {

/// What grey values become: (value / 255 - mean) / std. The default leaves them in [0, 1].
struct Normalization {
  float mean = 0;
  float std = 1;
};

/// Images of 28 x 28 grey values with labels 0 to 9, held as bytes: converted when a batch is made. A handle:
/// copies share the memory.
class MNIST {
 public:
  using Example = std::tuple<Tensor<float>, std::int64_t>;
  using Batch = std::tuple<Tensor<float>, Tensor<std::int64_t>>;

  /// The mean and standard deviation of all training images.
  static constexpr Normalization standard{0.1307f, 0.3081f};

  /// Reads train-images-idx3-ubyte and train-labels-idx1-ubyte (or t10k-..., if not `train`), or these names
  /// with .gz, in the folder `root`. Throws Error when there are none and for a std that cannot divide, FormatError
  /// when they are not what their names say.
  TENET_TAG explicit MNIST(const std::string& root, bool train = true, Normalization normalization = {});

  TENET_TAG std::int64_t size() const { return images_.size(0); }
  /// The grey values [N, 28, 28] and the labels [N] as they are in the files.
  TENET_TAG const Tensor<std::uint8_t>& images() const { return images_; }
  TENET_TAG const Tensor<std::uint8_t>& labels() const { return labels_; }

  /// Image [1, 28, 28], normalized, and label; throws IndexError.
  TENET_TAG Example get(std::int64_t index) const {
    auto [images, labels] = get_batch(std::span(&index, 1));
    return {Tensor<float>(make_alias(*images.impl(), {1, rows, columns}, {rows * columns, columns, 1}, 0)),
            labels.item()};
  }
  /// Images [N, 1, 28, 28], normalized, and labels [N]; throws IndexError.
  TENET_TAG Batch get_batch(std::span<const std::int64_t> indices) const;

 private:
  static constexpr std::int64_t rows = 28, columns = 28, classes = 10;

  Tensor<std::uint8_t> images_, labels_;
  float value_[256];  // of each grey value
};

/// Pictures of ten kinds of clothes, in MNIST's form.
class FashionMNIST : public MNIST {
 public:
  static constexpr Normalization standard{0.2860f, 0.3530f};

  TENET_TAG explicit FashionMNIST(const std::string& root, bool train = true, Normalization normalization = {})
      : MNIST(root, train, normalization) {}
};

inline namespace TENET_CONFIG {
namespace detail {

/// `name` in the folder `root`, or name.gz there.
TENET_COLD inline std::string find_mnist(const std::string& root, const std::string& name) {
  const std::string plain = root + "/" + name, compressed = plain + ".gz";
  for (const std::string& path : {plain, compressed}) {
    if (::access(path.c_str(), F_OK) == 0) return path;
  }
  throw Error(text({"mnist: expected '", plain, "' or '", compressed, "', found neither"}));
}

}  // namespace detail
}  // namespace TENET_CONFIG

TENET_TAG TENET_COLD inline MNIST::MNIST(const std::string& root, bool train, Normalization normalization) {
  if (!std::isfinite(normalization.mean) || !std::isnormal(normalization.std) || normalization.std < 0) {
    throw Error(
        text({"mnist: expected a finite mean and a std > 0, got ", normalization.mean, " and ", normalization.std}));
  }
  const std::string part = root.empty() ? "." : root, prefix = train ? "train" : "t10k";
  const std::string image_file = detail::find_mnist(part, prefix + "-images-idx3-ubyte");
  const std::string label_file = detail::find_mnist(part, prefix + "-labels-idx1-ubyte");
  labels_ = read_idx_gzip<std::uint8_t>(label_file);
  if (labels_.dim() != 1) {
    throw FormatError(text({"mnist: expected labels [N] in '", label_file, "', got ", labels_.shape()}));
  }
  images_ = read_idx_gzip<std::uint8_t>(image_file);
  if (images_.dim() != 3 || images_.size(1) != rows || images_.size(2) != columns) {
    throw FormatError(text({"mnist: expected images [N, 28, 28] in '", image_file, "', got ", images_.shape()}));
  }
  if (images_.size(0) != labels_.size(0)) {
    throw FormatError(text({"mnist: '", image_file, "' has ", images_.size(0), " images, but '", label_file, "' has ",
                            labels_.size(0), " labels"}));
  }
  for (std::int64_t i = 0; i < size(); ++i) {
    const int label = labels_.data()[i];
    if (label >= classes) {
      throw FormatError(text({"mnist: expected labels 0 to 9 in '", label_file, "', label ", i, " is ", label}));
    }
  }
  for (int v = 0; v < 256; ++v) value_[v] = (float(v) / 255.0f - normalization.mean) / normalization.std;
}

TENET_TAG inline MNIST::Batch MNIST::get_batch(std::span<const std::int64_t> indices) const {
  const std::int64_t n = std::int64_t(indices.size()), pixels = rows * columns;
  Batch batch(empty<float>({n, 1, rows, columns}), empty<std::int64_t>({n}));
  float* out = std::get<0>(batch).data();
  std::int64_t* label = std::get<1>(batch).data();
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= size()) {
      throw IndexError(text({"mnist: expected an index in [0, ", size(), "), got ", index}));
    }
    const std::uint8_t* in = images_.data() + index * pixels;
    for (std::int64_t i = 0; i < pixels; ++i) *out++ = value_[in[i]];
    *label++ = labels_.data()[index];
  }
  return batch;
}

}  // namespace tenet::data
