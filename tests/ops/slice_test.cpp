#include <tenet/ops/slice.hpp>
#include <tenet/ops/view.hpp>

#include "core/support.hpp"
#include "ops/op_cases.hpp"

namespace tenet {
namespace {

template <class F>
void check(const char* name, F f) {
  test::check({.name = name, .f = [f](const auto& x) { return f(x[0]); }, .file = "view.txt"});
}

TEST(Slice, Select) {
  check("select", [](const auto& x) { return select(x, 1, 2); });
  check("select_negative", [](const auto& x) { return select(x, -1, -2); });
}
TEST(Slice, Narrow) {
  check("narrow", [](const auto& x) { return narrow(x, 1, 1, 2); });
  check("narrow_negative", [](const auto& x) { return narrow(x, -1, -3, 2); });
  check("narrow_empty", [](const auto& x) { return narrow(x, 0, 3, 0); });
}
TEST(Slice, Slice) {
  check("slice", [](const auto& x) { return slice(x, 1, 1, 7, 2); });
  check("slice_clamped", [](const auto& x) { return slice(x, 0, -100, 100, 3); });
  check("slice_negative", [](const auto& x) { return slice(x, 0, -5, -1); });
  check("slice_backwards_is_empty", [](const auto& x) { return slice(x, 0, 5, 2); });
  check("slice_beyond", [](const auto& x) { return slice(x, 0, 8); });
}
TEST(Slice, Diagonal) {
  check("diagonal", [](const auto& x) { return diagonal(x); });
  check("diagonal_above", [](const auto& x) { return diagonal(x, 1, 0, 2); });
  check("diagonal_below", [](const auto& x) { return diagonal(x, -1, -1, 0); });
  check("diagonal_outside", [](const auto& x) { return diagonal(x, 4); });
}

std::vector<std::int64_t> lengths(const std::vector<Tensor<float>>& parts, int dim) {
  std::vector<std::int64_t> n;
  for (const auto& p : parts) n.push_back(p.size(dim));
  return n;
}

TEST(Slice, Lists) {
  using Lengths = std::vector<std::int64_t>;
  const Tensor<float> x = arange(14).view({2, 7});
  EXPECT_EQ(lengths(split(x, 3, 1), 1), (Lengths{3, 3, 1}));
  EXPECT_EQ(lengths(split(x, 100, -1), 1), (Lengths{7}));
  EXPECT_EQ(lengths(split(x, {1, 0, 6}, 1), 1), (Lengths{1, 0, 6}));
  EXPECT_EQ(lengths(chunk(x, 3, 1), 1), (Lengths{3, 3, 1}));
  EXPECT_EQ(lengths(chunk(x, 4, 1), 1), (Lengths{2, 2, 2, 1}));
  EXPECT_EQ(lengths(chunk(x, 6, 1), 1), (Lengths{2, 2, 2, 1}));  // as PyTorch: fewer, not shorter
  EXPECT_EQ(lengths(chunk(x, 9, 0), 0), (Lengths{1, 1}));
  EXPECT_EQ(split(x, 3, 1)[2].to_vector(), (std::vector<float>{6, 13}));
  EXPECT_EQ(split(x, {1, 0, 6}, 1)[2].to_vector(), x.narrow(1, 1, 6).to_vector());
  ASSERT_EQ(unbind(x, 1).size(), 7u);
  EXPECT_EQ(unbind(x, -1)[6].to_vector(), (std::vector<float>{6, 13}));
  const Tensor<float> none = zeros({0, 2});
  EXPECT_EQ(lengths(split(none, 0), 0), (Lengths{0}));
  EXPECT_EQ(lengths(split(none, 5), 0), (Lengths{0}));
  EXPECT_EQ(lengths(chunk(none, 3), 0), (Lengths{0, 0, 0}));
  EXPECT_TRUE(unbind(none).empty());
  float sum = 0;
  for (const Tensor<float> row : x) sum += row(0);
  EXPECT_EQ(sum, 7);
}

TEST(Slice, GradientsOfListsMeet) {
  auto x = arange<double>(6).view({2, 3}).detach().requires_grad_();
  const auto parts = split(x, 2, 1);
  (parts[0] * parts[0]).backward(ones<double>({2, 2}));
  (x[0] * unbind(x, 0)[1]).backward(ones<double>({3}));
  test::expect_near(x.grad(), tensor<double>({{3, 6, 5}, {6, 9, 2}}), 0, "gradient");
}

// Steps and bounds as far as numbers go.
TEST(Slice, ExtremeNumbers) {
  constexpr auto least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  const auto x = arange<std::int64_t>(5);
  using Values = std::vector<std::int64_t>;
  EXPECT_EQ(x.slice(0, least, most).to_vector(), (Values{0, 1, 2, 3, 4}));
  EXPECT_EQ(x.slice(0, 1, most, most).to_vector(), (Values{1}));
  EXPECT_EQ(x.slice(0, most, least).to_vector(), Values{});
  EXPECT_EQ(x.slice(0, 0, 5, 4).to_vector(), (Values{0, 4}));
  EXPECT_EQ(diagonal(x.view({1, 5}), most).numel(), 0);
  EXPECT_EQ(diagonal(x.view({1, 5}), least).numel(), 0);
  EXPECT_EQ(diagonal(x.view({1, 5}), 4).to_vector(), (Values{4}));
  EXPECT_THROW(x.select(0, least), IndexError);
  EXPECT_THROW(x.narrow(0, 1, most), ShapeError);
  EXPECT_THROW(x.narrow(0, least, 1), IndexError);
}

TEST(Slice, NamesWhatIsWrong) {
  const Tensor<float> x = zeros({2, 3}), s = scalar(1.f);
  EXPECT_EQ(message<IndexError>([&] { x.select(1, 3); }),
            "select: expected an index in [-3, 2] of dimension 1 of [2, 3], got 3");
  EXPECT_EQ(message<IndexError>([&] { x.select(2, 0); }), "select: expected a dimension in [-2, 1], got 2");
  EXPECT_EQ(message<ShapeError>([&] { s.select(0, 0); }), "select: expected at least one dimension, got a scalar");
  EXPECT_EQ(message<ShapeError>([&] { x.narrow(1, 1, 3); }),
            "narrow: expected a length in [0, 2] from 1 on along dimension 1 of [2, 3], got 3");
  EXPECT_THROW(x.narrow(1, 4, 0), IndexError);
  EXPECT_THROW(x.narrow(1, 0, -1), ShapeError);
  EXPECT_EQ(message<Error>([&] { x.slice(0, 0, 2, 0); }), "slice: expected a step of at least 1, got 0");
  EXPECT_THROW(x.slice(0, 1, 0, -1), Error);
  EXPECT_THROW(zeros({0}).select(0, 0), IndexError);
  EXPECT_THROW(diagonal(x, 0, 1, -1), ShapeError);
  EXPECT_THROW(diagonal(x, 0, 0, 2), IndexError);
  EXPECT_THROW(diagonal(arange(3)), ShapeError);
  EXPECT_THROW(unbind(s), ShapeError);
  EXPECT_THROW(split(x, 0, 0), ShapeError);
  EXPECT_THROW(split(x, -1, 0), ShapeError);
  EXPECT_EQ(message<ShapeError>([&] {
              split(x, {1, 1}, 1);
            }),
            "split: expected sizes of at least 0 that add up to 3, dimension 1 of [2, 3]; the 2 given do not");
  EXPECT_THROW(split(x, {4, -1}, 1), ShapeError);
  EXPECT_THROW(chunk(x, 0), Error);
}

}  // namespace
}  // namespace tenet
