#include <tenet/data/mnist.hpp>

#include <gtest/gtest.h>

#include <data/files.hpp>

using namespace tenet;
using data::FashionMNIST;
using data::MNIST;

namespace {

Bytes images(int n, int rows = 28, int columns = 28) {
  Bytes b{0, 0, 8, 3, 0, 0, 0, std::uint8_t(n), 0, 0, 0, std::uint8_t(rows), 0, 0, 0, std::uint8_t(columns)};
  for (int i = 0; i < n * rows * columns; ++i) b.push_back(std::uint8_t(i % 251));
  return b;
}
Bytes labels(int n, int first = 0) {
  Bytes b{0, 0, 8, 1, 0, 0, 0, std::uint8_t(n)};
  for (int i = 0; i < n; ++i) b.push_back(std::uint8_t(first + i));
  return b;
}

std::string refusal(const Bytes& image_file, const Bytes& label_file) {
  const TemporaryFolder folder;
  folder.write("train-images-idx3-ubyte", image_file);
  folder.write("train-labels-idx1-ubyte.gz", gzip(label_file));
  return message<FormatError>([&] { MNIST(folder.path()); });
}

bool has(const std::string& whole, const char* part) { return whole.find(part) != std::string::npos; }

TEST(Mnist, ReadsTheBundledDigits) {
  for (const bool train : {true, false}) {
    const MNIST digits(TENET_DIGITS_DIR, train);
    ASSERT_EQ(digits.size(), train ? 6000 : 1000);
    std::vector<int> count(10);
    for (const int label : digits.labels().to_vector()) ++count[std::size_t(label)];
    EXPECT_EQ(count, std::vector<int>(10, train ? 600 : 100));
  }
  // Normalized by its own mean and deviation, a balanced part of MNIST has about mean 0 and variance 1.
  const MNIST digits(TENET_DIGITS_DIR, true, MNIST::standard);
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < digits.size(); ++i) all.push_back(i);
  double sum = 0, squares = 0;
  for (const double x : std::get<0>(digits.get_batch(all)).to_vector()) sum += x, squares += x * x;
  EXPECT_NEAR(sum / (6000 * 784), 0, 0.02);
  EXPECT_NEAR(squares / (6000 * 784), 1, 0.02);
}

TEST(Mnist, ABatchIsWhatItsIndicesSay) {
  const TemporaryFolder folder;
  folder.write("t10k-images-idx3-ubyte.gz", gzip(images(5)));
  folder.write("t10k-labels-idx1-ubyte", labels(5, 3));
  const MNIST digits(folder.path(), false, {.mean = 0.5f, .std = 0.25f});
  const std::vector<std::int64_t> indices{4, 0, 4};
  auto [inputs, targets] = digits.get_batch(indices);
  EXPECT_EQ(inputs.shape(), Shape({3, 1, 28, 28}));
  EXPECT_EQ(targets.to_vector(), (std::vector<std::int64_t>{7, 3, 7}));
  for (int k = 0; k < 3; ++k) {
    for (int i = 0; i < 784; ++i) {
      const auto grey = float((int(indices[std::size_t(k)]) * 784 + i) % 251);
      ASSERT_EQ(inputs.data()[k * 784 + i], (grey / 255.0f - 0.5f) / 0.25f);
    }
  }
  const auto [image, label] = digits.get(2);
  EXPECT_EQ(image.shape(), Shape({1, 28, 28}));
  EXPECT_EQ(image(0, 1, 2), (float((2 * 784 + 30) % 251) / 255.0f - 0.5f) / 0.25f);
  EXPECT_EQ(label, 5);
  EXPECT_EQ(std::get<0>(digits.get_batch({})).shape(), Shape({0, 1, 28, 28}));
  EXPECT_TRUE(has(message<IndexError>([&] { digits.get(5); }), "[0, 5), got 5"));
  EXPECT_TRUE(has(message<IndexError>([&] { digits.get(-1); }), "got -1"));
}

TEST(Mnist, EachHasItsOwnNormalization) {
  const TemporaryFolder folder;
  folder.write("train-images-idx3-ubyte", images(1));
  folder.write("train-labels-idx1-ubyte", labels(1));
  const FashionMNIST clothes(folder.path(), true, FashionMNIST::standard);
  const MNIST digits(folder.path(), true, MNIST::standard), plain(folder.path());
  EXPECT_EQ(std::get<0>(clothes.get(0)).data()[0], -0.2860f / 0.3530f);
  EXPECT_EQ(std::get<0>(digits.get(0)).data()[0], -0.1307f / 0.3081f);
  EXPECT_EQ(std::get<0>(plain.get(0)).data()[250], 250 / 255.0f);
  for (const auto& [mean, std] : {std::pair{0.5f, 0.0f}, {0.5f, -1.0f}, {0.5f, NAN}, {INFINITY, 1.0f}}) {
    EXPECT_TRUE(has(message<Error>([&, m = mean, s = std] { MNIST(folder.path(), true, {m, s}); }), "a std > 0"));
  }
}

TEST(Mnist, RefusesFilesThatDoNotFit) {
  EXPECT_TRUE(has(refusal(images(10), labels(9)), "has 10 images, but"));
  EXPECT_TRUE(has(refusal(labels(10), images(10)), "expected labels [N]"));
  EXPECT_TRUE(has(refusal(labels(10), labels(10)), "expected images [N, 28, 28]"));
  EXPECT_TRUE(has(refusal(images(2, 28, 27), labels(2)), "expected images [N, 28, 28]"));
  EXPECT_TRUE(has(refusal(images(3), labels(3, 9)), "label 1 is 10"));
  EXPECT_TRUE(has(message<Error>([] { MNIST("/no/such/folder"); }), "/no/such/folder/train-images-idx3-ubyte"));
}

}  // namespace
