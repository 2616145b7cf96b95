#include <tenet/core/shape.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

using namespace tenet;

namespace {

constexpr std::int64_t big = std::int64_t{1} << 32;

std::string refusal(const Dims& sizes) {
  try {
    Shape{sizes};
  } catch (const ShapeError& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST(Dims, HoldsUpToEightNumbers) {
  Dims d{1, 2, 3, 4, 5, 6, 7};
  d.push_back(8);
  EXPECT_EQ(d.size(), 8);
  EXPECT_EQ(d.str(), "[1, 2, 3, 4, 5, 6, 7, 8]");
  EXPECT_THROW(d.push_back(9), ShapeError);
  EXPECT_THROW(d.insert(0, 9), ShapeError);
  EXPECT_THROW((Dims{1, 2, 3, 4, 5, 6, 7, 8, 9}), ShapeError);
  EXPECT_EQ(d.size(), 8);
}

TEST(Dims, InsertsErasesAndFinds) {
  Dims d{1, 2, 3};
  d.insert(0, 9);
  d.insert(4, -1);
  d.insert(2, 7);
  EXPECT_EQ(d, (Dims{9, 1, 7, 2, 3, -1}));
  d.erase(0);
  d.erase(4);
  EXPECT_EQ(d, (Dims{1, 7, 2, 3}));
  EXPECT_TRUE(d.contains(3));
  EXPECT_FALSE(d.contains(9));
  EXPECT_FALSE(d == (Dims{1, 7, 2}));
  EXPECT_FALSE(d == (Dims{1, 7, 2, 4}));
  EXPECT_EQ(Dims{}.str(), "[]");
}

TEST(Shape, CountsElementsIn64Bits) {
  EXPECT_EQ(Shape{}.numel(), 1);
  EXPECT_EQ((Shape{2, 0, 3}).numel(), 0);
  EXPECT_EQ((Shape{65536, 65536}).numel(), 4294967296);
  EXPECT_EQ((Shape{std::numeric_limits<std::int64_t>::max()}).numel(), std::numeric_limits<std::int64_t>::max());
}

TEST(Shape, RefusesWhatInt64CannotCount) {
  EXPECT_NE(refusal({big, big}).find("[4294967296, 4294967296] has more elements"), std::string::npos);
  EXPECT_NE(refusal({big, big / 2}).find("more elements"), std::string::npos);
  EXPECT_EQ(refusal({big, big / 4}), "accepted");
  // No element, but strides that overflow.
  EXPECT_NE(refusal({0, big, big}).find("more elements"), std::string::npos);
  EXPECT_NE(refusal({big, big, 0}).find("more elements"), std::string::npos);
}

TEST(Shape, RefusesNegativeSizes) {
  EXPECT_NE(refusal({2, -1}).find("negative size in shape [2, -1]"), std::string::npos);
  EXPECT_NE(refusal({-1, 0}).find("negative"), std::string::npos);
  EXPECT_NE(refusal({std::numeric_limits<std::int64_t>::min()}).find("negative"), std::string::npos);
}

TEST(Strides, AreRowMajorIn64Bits) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Strides{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), Strides{});
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (Strides{4, 4, 1}));
  const Strides wide = contiguous_strides({300000, 8960});
  EXPECT_EQ(239674 * wide[0] + 8959 * wide[1], 2147487999);
  const Strides square = contiguous_strides({65536, 65536});
  EXPECT_EQ(40000 * square[0] + square[1], 2621440001);
}

TEST(Strides, AreContiguousWithoutGaps) {
  EXPECT_TRUE(is_contiguous({2, 3}, {3, 1}));
  EXPECT_TRUE(is_contiguous({}, {}));
  EXPECT_TRUE(is_contiguous({2, 1, 3}, {3, 77, 1}));
  EXPECT_FALSE(is_contiguous({2, 3}, {1, 2}));
  EXPECT_FALSE(is_contiguous({2, 3}, {4, 1}));
  EXPECT_FALSE(is_contiguous({2, 3}, {0, 1}));
  EXPECT_TRUE(is_contiguous({0, 3}, {1, 4}));
  EXPECT_TRUE(is_contiguous({3, 0}, {0, 0}));
}

TEST(WrapDim, CountsFromTheEnd) {
  EXPECT_EQ(wrap_dim("op", 0, 3), 0);
  EXPECT_EQ(wrap_dim("op", -1, 3), 2);
  EXPECT_EQ(wrap_dim("op", -3, 3), 0);
  EXPECT_EQ(wrap_dim("op", 0, 0), 0);
  EXPECT_EQ(wrap_dim("op", -1, 0), 0);
  for (std::int64_t d : {std::int64_t{3}, std::int64_t{-4}, big, -big}) EXPECT_THROW(wrap_dim("op", d, 3), IndexError);
  EXPECT_THROW(wrap_dim("op", 1, 0), IndexError);
  try {
    wrap_dim("softmax", 5, 2);
    FAIL();
  } catch (const IndexError& e) {
    EXPECT_STREQ(e.what(), "softmax: expected a dimension in [-2, 1], got 5");
  }
}

TEST(Broadcast, FollowsNumPy) {
  EXPECT_EQ(broadcast_shapes("op", {2, 1}, {1, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes("op", {3}, {4, 1}), (Shape{4, 3}));
  EXPECT_EQ(broadcast_shapes("op", {}, {2, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes("op", {2, 3}, {}), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes("op", {1}, {0}), (Shape{0}));
  EXPECT_EQ(broadcast_shapes("op", {0, 3}, {1, 3}), (Shape{0, 3}));
  EXPECT_THROW(broadcast_shapes("op", {0}, {2}), ShapeError);
  EXPECT_THROW(broadcast_shapes("op", {2, 3}, {2}), ShapeError);
  EXPECT_THROW(broadcast_shapes("op", {big, 1}, {1, big}), ShapeError);
  try {
    broadcast_shapes("add", {2, 3}, {4});
    FAIL();
  } catch (const ShapeError& e) {
    EXPECT_STREQ(e.what(), "add: shapes [2, 3] and [4] do not broadcast");
  }
}

TEST(Broadcast, StridesStandStillAlongWhatIsRepeated) {
  EXPECT_EQ(broadcast_strides({3, 1}, {1, 1}, {2, 3, 4}), (Strides{0, 1, 0}));
  EXPECT_EQ(broadcast_strides({3, 1}, {5, 7}, {3, 1}), (Strides{5, 7}));
  EXPECT_EQ(broadcast_strides({}, {}, {2}), (Strides{0}));
}
