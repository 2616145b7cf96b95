#include <tenet/ops/index.hpp>
#include <tenet/ops/inplace.hpp>

#include "core/support.hpp"
#include "ops/op_cases.hpp"

namespace tenet {
namespace {

using Index = Tensor<std::int64_t>;

// f(index, x): the index is the first input of the case.
template <class F>
void check(const char* name, F f) {
  test::check({.name = name, .f = [f](const auto& x) { return f(to<std::int64_t>(x[0]), x); }, .file = "index.txt"});
}

TEST(Index, Gather) {
  check("gather", [](const Index& i, const auto& x) { return gather(x[1], 1, i); });
  check("gather_first", [](const Index& i, const auto& x) { return gather(x[1], 0, i); });
  check("gather_middle", [](const Index& i, const auto& x) { return gather(x[1], -2, i); });
  check("take_along_dim", [](const Index& i, const auto& x) { return take_along_dim(x[1], i, 1); });
}
TEST(Index, IndexSelect) {
  check("index_select", [](const Index& i, const auto& x) { return index_select(x[1], 0, i); });
  check("index_select_middle", [](const Index& i, const auto& x) { return index_select(x[1], 1, i); });
  check("index_select_last", [](const Index& i, const auto& x) { return index_select(x[1], -1, i); });
  test::check({.name = "masked_select",
               .f = [](const auto& x) { return masked_select(x[1], to<bool>(x[0])); },
               .file = "index.txt",
               .expands = false});  // another mask gives another shape
}
TEST(Index, Scatter) {
  check("scatter", [](const Index& i, const auto& x) { return scatter(x[1], 1, i, x[2]); });
  check("scatter_first", [](const Index& i, const auto& x) { return scatter(x[1], 0, i, x[2]); });
  check("scatter_value", [](const Index& i, const auto& x) { return scatter(x[1], 1, i, 2.5); });
  check("scatter_add", [](const Index& i, const auto& x) { return scatter_add(x[1], 1, i, x[2]); });
  check("scatter_add_first", [](const Index& i, const auto& x) { return scatter_add(x[1], 0, i, x[2]); });
}
TEST(Index, WholeEntries) {
  check("index_add", [](const Index& i, const auto& x) { return index_add(x[1], 0, i, x[2]); });
  check("index_add_middle", [](const Index& i, const auto& x) { return index_add(x[1], 1, i, x[2]); });
  check("index_copy", [](const Index& i, const auto& x) { return index_copy(x[1], 1, i, x[2]); });
  check("index_fill", [](const Index& i, const auto& x) { return index_fill(x[1], 0, i, -1.5); });
}
TEST(Index, Embedding) {
  check("embedding", [](const Index& i, const auto& x) { return embedding(i, x[1]); });
  test::check({.name = "embedding_padding",  // the gradient is not that of the value, on purpose
               .f = [](const auto& x) { return embedding(to<std::int64_t>(x[0]), x[1], 3); },
               .file = "index.txt",
               .once = false});
  test::check({.name = "embedding_padding_last",
               .f = [](const auto& x) { return embedding(to<std::int64_t>(x[0]), x[1], -1); },
               .file = "index.txt",
               .once = false});
}

// The gradient that skips a row is itself differentiable.
TEST(Index, EmbeddingPaddingTwice) {
  auto w = arange<double>(6).view({3, 2}).detach().requires_grad_();
  auto g = ones<double>({4, 2}).requires_grad_();
  const auto y = embedding(tensor<std::int64_t>({0, 1, 2, 1}), w, 1);
  const auto dw = autograd::grad<double>(std::vector{y}, {w}, {.grad_outputs = {g}, .create_graph = true});
  const Tensor<double> d(dw[0]);
  test::expect_near(d, tensor<double>({{1, 1}, {0, 0}, {1, 1}}), 0, "first");
  d.backward(tensor<double>({{1, 2}, {3, 4}, {5, 6}}));
  test::expect_near(g.grad(), tensor<double>({{1, 2}, {0, 0}, {5, 6}, {0, 0}}), 0, "second");
}

// Of two writes to one element the last stays, and it alone gets a gradient.
TEST(Index, ScatterTwiceToOnePlace) {
  const auto i = tensor<std::int64_t>({{1, 1, 0}, {2, 2, 2}});
  test::check({.name = "scatter with repetition",
               .f = [i](const auto& x) { return scatter(x[0], 1, i, x[1]); },
               .inputs = {{{2, 3}}, {{2, 3}}},
               .reference =
                   [](const test::Tensors& x) {
                     const auto y = clone(x[0]);
                     y(0, 1) = x[1](0, 1);
                     y(0, 0) = x[1](0, 2);
                     y(1, 2) = x[1](1, 2);
                     return y;
                   }});
}

// An index smaller than what it indexes.
TEST(Index, SmallIndex) {
  const auto i = tensor<std::int64_t>({{2}, {0}});
  test::check({.name = "gather", .f = [i](const auto& x) { return gather(x[0], 0, i); }, .inputs = {{{3, 4}}}});
  test::check({.name = "scatter_add",
               .f = [i](const auto& x) { return scatter_add(x[0], 0, i, x[1]); },
               .inputs = {{{3, 4}}, {{3, 2}}}});
  const auto y = scatter(zeros({3, 2}), 0, i, ones({3, 2}));
  EXPECT_EQ(y.to_vector(), (std::vector<float>{1, 0, 0, 0, 1, 0}));
}

TEST(Index, Empty) {
  const Index none = zeros<std::int64_t>({0});
  EXPECT_EQ(index_select(ones({2, 3}), 1, none).shape(), (Shape{2, 0}));
  EXPECT_EQ(index_select(ones({2, 0}), 0, tensor<std::int64_t>({1, 1, 0})).shape(), (Shape{3, 0}));
  EXPECT_EQ(gather(ones({2, 3}), 1, zeros<std::int64_t>({2, 0})).shape(), (Shape{2, 0}));
  EXPECT_EQ(scatter_add(ones({2}), 0, none, ones({0})).to_vector(), (std::vector<float>{1, 1}));
  EXPECT_EQ(embedding(zeros<std::int64_t>({2, 0}), ones({3, 4})).shape(), (Shape{2, 0, 4}));
  EXPECT_EQ(masked_select(ones({2, 0}), tensor<bool>({{true}, {false}})).shape(), (Shape{0}));
  EXPECT_THROW(index_select(zeros({0, 3}), 0, tensor<std::int64_t>({0})), IndexError);
}

template <class T>
void expect_moved() {
  const Tensor<T> x = from_vector<T>({T(1), T(0), T(0), T(1), T(1), T(1)}, {2, 3});
  EXPECT_EQ(index_select(x, 1, tensor<std::int64_t>({1, 0})).to_vector(), (std::vector<T>{T(0), T(1), T(1), T(1)}));
  EXPECT_EQ(gather(x.t(), 0, tensor<std::int64_t>({{2, 0}})).to_vector(), (std::vector<T>{T(0), T(1)}));
  EXPECT_EQ(scatter(x, 0, tensor<std::int64_t>({{1, 0, 1}}), T(0)).to_vector(),
            (std::vector<T>{T(1), T(0), T(0), T(0), T(1), T(0)}));
  EXPECT_EQ(nonzero(x).to_vector(), (std::vector<std::int64_t>{0, 0, 1, 0, 1, 1, 1, 2}));
  EXPECT_EQ(index_add(zeros<T>({1, 3}), 0, tensor<std::int64_t>({0, 0}), x).to_vector(),
            (std::vector<T>{T(T(1) + T(1)), T(1), T(1)}));
}
TEST(Index, ElementTypes) {
  expect_moved<float>();
  expect_moved<double>();
  expect_moved<half>();
  expect_moved<bfloat16>();
  expect_moved<std::int8_t>();
  expect_moved<std::uint8_t>();
  expect_moved<std::int32_t>();
  expect_moved<std::int64_t>();
  expect_moved<bool>();
}

// Sums of halves do not stop where one more is too little.
TEST(Index, HalvesAddUpInFloat) {
  const Index same = zeros<std::int64_t>({4000});
  EXPECT_EQ(index_add(zeros<bfloat16>({1}), 0, same, ones<bfloat16>({4000})).item(), bfloat16(4000));
  EXPECT_EQ(index_add(zeros<half>({1}), 0, same, ones<half>({4000})).item(), half(4000));
  auto w = zeros<bfloat16>({1, 1}).requires_grad_();
  embedding(same, w).backward(ones<bfloat16>({4000, 1}));
  EXPECT_EQ(w.grad().item(), bfloat16(4000));
}

TEST(Index, OneHot) {
  const auto i = tensor<std::int64_t>({{2, 0}});
  EXPECT_EQ(one_hot(i).shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(one_hot(i).to_vector(), (std::vector<std::int64_t>{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(one_hot(scalar<std::int64_t>(1), 4).to_vector(), (std::vector<std::int64_t>{0, 1, 0, 0}));
  EXPECT_EQ(one_hot(zeros<std::int64_t>({0}), 3).shape(), (Shape{0, 3}));
  EXPECT_EQ(message<IndexError>([&] { one_hot(i, 2); }),
            "one_hot: index 2 is outside dimension 2, of size 2, of [1, 2, 2]");
  EXPECT_THROW(one_hot(tensor<std::int64_t>({-1})), IndexError);
  EXPECT_THROW(one_hot(zeros<std::int64_t>({0})), ShapeError);
  EXPECT_THROW(one_hot(i, -2), ShapeError);
  EXPECT_THROW(one_hot(tensor<std::int64_t>({std::numeric_limits<std::int64_t>::max()})), ShapeError);
}

TEST(Index, Nonzero) {
  EXPECT_EQ(nonzero(scalar(2.f)).shape(), (Shape{1, 0}));
  EXPECT_EQ(nonzero(scalar(0.f)).shape(), (Shape{0, 0}));
  EXPECT_EQ(nonzero(zeros({2, 0})).shape(), (Shape{0, 2}));
  const auto x = tensor<double>({{0, -0.0}, {std::numeric_limits<double>::quiet_NaN(), 1e-320}});
  EXPECT_EQ(nonzero(x.t()).to_vector(), (std::vector<std::int64_t>{0, 1, 1, 1}));
}

// Lines long enough to be cut and shared: the same bits for any number of threads.
TEST(Index, SameForAnyNumberOfThreads) {
  Generator generator(3);
  const Index rows = randint(0, 50, {3000}, generator), places = randint(0, 90, {700, 300}, generator);
  const Tensor<float> x = randn({3000, 70}, generator), y = randn({700, 300}, generator);
  const auto all = [&] {
    return std::vector{index_add(zeros({50, 70}), 0, rows, x),
                       scatter_add(zeros({700, 90}), 1, places, y),
                       scatter_add(zeros({90, 300}), 0, places, y),
                       scatter(zeros({700, 90}), 1, places, y),
                       gather(y, 1, places),
                       index_select(x, 0, rows)};
  };
  std::vector<Tensor<float>> one;
  {
    const WithThreads threads(1);
    one = all();
  }
  for (int n : {2, 3, 7}) {
    const WithThreads threads(n);
    const auto many = all();
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(test::bytes_of(many[i]), test::bytes_of(one[i])) << i;
  }
  // And they are the sums in the order of the index.
  std::vector<float> sums(50 * 70);
  for (int i = 0; i < 3000; ++i) {
    for (int k = 0; k < 70; ++k) sums[std::size_t(rows(i) * 70 + k)] += x(i, k);
  }
  EXPECT_EQ(one[0].to_vector(), sums);
}

// Nothing is read or written where an index leads outside, wherever it stands.
TEST(Index, OutsideThrows) {
  const Tensor<float> x = ones({3, 4});
  EXPECT_EQ(message<IndexError>([&] {
              index_select(x, 1, tensor<std::int64_t>({0, 4}));
            }),
            "index_select: index 4 is outside dimension 1, of size 4, of [3, 4]");
  EXPECT_EQ(message<IndexError>([&] {
              gather(x, 0, tensor<std::int64_t>({{0, 1}, {-1, 0}}));
            }),
            "gather: index -1 is outside dimension 0, of size 3, of [3, 4]");
  for (const std::int64_t bad : {std::int64_t(-1), std::int64_t(3), std::numeric_limits<std::int64_t>::min(),
                                 std::numeric_limits<std::int64_t>::max()}) {
    const auto list = tensor<std::int64_t>({2, 1, bad}), place = tensor<std::int64_t>({{0, 0, 0, 0}, {0, 0, 0, bad}});
    EXPECT_THROW(index_select(x, 0, list), IndexError);
    EXPECT_THROW(index_add(x, 0, list, x), IndexError);
    EXPECT_THROW(index_copy(x, 0, list, x), IndexError);
    EXPECT_THROW(index_fill(x, 0, list, 1), IndexError);
    EXPECT_THROW(gather(x, 0, place), IndexError);
    EXPECT_THROW(gather(x, 0, place.t().narrow(1, 1, 1)), IndexError);
    EXPECT_THROW(take_along_dim(x, place, 0), IndexError);
    EXPECT_THROW(scatter(x, 0, place, x), IndexError);
    EXPECT_THROW(scatter(x, 0, place, 1), IndexError);
    EXPECT_THROW(scatter_add(x, 0, place, x), IndexError);
    EXPECT_THROW(embedding(list, x), IndexError);
    EXPECT_THROW(embedding(list, x, 1), IndexError);
  }
  EXPECT_EQ(x.to_vector(), std::vector<float>(12, 1));
}

TEST(Index, NamesWhatIsWrong) {
  const Tensor<float> x = ones({3, 4});
  const Index list = zeros<std::int64_t>({2}), place = zeros<std::int64_t>({2, 5});
  EXPECT_EQ(message<ShapeError>([&] { gather(x, 0, place); }),
            "gather: expected an index no larger than [3, 4] except in dimension 0, got [2, 5]");
  EXPECT_THROW(gather(x, 0, list), ShapeError);
  EXPECT_THROW(gather(x, 2, place), IndexError);
  EXPECT_THROW(gather(scalar(1.f), 0, scalar<std::int64_t>(0)), ShapeError);
  EXPECT_EQ(message<ShapeError>([&] { index_select(x, 0, place); }),
            "index_select: expected an index of one dimension, got [2, 5]");
  EXPECT_THROW(take_along_dim(x, zeros<std::int64_t>({2, 3}), 0), ShapeError);
  EXPECT_THROW(take_along_dim(x, list, 0), ShapeError);
  EXPECT_THROW(scatter(x, 1, place, ones({2, 4})), ShapeError);
  EXPECT_EQ(message<ShapeError>([&] {
              index_add(x, 0, list, ones({2, 3}));
            }),
            "index_add: expected a source of [2, 4], got [2, 3]");
  EXPECT_EQ(message<ShapeError>([&] { embedding(list, ones({3})); }), "embedding: expected a weight [n, d], got [3]");
  EXPECT_EQ(message<IndexError>([&] { embedding(list, x, 3); }), "embedding: padding_idx 3 is outside weight [3, 4]");
  EXPECT_THROW(masked_select(x, tensor<bool>({true, false})), ShapeError);
}

// An index changed after the fact would lead the gradient elsewhere.
TEST(Index, ChangedIndexThrows) {
  auto x = ones<double>({3}).requires_grad_();
  const Index i = tensor<std::int64_t>({0, 1});
  const auto y = gather(x, 0, i);
  i.add_(1);
  EXPECT_THROW(y.backward(ones<double>({2})), Error);
}

}  // namespace
}  // namespace tenet
