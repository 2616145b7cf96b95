#include <tenet/ops/sort.hpp>

#include "core/support.hpp"
#include "ops/op_cases.hpp"

namespace tenet {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

template <class F>
void check(const char* name, F f) {
  test::check({.name = name, .f = [f](const auto& x) { return f(x[0]).values; }, .file = "sort.txt"});
}

TEST(Sort, Sort) {
  check("sort", [](const auto& x) { return sort(x); });
  check("sort_first", [](const auto& x) { return sort(x, 0, true); });
  check("sort_middle", [](const auto& x) { return sort(x, 1); });
  check("sort_scalar", [](const auto& x) { return sort(x); });
  check("sort_empty", [](const auto& x) { return sort(x, 0); });
}
TEST(Sort, Topk) {
  check("topk", [](const auto& x) { return topk(x, 3); });
  check("topk_least", [](const auto& x) { return topk(x, 2, 0, false); });
  check("topk_all", [](const auto& x) { return topk(x, 4, 1); });
  check("topk_none", [](const auto& x) { return topk(x, 0); });
  check("kthvalue", [](const auto& x) { return kthvalue(x, 2); });
  check("kthvalue_keepdim", [](const auto& x) { return kthvalue(x, 3, 0, true); });
}

using Indices = std::vector<std::int64_t>;

template <class T>
void expect_special_values() {
  const Tensor<T> x = from_vector<T>({T(nan), T(1), T(-inf), T(0), T(-0.0), T(inf), T(nan), T(-1), T(1)});
  EXPECT_EQ(argsort(x).to_vector(), (Indices{2, 7, 3, 4, 1, 8, 5, 0, 6}));
  EXPECT_EQ(argsort(x, 0, true).to_vector(), (Indices{0, 6, 5, 1, 8, 3, 4, 7, 2}));
  EXPECT_EQ(topk(x, 4).indices.to_vector(), (Indices{0, 6, 5, 1}));
  EXPECT_EQ(topk(x, 3, 0, false).indices.to_vector(), (Indices{2, 7, 3}));
  test::expect_near(sort(x).values, from_vector<double>({-inf, -1, 0, -0.0, 1, 1, inf, nan, nan}), 0, "values");
}
TEST(Sort, SpecialValues) {
  expect_special_values<float>();
  expect_special_values<double>();
  expect_special_values<half>();
  expect_special_values<bfloat16>();
}

template <class T>
void expect_limits_in_order() {
  using Limits = std::numeric_limits<T>;
  const Tensor<T> x = from_vector<T>({T(1), Limits::max(), T(0), Limits::lowest(), T(1)});
  const bool unsigned_type = Limits::lowest() == T(0), largest_is_one = Limits::max() == T(1);
  EXPECT_EQ(sort(x).indices.to_vector(), !unsigned_type   ? (Indices{3, 2, 0, 4, 1})
                                         : largest_is_one ? (Indices{2, 3, 0, 1, 4})
                                                          : (Indices{2, 3, 0, 4, 1}));
  EXPECT_EQ(topk(x, 1).values.item(), Limits::max());
  EXPECT_EQ(topk(x, 1, 0, false).values.item(), Limits::lowest());
}
TEST(Sort, Limits) {
  expect_limits_in_order<std::int8_t>();
  expect_limits_in_order<std::uint8_t>();
  expect_limits_in_order<std::int32_t>();
  expect_limits_in_order<std::int64_t>();
  expect_limits_in_order<bool>();
  expect_limits_in_order<float>();
  expect_limits_in_order<double>();
}

// Equal elements keep their order, either way, in lines of any length.
TEST(Sort, IsStable) {
  Generator generator(5);
  for (const std::int64_t n : {1, 2, 17, 1000}) {
    const auto x = randint(0, 4, {n, 3}, generator);
    for (const bool descending : {false, true}) {
      const auto s = sort(x, 0, descending);
      for (int c = 0; c < 3; ++c) {
        for (std::int64_t i = 1; i < n; ++i) {
          const auto a = s.values(i - 1, c), b = s.values(i, c);
          EXPECT_TRUE(descending ? a >= b : a <= b);
          EXPECT_TRUE(a != b || s.indices(i - 1, c) < s.indices(i, c));
        }
      }
      const auto first = topk(x, (n + 1) / 2, 0, descending);
      EXPECT_EQ(first.indices.to_vector(), s.indices.narrow(0, 0, (n + 1) / 2).to_vector());
    }
  }
}

TEST(Sort, UnsortedTopkHasTheSameElements) {
  Generator generator(6);
  const auto x = randn<double>({40, 100}, generator);
  const auto some = topk(x, 10, 1, true, false);
  EXPECT_EQ(sort(some.values, 1, true).values.to_vector(), topk(x, 10, 1).values.to_vector());
}

TEST(Sort, SameForAnyNumberOfThreads) {
  Generator generator(7);
  const auto x = randint(0, 50, {300, 200}, generator);
  const auto run = [&](int n) {
    const WithThreads threads(n);
    return test::bytes_of(argsort(x, 0)) + test::bytes_of(topk(x, 20).indices);
  };
  const std::string one = run(1);
  for (int n : {2, 5}) EXPECT_EQ(run(n), one);
}

TEST(Sort, Scalars) {
  const auto x = scalar(3.0);
  EXPECT_EQ(topk(x, 1).values.shape(), Shape{});
  EXPECT_EQ(topk(x, 0).values.shape(), Shape{0});
  EXPECT_EQ(kthvalue(x, 1).values.item(), 3);
  EXPECT_EQ(argsort(x).item(), 0);
}

TEST(Sort, NamesWhatIsWrong) {
  const Tensor<float> x = zeros({2, 3});
  EXPECT_EQ(message<IndexError>([&] { sort(x, 2); }), "sort: expected a dimension in [-2, 1], got 2");
  EXPECT_THROW(argsort(scalar(1.f), 1), IndexError);
  EXPECT_EQ(message<ShapeError>([&] { topk(x, 4); }), "topk: expected k in [0, 3] for dimension 1 of [2, 3], got 4");
  EXPECT_THROW(topk(x, -1), ShapeError);
  EXPECT_THROW(topk(scalar(1.f), 2), ShapeError);
  EXPECT_EQ(message<ShapeError>([&] { kthvalue(x, 0); }), "kthvalue: expected k in [1, 3] for [2, 3], got 0");
  EXPECT_THROW(kthvalue(x, 4), ShapeError);
  EXPECT_THROW(kthvalue(zeros({2, 0}), 1), ShapeError);
}

}  // namespace
}  // namespace tenet
