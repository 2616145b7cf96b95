#include <tenet/data/dataset.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <data/files.hpp>

using namespace tenet;
using namespace tenet::data;

namespace {

using Indices = std::vector<std::int64_t>;

// Example i is the square of i.
struct Squares {
  std::int64_t n = 10;
  std::int64_t size() const { return n; }
  std::int64_t get(std::int64_t i) const { return i * i; }
};

Indices numbers(const Dataset auto& d) {
  Indices all;
  for (std::int64_t i = 0; i < d.size(); ++i) all.push_back(d.get(i));
  return all;
}

TEST(Collate, PutsNumbersIntoATensor) {
  EXPECT_EQ(collate(std::vector<double>{1.5, 2}).to_vector(), (std::vector<double>{1.5, 2}));
  EXPECT_EQ(collate(std::vector<bool>{true, false}).to_vector(), (std::vector<bool>{true, false}));
  EXPECT_EQ(collate(std::vector<std::int64_t>{}).shape(), Shape({0}));
}

TEST(Collate, StacksTensorsOfAnyStrides) {
  const Tensor<float> a = tensor<float>({{1, 2}, {3, 4}});
  const Tensor<float> transposed(make_alias(*a.impl(), {2, 2}, {1, 2}, 0));
  const Tensor<float> batch = collate(std::vector{a, transposed});
  EXPECT_EQ(batch.shape(), Shape({2, 2, 2}));
  EXPECT_EQ(batch.to_vector(), (std::vector<float>{1, 2, 3, 4, 1, 3, 2, 4}));
  EXPECT_EQ(collate(std::vector{scalar(1.0f), scalar(2.0f)}).shape(), Shape({2}));
  EXPECT_EQ(collate(std::vector{zeros({0, 3})}).shape(), Shape({1, 0, 3}));
  EXPECT_NE(message<ShapeError>([] {
              collate(std::vector{zeros({2}), zeros({3})});
            }).find("[2] and [3]"),
            std::string::npos);
}

TEST(Collate, GoesIntoTuplesAndLeavesTheRest) {
  using Example = std::tuple<float, std::pair<std::int64_t, std::string>>;
  const auto [a, rest] = collate(std::vector<Example>{{1.0f, {2, "x"}}, {3.0f, {4, "y"}}});
  EXPECT_EQ(a.to_vector(), (std::vector<float>{1, 3}));
  EXPECT_EQ(std::get<0>(rest).to_vector(), (Indices{2, 4}));
  EXPECT_EQ(std::get<1>(rest), (std::vector<std::string>{"x", "y"}));
}

TEST(TensorDataset, SelectsRows) {
  const TensorDataset dataset(tensor<float>({{1, 2}, {3, 4}, {5, 6}}), tensor<std::int64_t>({7, 8, 9}));
  EXPECT_EQ(dataset.size(), 3);
  const auto [x, y] = dataset.get_batch(Indices{2, 0, 2});
  EXPECT_EQ(x.shape(), Shape({3, 2}));
  EXPECT_EQ(x.to_vector(), (std::vector<float>{5, 6, 1, 2, 5, 6}));
  EXPECT_EQ(y.to_vector(), (Indices{9, 7, 9}));
  const auto [row, label] = dataset.get(1);
  EXPECT_EQ(row.shape(), Shape({2}));
  EXPECT_EQ(row.to_vector(), (std::vector<float>{3, 4}));
  EXPECT_EQ(label.item(), 8);
  EXPECT_EQ(std::get<0>(dataset.get_batch({})).shape(), Shape({0, 2}));
  for (const std::int64_t wrong : {-1, 3}) {
    EXPECT_THROW(dataset.get(wrong), IndexError);
    EXPECT_THROW(dataset.get_batch(Indices{wrong}), IndexError);
  }
}

TEST(TensorDataset, TakesTensorsOfAnyStridesAndNone) {
  const Tensor<float> a = tensor<float>({{1, 2, 3}, {4, 5, 6}});
  const TensorDataset columns(Tensor<float>(make_alias(*a.impl(), {3, 2}, {1, 3}, 0)));
  EXPECT_EQ(std::get<0>(columns.get(1)).to_vector(), (std::vector<float>{2, 5}));
  EXPECT_EQ(TensorDataset(zeros({0, 4})).size(), 0);
  EXPECT_EQ(std::get<0>(TensorDataset(zeros({3, 0})).get_batch(Indices{2, 1})).shape(), Shape({2, 0}));
}

TEST(TensorDataset, RefusesTensorsThatDoNotFit) {
  EXPECT_NE(message<ShapeError>([] {
              TensorDataset(zeros({3, 2}), zeros({4}));
            }).find("[3, 2] and [4]"),
            std::string::npos);
  EXPECT_THROW(TensorDataset(scalar(1.0f)), ShapeError);
}

TEST(Subset, ShowsTheChosenExamples) {
  const Subset subset(Squares{}, {3, 1, 3});
  EXPECT_EQ(numbers(subset), (Indices{9, 1, 9}));
  EXPECT_EQ(get_batch(subset, Indices{2, 1}).to_vector(), (Indices{9, 1}));
  EXPECT_THROW(subset.get(3), IndexError);
  EXPECT_THROW(subset.get_batch(Indices{-1}), IndexError);
  EXPECT_THROW(Subset(Squares{}, {10}), IndexError);
}

TEST(ConcatDataset, GoesOnWithTheNextPart) {
  const ConcatDataset all(std::vector<Squares>{{2}, {0}, {3}});
  EXPECT_EQ(numbers(all), (Indices{0, 1, 0, 1, 4}));
  EXPECT_THROW(all.get(5), IndexError);
  EXPECT_EQ(ConcatDataset(std::vector<Squares>{}).size(), 0);
}

TEST(Transformed, AppliesTheFunction) {
  const Transformed halves(Squares{3}, [](std::int64_t x) { return double(x) / 2; });
  EXPECT_EQ(get_batch(halves, Indices{2, 1}).to_vector(), (std::vector<double>{2, 0.5}));
}

TEST(RandomSplit, MakesPartsThatShareNothing) {
  Generator generator(3);
  const auto [a, b, c] = random_split(Squares{10}, {5, 3, 2}, generator);
  EXPECT_EQ(a.size(), 5);
  EXPECT_EQ(b.size(), 3);
  Indices all = a.indices();
  for (const auto& part : {b, c}) all.insert(all.end(), part.indices().begin(), part.indices().end());
  EXPECT_FALSE(std::ranges::is_sorted(all));
  std::ranges::sort(all);
  EXPECT_EQ(all, (Indices{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));

  Generator again(3);
  EXPECT_EQ(random_split(Squares{10}, {5, 5}, again)[0].indices(), a.indices());
}

TEST(RandomSplit, TakesFractions) {
  const auto parts = random_split(Squares{10}, {0.35, 0.35, 0.3});  // 3, 3, 3, and one left
  EXPECT_EQ(parts[0].size(), 4);
  EXPECT_EQ(parts[1].size(), 3);
  EXPECT_EQ(parts[2].size(), 3);
  EXPECT_EQ(random_split(Squares{0}, {0.5f, 0.5f})[1].size(), 0);
  const auto halves = random_split(Squares{2'000'000}, {0.5, 0.5000009});  // rounding may make them more than all
  EXPECT_EQ(halves[0].size() + halves[1].size(), 2'000'000);
}

TEST(RandomSplit, RefusesPartsThatAreNotTheWhole) {
  EXPECT_THROW(random_split(Squares{10}, {5, 4}), Error);
  EXPECT_THROW(random_split(Squares{10}, {5, 6}), Error);
  EXPECT_THROW(random_split(Squares{10}, {12, -2}), Error);
  EXPECT_THROW(random_split(Squares{10}, {0.5, 0.6}), Error);
  EXPECT_THROW(random_split(Squares{10}, {1.5, -0.5}), Error);
}

}  // namespace
