#include <tenet/ops/rearrange.hpp>

#include "core/support.hpp"
#include "ops/op_cases.hpp"

namespace tenet {
namespace {

template <class F>
void check(const std::string& name, F f) {
  test::check({.name = name, .f = [f](const auto& x) { return f(x[0]); }, .file = "rearrange.txt"});
}

TEST(Rearrange, Flip) {
  check("flip", [](const auto& x) { return flip(x, {0, -1}); });
  check("flip_one", [](const auto& x) { return flip(x, {1}); });
  check("flip_none", [](const auto& x) { return flip(x, {}); });
  check("flip_empty", [](const auto& x) { return flip(x, {0}); });
}
TEST(Rearrange, Roll) {
  check("roll", [](const auto& x) { return roll(x, {1}, {0}); });
  check("roll_back", [](const auto& x) { return roll(x, {-1, 5}, {0, 1}); });
  check("roll_flat", [](const auto& x) { return roll(x, {-2}); });
  check("roll_empty", [](const auto& x) { return roll(x, {1}, {1}); });
}
TEST(Rearrange, Pad) {
  check("pad", [](const auto& x) { return pad(x, {1, 2}); });
  check("pad_planes", [](const auto& x) { return pad(x, {1, 0, 0, 2}, PadMode::constant, 0.5); });
  check("pad_cuts", [](const auto& x) { return pad(x, {-1, 1, 2, -1}, PadMode::constant, -1.5); });
  check("pad_empty", [](const auto& x) { return pad(x, {1, 1}, PadMode::constant, 2.5); });
  check("pad_reflect", [](const auto& x) { return pad(x, {2, 1, 1, 0}, PadMode::reflect); });
  check("pad_replicate", [](const auto& x) { return pad(x, {4, 1, 0, 2}, PadMode::replicate); });
  check("pad_circular", [](const auto& x) { return pad(x, {3, 1, 1, 2}, PadMode::circular); });
}
TEST(Rearrange, Triangles) {
  for (const std::int64_t k : {0, 1, -1, 3, -4, 100}) {
    check("tril_" + std::to_string(k), [k](const auto& x) { return tril(x, k); });
    check("triu_" + std::to_string(k), [k](const auto& x) { return triu(x, k); });
  }
}
TEST(Rearrange, Repeat) {
  check("repeat", [](const auto& x) { return repeat(x, {2, 1, 3}); });
  check("repeat_inner", [](const auto& x) { return repeat(x, {2, 3}); });
  check("repeat_none", [](const auto& x) { return repeat(x, {1, 1}); });
  check("repeat_zero", [](const auto& x) { return repeat(x, {2, 0}); });
  check("tile", [](const auto& x) { return tile(x, {2}); });
  check("repeat_interleave", [](const auto& x) { return repeat_interleave(x, 2, 1); });
  check("repeat_interleave_last", [](const auto& x) { return repeat_interleave(x, 3, -1); });
  check("repeat_interleave_zero", [](const auto& x) { return repeat_interleave(x, 0, 0); });
}

template <class T>
void expect_rearranged() {
  const T o = T(0), i = T(1);
  const Tensor<T> x = from_vector<T>({i, o, o, i, i, o}, {2, 3});
  EXPECT_EQ(flip(x, {1}).to_vector(), (std::vector<T>{o, o, i, o, i, i}));
  EXPECT_EQ(roll(x.t(), {1}, {0}).to_vector(), (std::vector<T>{o, o, i, i, o, i}));
  EXPECT_EQ(pad(x, {-1, 0, 0, 1}, PadMode::constant, i).to_vector(), (std::vector<T>{o, o, i, o, i, i}));
  EXPECT_EQ(pad(x, {0, 1}, PadMode::replicate).to_vector(), (std::vector<T>{i, o, o, o, i, i, o, o}));
  EXPECT_EQ(triu(x).to_vector(), (std::vector<T>{i, o, o, o, i, o}));
  EXPECT_EQ(tril(x.t()).to_vector(), (std::vector<T>{i, o, o, i, o, o}));
  EXPECT_EQ(repeat(x.narrow(0, 0, 1), {1, 2}).to_vector(), (std::vector<T>{i, o, o, i, o, o}));
  EXPECT_EQ(repeat_interleave(x.narrow(0, 0, 1), 2, 1).to_vector(), (std::vector<T>{i, i, o, o, o, o}));
}
TEST(Rearrange, ElementTypes) {
  expect_rearranged<half>();
  expect_rearranged<std::int64_t>();
  expect_rearranged<std::uint8_t>();
  expect_rearranged<bool>();
}

// All of them give memory of their own.
TEST(Rearrange, Copies) {
  const Tensor<float> x = ones({2, 2});
  for (const auto& y : {flip(x, {}), pad(x, {0, 0}), tril(x, 5), repeat(x, {1, 1}), repeat(x, {1, 1, 1}),
                        repeat_interleave(x, 1, 0), roll(x, {0}, {0})}) {
    EXPECT_NE(y.impl()->storage.get(), x.impl()->storage.get());
    EXPECT_TRUE(y.is_contiguous());
  }
}

TEST(Rearrange, LargestNumbers) {
  constexpr auto least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  const Tensor<float> x = ones({2, 3});
  EXPECT_EQ(triu(x, most).to_vector(), std::vector<float>(6, 0));
  EXPECT_EQ(triu(x, least).to_vector(), std::vector<float>(6, 1));
  EXPECT_EQ(tril(x, least).to_vector(), std::vector<float>(6, 0));
  EXPECT_EQ(roll(x, {least}, {1}).shape(), x.shape());
  EXPECT_THROW(pad(x, {most, most}), ShapeError);
  EXPECT_THROW(pad(x, {least, 0}), ShapeError);
  EXPECT_THROW(pad(x, {most, most}, PadMode::replicate), ShapeError);
  EXPECT_THROW(repeat(x, {most, 1}), ShapeError);
  EXPECT_THROW(repeat_interleave(x, most, 1), ShapeError);
  EXPECT_EQ(tril(zeros({0, 3, 3})).shape(), (Shape{0, 3, 3}));
  EXPECT_EQ(tril(zeros({2, 3, 0})).shape(), (Shape{2, 3, 0}));
  EXPECT_EQ(repeat(zeros({1, 1, 1, 1, 1, 1, 1, 1}), {2, 1, 2, 1, 1, 1, 1, 2}).numel(), 8);
}

TEST(Rearrange, NamesWhatIsWrong) {
  const Tensor<float> x = zeros({2, 3});
  EXPECT_EQ(message<IndexError>([&] { flip(x, {0, -2}); }), "flip: expected each dimension once, got [0, -2]");
  EXPECT_THROW(flip(x, {2}), IndexError);
  EXPECT_EQ(message<ShapeError>([&] {
              roll(x, {1, 2}, {0});
            }),
            "roll: expected a shift for each dimension, got [1, 2] for [0]");
  EXPECT_THROW(roll(x, {1, 2}), ShapeError);
  EXPECT_THROW(roll(scalar(1.f), {1}, {0}), ShapeError);
  EXPECT_EQ(message<ShapeError>([&] { pad(x, {1}); }),
            "pad: expected pairs for at most 2 dimensions of [2, 3], got 1 numbers");
  EXPECT_THROW(pad(x, {0, 0, 0, 0, 0, 0}), ShapeError);
  EXPECT_EQ(message<ShapeError>([&] {
              pad(x, {-2, -2});
            }),
            "pad: cannot pad [2, 3] by [0, -2] before and [0, -2] after");
  EXPECT_EQ(message<ShapeError>([&] {
              pad(x, {3, 0}, PadMode::reflect);
            }),
            "pad: expected from 0 to 2 entries around a size of 3, got 3 and 0");
  EXPECT_THROW(pad(x, {4, 0}, PadMode::circular), ShapeError);
  EXPECT_THROW(pad(x, {-1, 0}, PadMode::replicate), ShapeError);
  EXPECT_THROW(pad(zeros({2, 0}), {1, 0}, PadMode::replicate), ShapeError);
  EXPECT_EQ(message<ShapeError>([&] { tril(arange(3)); }), "tril: expected at least 2 dimensions, got [3]");
  EXPECT_THROW(triu(scalar(1.f)), ShapeError);
  EXPECT_EQ(message<ShapeError>([&] { repeat(x, {2}); }), "repeat: expected at least 2 numbers for [2, 3], got [2]");
  EXPECT_THROW(repeat(x, {-1, 1}), ShapeError);
  EXPECT_THROW(repeat_interleave(x, -1, 0), ShapeError);
  EXPECT_THROW(repeat_interleave(x, 2, 2), IndexError);
}

}  // namespace
}  // namespace tenet
