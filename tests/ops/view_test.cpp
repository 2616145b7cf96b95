#include <tenet/ops/inplace.hpp>
#include <tenet/ops/reduce.hpp>
#include <tenet/ops/view.hpp>

#include <pthread.h>

#include "core/support.hpp"
#include "ops/op_cases.hpp"

namespace tenet {
namespace {

template <class F>
void check(const char* name, F f) {
  test::check({.name = name, .f = [f](const auto& x) { return f(x[0]); }, .file = "view.txt"});
}

TEST(View, Reshape) {
  check("reshape", [](const auto& x) { return reshape(x, {4, -1}); });
  check("reshape_to_scalar", [](const auto& x) { return reshape(x, {}); });
  check("reshape_empty", [](const auto& x) { return reshape(x, {-1, 3, 2}); });
  check("flatten", [](const auto& x) { return flatten(x); });
  check("flatten_middle", [](const auto& x) { return flatten(x, 1, -2); });
  check("flatten_scalar", [](const auto& x) { return flatten(x); });
  check("flatten_empty", [](const auto& x) { return flatten(x, 1); });
  check("unflatten", [](const auto& x) { return unflatten(x, 1, {2, -1}); });
}
TEST(View, Squeeze) {
  check("squeeze", [](const auto& x) { return squeeze(x); });
  check("squeeze_dim", [](const auto& x) { return squeeze(x, -2); });
  check("squeeze_dim_not_one", [](const auto& x) { return squeeze(x, 0); });
  check("unsqueeze", [](const auto& x) { return unsqueeze(x, 1); });
  check("unsqueeze_last", [](const auto& x) { return unsqueeze(x, -1); });
}
TEST(View, Permute) {
  check("permute", [](const auto& x) { return permute(x, {2, 0, -2}); });
  check("transpose", [](const auto& x) { return transpose(x, 0, -1); });
  check("t", [](const auto& x) { return t(x); });
  check("movedim", [](const auto& x) { return movedim(x, 0, 2); });
  check("movedim_back", [](const auto& x) { return movedim(x, -1, 1); });
}
TEST(View, Expand) {
  check("expand", [](const auto& x) { return expand(x, {2, -1, 3}); });
  check("expand_empty", [](const auto& x) { return expand(x, {0, 3}); });
}
TEST(View, Chain) {
  check("chain", [](const auto& x) {
    return diagonal(view(reshape(select(slice(permute(x, {2, 0, 1}), 0, 1), 1, -1), {-1}), {3, 3}));
  });
}

// Every one of them looks at the memory of its base and says so, and a change is seen on both sides.
template <class T>
void expect_views() {
  const Tensor<T> x = full<T>({2, 1, 6}, T(1));
  const std::vector<Tensor<T>> views = {
      x.view({3, 4}),    x.reshape({-1}),     x.flatten(0, 1),      unflatten(x, 2, {2, 3}),
      x.squeeze(),       x.squeeze(1),        x.unsqueeze(0),       x.permute({2, 0, 1}),
      x.transpose(0, 2), movedim(x, 0, 2),    x.expand({2, 3, 6}),  x.select(2, 5),
      x.narrow(2, 4, 2), x.slice(2, 1, 6, 2), diagonal(x, 5, 0, 2), x[0].squeeze(0).unsqueeze(1).t()};
  for (const Tensor<T>& v : views) {
    EXPECT_EQ(v.impl()->storage.get(), x.impl()->storage.get()) << v.shape().str();
    EXPECT_TRUE(v.impl()->is_view) << v.shape().str();
  }
  EXPECT_FALSE(x.impl()->is_view);
  const Tensor<T> last = x.permute({2, 0, 1}).slice(0, 1, 100, 4).select(1, 1).view({2});
  last.zero_();
  std::vector<T> expected(12, T(1));
  expected[7] = expected[11] = T(0);
  EXPECT_EQ(x.to_vector(), expected);
}
TEST(View, SharesMemory) {
  expect_views<float>();
  expect_views<half>();
  expect_views<std::int64_t>();
  expect_views<bool>();
}

TEST(View, TakesWhatStridesAllow) {
  const auto x = arange<double>(24).view({4, 6});
  const auto part = x.narrow(1, 1, 4);  // rows with gaps
  EXPECT_EQ(part.view({2, 2, 2, 2}).to_vector(), part.to_vector());
  EXPECT_EQ(part.view({4, 1, 4, 1}).to_vector(), part.to_vector());
  EXPECT_THROW(part.view({16}), ShapeError);
  EXPECT_EQ(part.reshape({16}).to_vector(), part.to_vector());
  const auto turned = x.t();
  EXPECT_EQ(turned.view({2, 3, 2, 2}).to_vector(), turned.to_vector());
  EXPECT_EQ(message<ShapeError>([&] { turned.view({24}); }),
            "view: cannot see shape [6, 4] with strides [1, 6] as [24] without a copy; use reshape");
  const auto repeated = scalar(2.0).expand({2, 3});
  EXPECT_EQ(repeated.view({6}).strides(), (Strides{0}));
  const auto rows = arange<double>(3).expand({2, 3});
  EXPECT_THROW(rows.view({6}), ShapeError);
  EXPECT_EQ(rows.reshape({3, 2}).to_vector(), (std::vector<double>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(x.slice(0, 0, 4, 2).slice(1, 0, 6, 2).view({2, 1, 3, 1}).to_vector(),
            (std::vector<double>{0, 2, 4, 12, 14, 16}));
}

TEST(View, OfNoElements) {
  const Tensor<float> x = zeros({2, 0, 3});
  EXPECT_EQ(x.view({-1, 3}).shape(), (Shape{0, 3}));
  EXPECT_EQ(x.view({0}).shape(), (Shape{0}));
  EXPECT_EQ(x.transpose(0, 2).view({5, 0, 7}).shape(), (Shape{5, 0, 7}));
  EXPECT_EQ(message<ShapeError>([&] {
              x.reshape({-1, 0});
            }),
            "reshape: cannot tell the -1 of [-1, 0] for [2, 0, 3]: any size holds 0 elements");
}

TEST(View, Scalars) {
  const auto x = scalar(3);
  EXPECT_EQ(x.view({1, 1}).shape(), (Shape{1, 1}));
  EXPECT_EQ(x.transpose(0, -1).shape(), Shape{});
  EXPECT_EQ(x.permute({}).shape(), Shape{});
  EXPECT_EQ(x.squeeze().shape(), Shape{});
  EXPECT_EQ(x.squeeze(-1).shape(), Shape{});
  EXPECT_EQ(x.unsqueeze(-1).shape(), Shape{1});
  EXPECT_EQ(movedim(x, 0, 0).shape(), Shape{});
  EXPECT_EQ(x.t().shape(), Shape{});
}

TEST(View, NamesWhatIsWrong) {
  const Tensor<float> x = zeros({2, 3, 4});
  EXPECT_EQ(message<ShapeError>([&] { x.view({5, -1}); }), "view: cannot see [2, 3, 4], 24 elements, as [5, -1]");
  EXPECT_EQ(message<ShapeError>([&] { x.view({23}); }), "view: cannot see [2, 3, 4], 24 elements, as [23]");
  EXPECT_EQ(message<ShapeError>([&] {
              x.reshape({-1, -1});
            }),
            "reshape: expected sizes of at least 0 and at most one -1, got [-1, -1]");
  EXPECT_THROW(x.view({-2, 12}), ShapeError);
  EXPECT_THROW(x.view({0, -1}), ShapeError);
  constexpr std::int64_t big = std::int64_t(1) << 32;
  EXPECT_THROW(x.view({big, big}), ShapeError);  // whose product is 0 in 64 bits
  EXPECT_THROW(x.view({big, big, -1}), ShapeError);
  EXPECT_EQ(message<ShapeError>([&] {
              x.permute({0, 1});
            }),
            "permute: expected 3 dimensions for [2, 3, 4], got [0, 1]");
  EXPECT_EQ(message<ShapeError>([&] {
              x.permute({0, 1, -2});
            }),
            "permute: expected every dimension once, got [0, 1, -2]");
  EXPECT_THROW(x.permute({0, 1, 3}), IndexError);
  EXPECT_EQ(message<IndexError>([&] { x.transpose(0, 3); }), "transpose: expected a dimension in [-3, 2], got 3");
  EXPECT_THROW(x.transpose(-4, 0), IndexError);
  EXPECT_THROW(x.t(), ShapeError);
  EXPECT_THROW(x.squeeze(3), IndexError);
  EXPECT_EQ(message<IndexError>([&] { x.unsqueeze(4); }), "unsqueeze: expected a dimension in [-4, 3], got 4");
  EXPECT_THROW(zeros({1, 1, 1, 1, 1, 1, 1, 1}).unsqueeze(0), ShapeError);
  EXPECT_THROW(x.flatten(2, 1), IndexError);
  EXPECT_THROW(unflatten(x, 1, {2, 2}), ShapeError);
  EXPECT_THROW(x.expand({3, 4}), ShapeError);
  EXPECT_THROW(x.expand({2, 3, 5}), ShapeError);
  EXPECT_THROW(Tensor<float>().view({1}), Error);
}

// The gradient of what was expanded has its shape again.
TEST(View, ExpandedGradientIsSummed) {
  auto a = tensor<double>({{1}, {2}}).requires_grad_(), b = tensor<double>({{10, 20, 30}}).requires_grad_();
  (a.expand({2, 3}) + b.expand({2, 3})).sum().backward();
  test::expect_near(a.grad(), tensor<double>({{3}, {3}}), 0, "of a + b");
  test::expect_near(b.grad(), tensor<double>({{2, 2, 2}}), 0, "of a + b");
  a.zero_grad();
  b.zero_grad();
  (a.expand({2, 3}) * b.expand({2, -1})).sum().backward();
  test::expect_near(a.grad(), tensor<double>({{60}, {60}}), 0, "of a * b");
  test::expect_near(b.grad(), tensor<double>({{3, 3, 3}}), 0, "of a * b");
  auto s = scalar(2.0).requires_grad_();
  (s.expand({5, 4}) * ones<double>({5, 4})).sum().backward();
  test::expect_near(s.grad(), scalar(20.0), 0, "of a scalar");
}

TEST(View, OverlapIsNotChangedInPlace) {
  const auto x = scalar(0.5).expand({3});
  EXPECT_THROW(x.add_(1), Error);
  EXPECT_EQ(x.to_vector(), (std::vector<double>{0.5, 0.5, 0.5}));
  const auto a = tensor<float>({{1, 2}, {3, 4}});
  EXPECT_THROW(a.add_(a.t()), Error);
  EXPECT_EQ(a.to_vector(), (std::vector<float>{1, 2, 3, 4}));
}

// A chain of views is walked and dropped in a small stack.
TEST(View, LongChain) {
  const auto chains = [](void*) -> void* {
    auto x = ones<double>({2, 3}).requires_grad_();
    const auto chain = [&] {
      Tensor<double> y = x;
      for (int i = 0; i < 50'000; ++i) y = y.view({6}).view({2, 3}).unsqueeze(0).select(0, 0);
      return y;
    };
    chain();  // dropped without backward
    chain().backward(ones<double>({2, 3}));
    EXPECT_EQ(x.grad().to_vector(), std::vector<double>(6, 1));
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 << 10);
  ASSERT_EQ(pthread_create(&thread, &attributes, chains, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// Offsets past 2^31, in memory that is not there.
TEST(View, OffsetsAreOf64Bits) {
  static std::uint8_t nothing;
  const auto x = from_blob(&nothing, {65536, 65536});
  EXPECT_EQ(x.numel(), 4294967296);
  EXPECT_EQ(x.view({-1}).shape(), (Shape{4294967296}));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.select(0, 40000).select(0, 1).data()) -
                reinterpret_cast<std::uintptr_t>(&nothing),
            2621440001u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(from_blob(&nothing, {240000, 8960})[239674][8959].data()) -
                reinterpret_cast<std::uintptr_t>(&nothing),
            2147487999u);
}

}  // namespace
}  // namespace tenet
