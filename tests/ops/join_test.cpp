#include <tenet/ops/join.hpp>

#include "core/support.hpp"
#include "ops/op_cases.hpp"

namespace tenet {
namespace {

template <class F>
void check(const char* name, F f) {
  test::check({.name = name, .f = f, .file = "join.txt"});
}

TEST(Join, Cat) {
  check("cat", [](const auto& x) { return cat(x, 1); });
  check("cat_last", [](const auto& x) { return cat({x[0], x[1]}, -1); });
  check("cat_one", [](const auto& x) { return cat({x[0]}); });
  check("cat_nothing", [](const auto& x) { return cat(x, 1); });
  check("cat_twice", [](const auto& x) { return cat({x[0], x[0]}); });
  check("cat_empty", [](const auto& x) { return cat(x, 1); });
}
TEST(Join, Stack) {
  check("stack", [](const auto& x) { return stack({x[0], x[1]}, 1); });
  check("stack_last", [](const auto& x) { return stack(x, -1); });
  check("stack_scalars", [](const auto& x) { return stack(x); });
  check("hstack", [](const auto& x) { return hstack(x); });
  check("hstack_lists", [](const auto& x) { return hstack({x[0], x[1]}); });
  check("vstack", [](const auto& x) { return vstack(x); });
  check("vstack_scalars", [](const auto& x) { return vstack({x[0], x[1]}); });
}

template <class T>
void expect_joined() {
  const Tensor<T> x = from_vector<T>({T(0), T(1), T(1), T(0)}, {2, 2});
  EXPECT_EQ(cat({x, x.t(), x.narrow(1, 0, 1)}, 1).to_vector(),
            (std::vector<T>{T(0), T(1), T(0), T(1), T(0), T(1), T(0), T(1), T(0), T(1)}));
  EXPECT_EQ(stack({x, x}, 2).shape(), (Shape{2, 2, 2}));
}
TEST(Join, ElementTypes) {
  expect_joined<half>();
  expect_joined<std::int64_t>();
  expect_joined<std::uint8_t>();
  expect_joined<bool>();
}

TEST(Join, Nothing) {
  const Tensor<float> none = zeros({0}), x = ones({2, 3});
  EXPECT_EQ(cat({none, none}).shape(), (Shape{0}));
  EXPECT_EQ(cat({none, x}, -1).shape(), (Shape{2, 3}));
  EXPECT_EQ(cat({zeros({0, 3}), x}).shape(), (Shape{2, 3}));
  EXPECT_EQ(cat({zeros({2, 0}), zeros({2, 0})}, 0).shape(), (Shape{4, 0}));
}

// More tensors than one node holds.
TEST(Join, ManyTensors) {
  auto x = ones<double>({1}).requires_grad_();
  const auto y = cat(std::vector<Tensor<double>>(70'000, x));
  EXPECT_EQ(y.shape(), (Shape{70'000}));
  y.backward(ones<double>({70'000}));
  EXPECT_EQ(x.grad().item(), 70'000);
}

TEST(Join, NamesWhatIsWrong) {
  const Tensor<float> x = zeros({2, 3}), y = zeros({2, 2});
  EXPECT_EQ(message<ShapeError>([&] {
              cat({x, y}, 0);
            }),
            "cat: expected tensors alike but in dimension 0, got [2, 3] and, as number 1, [2, 2]");
  EXPECT_THROW(cat({x, zeros({2, 3, 1})}), ShapeError);
  EXPECT_THROW(cat({x, zeros({0, 2})}), ShapeError);
  EXPECT_EQ(message<IndexError>([&] { cat({x, y}, 2); }), "cat: expected a dimension in [-2, 1], got 2");
  EXPECT_EQ(message<ShapeError>([&] { cat(std::vector<Tensor<float>>{}); }),
            "cat: expected at least one tensor, got none");
  EXPECT_THROW(cat({x, scalar(1.f)}), ShapeError);
  EXPECT_EQ(message<ShapeError>([&] { stack({x, y}); }), "stack: expected tensors of one shape, got [2, 3] and [2, 2]");
  EXPECT_THROW(stack(std::vector<Tensor<float>>{}), ShapeError);
  EXPECT_THROW(stack({x, x}, 3), IndexError);
  EXPECT_THROW(hstack(std::vector<Tensor<float>>{}), ShapeError);
  EXPECT_THROW(cat({x, Tensor<float>()}), Error);
}

}  // namespace
}  // namespace tenet
