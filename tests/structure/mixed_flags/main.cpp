// Objects with different flags in one program: every pair exchanges tensors, graphs, modes and exceptions.
#include "side.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#define SIDE(name) extern const Side name;
#include "sides.inc"
#undef SIDE

namespace {

const std::vector<const Side*> sides{
#define SIDE(name) &name,
#include "sides.inc"
#undef SIDE
};

void expect_near(const tenet::AnyTensor& got, const tenet::AnyTensor& want) {
  const tenet::Tensor<float> g(got), w(want);
  ASSERT_EQ(g.shape(), w.shape());
  for (std::int64_t i = 0; i < g.numel(); ++i) ASSERT_NEAR(g.data()[i], w.data()[i], 1e-5) << "element " << i;
}

template <class F>
void for_each_pair(const F& f) {
  for (const Side* a : sides)
    for (const Side* b : sides) {
      SCOPED_TRACE(std::string(a->name) + " with " + b->name);
      f(*a, *b);
    }
}

// The input comes from one object, the weight and the graph from another; the first walks and reads it.
std::pair<float, tenet::AnyTensor> train(const Side& a, const Side& b) {
  auto weight = b.make(2, {300, 40});
  weight.requires_grad_();
  auto loss = b.loss(a.make(1, {64, 300}), weight);
  a.backward(loss);
  const float value = loss.item();
  b.drop(std::move(loss));
  return {value, weight.grad_any()};
}

TEST(MixedFlags, ShareOneGraph) {
  const auto [value, gradient] = train(*sides[0], *sides[0]);
  for_each_pair([&, value = value, gradient = gradient](const Side& a, const Side& b) {
    const auto [other_value, other_gradient] = train(a, b);
    EXPECT_NEAR(other_value, value, 1e-5);
    expect_near(other_gradient, gradient);
  });
}

TEST(MixedFlags, DrawTheSameNumbersAndFreeEachOthers) {
  for_each_pair([](const Side& a, const Side& b) {
    auto x = a.make(7, {1000}), y = b.make(7, {1000});
    expect_near(x, y);
    a.drop(std::move(y));
    b.drop(std::move(x));
  });
}

TEST(MixedFlags, ShareModesAndExceptions) {
  for_each_pair([](const Side& a, const Side& b) {
    EXPECT_TRUE(a.records());
    EXPECT_FALSE(a.without_grad(b.records));
    EXPECT_TRUE(b.catches(a.fail));
  });
}

}  // namespace
