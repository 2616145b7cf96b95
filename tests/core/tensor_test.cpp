#include <tenet/core/factories.hpp>
#include <tenet/core/tensor.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/support.hpp"

using namespace tenet;

namespace {

using Floats = std::vector<float>;
using Ints = std::vector<std::int64_t>;
constexpr std::int64_t big = std::int64_t{1} << 32;

/// Counts how often a borrowed block was given back.
void count_return(void* context) { ++*static_cast<int*>(context); }

struct Named : Tensor<float> {
  using Tensor<float>::Tensor;
};

}  // namespace

// ---- handles

TEST(Tensor, CopiesShare) {
  Tensor<float> a = zeros({2, 2});
  const Tensor<float> b = a;
  b(1, 0) = 5;
  EXPECT_EQ(a(1, 0), 5);
  EXPECT_TRUE(a.is(b));
  EXPECT_FALSE(a.is(zeros({2, 2})));
  EXPECT_EQ(a.impl()->count.value(), 2u);
  a = {};
  EXPECT_FALSE(a.defined());
  EXPECT_EQ(b(1, 0), 5);
  EXPECT_EQ(b.impl()->count.value(), 1u);
}

TEST(Tensor, MovesAndSelfAssignmentKeepTheTensor) {
  Tensor<float> a = ones({3});
  const Tensor<float>& alias = a;
  a = alias;
  EXPECT_EQ(a.to_vector(), (Floats{1, 1, 1}));
  Tensor<float> b = std::move(a);
  EXPECT_FALSE(a.defined());
  Tensor<float>& same = b;
  b = std::move(same);
  EXPECT_EQ(b.to_vector(), (Floats{1, 1, 1}));
  EXPECT_EQ(b.impl()->count.value(), 1u);
}

TEST(Tensor, AViewKeepsTheMemoryOfItsBase) {
  Tensor<float> base = arange(6);
  const Tensor<float> view(make_alias(*base.impl(), {2}, {2}, 1));
  base = {};
  EXPECT_EQ(view.to_vector(), (Floats{1, 3}));
  EXPECT_FALSE(view.is_contiguous());
}

TEST(Tensor, TellsWhatItIs) {
  const auto t = zeros<half>({4, 1, 3});
  EXPECT_EQ(t.shape(), (Shape{4, 1, 3}));
  EXPECT_EQ(t.strides(), (Strides{3, 3, 1}));
  EXPECT_EQ(t.dim(), 3);
  EXPECT_EQ(t.numel(), 12);
  EXPECT_EQ(t.size(0), 4);
  EXPECT_EQ(t.size(-1), 3);
  EXPECT_THROW(t.size(3), IndexError);
  EXPECT_THROW(scalar(1.0f).size(0), IndexError);
  EXPECT_EQ(t.dtype(), DType::float16);
  EXPECT_EQ(t.device(), cpu_device);
  EXPECT_EQ(t.device().str(), "cpu");
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_TRUE(t.is_leaf());
  EXPECT_FALSE(t.requires_grad());
  EXPECT_FALSE(t.grad().defined());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.data()) % 64, 0u);
}

TEST(Tensor, AnUndefinedOneThrows) {
  const Tensor<float> t;
  EXPECT_FALSE(t.defined());
  EXPECT_FALSE(bool(t));
  EXPECT_EQ(t.impl(), nullptr);
  EXPECT_TRUE(t.is(AnyTensor()));
  EXPECT_THROW(t.shape(), Error);
  EXPECT_THROW(t.numel(), Error);
  EXPECT_THROW(t.size(0), Error);
  EXPECT_THROW(t.dtype(), Error);
  EXPECT_THROW(t.device(), Error);
  EXPECT_THROW(t.data(), Error);
  EXPECT_THROW(t.item(), Error);
  EXPECT_THROW(t(0), Error);
  EXPECT_THROW(t.to_vector(), Error);
  EXPECT_THROW(t.requires_grad(), Error);
  EXPECT_THROW(t.grad(), Error);
  EXPECT_THROW(t.zero_grad(), Error);
  EXPECT_THROW(Tensor<float>().requires_grad_(), Error);
  EXPECT_THROW(zeros_like(t), Error);
  EXPECT_EQ(message<Error>([&] { t.item(); }), "tensor: expected a defined tensor, got an undefined one");
}

TEST(Tensor, GoesUntypedAndBack) {
  const Tensor<double> t = full<double>({2}, 1.5);
  const AnyTensor any = t;
  EXPECT_TRUE(any.is(t));
  EXPECT_EQ(any.dtype(), DType::float64);
  const Tensor<double> back(any);
  EXPECT_TRUE(back.is(t));
  EXPECT_THROW(Tensor<float>{any}, DTypeError);
  EXPECT_EQ(message<DTypeError>([&] { Tensor<std::int64_t>{any}; }), "tensor: expected elements of int64, got float64");
  EXPECT_FALSE(Tensor<float>(AnyTensor()).defined());
  EXPECT_FALSE((std::is_convertible_v<AnyTensor, Tensor<float>>));
  EXPECT_FALSE((std::is_convertible_v<Tensor<double>, Tensor<float>>));
}

TEST(Tensor, OnlyFloatingLeavesCollectGradients) {
  auto t = zeros<bfloat16>({2});
  EXPECT_TRUE(&t.requires_grad_() == &t);
  EXPECT_TRUE(t.requires_grad());
  t.requires_grad_(false);
  EXPECT_FALSE(t.requires_grad());
  EXPECT_THROW(zeros<std::int64_t>({2}).requires_grad_(), DTypeError);
  EXPECT_THROW(zeros<bool>({2}).requires_grad_(), DTypeError);
}

TEST(Tensor, ConceptsSeeThroughDerivedTypes) {
  EXPECT_TRUE((std::is_same_v<element_t<Named&>, float>));
  EXPECT_TRUE((std::is_same_v<tensor_t<const Tensor<half>>, Tensor<half>>));
  EXPECT_FALSE(TensorLike<AnyTensor>);
  EXPECT_FALSE(TensorLike<float>);
  EXPECT_EQ(ones_like(Named(zeros({2}).ref())).to_vector(), (Floats{1, 1}));
}

// ---- elements

TEST(Tensor, ElementsAreReachedAndChecked) {
  const auto t = arange<std::int64_t>(6);
  EXPECT_EQ(t(4), 4);
  const auto m = from_vector<std::int64_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(m(1, 2), 6);
  EXPECT_EQ(m(std::int8_t{1}, 2u), 6);
  m(0, 1) = -1;
  EXPECT_EQ(m.to_vector(), (Ints{1, -1, 3, 4, 5, 6}));
  for (std::int64_t i : {std::int64_t{2}, std::int64_t{-1}, big, std::numeric_limits<std::int64_t>::min()}) {
    EXPECT_THROW(m(i, 0), IndexError);
  }
  EXPECT_THROW(m(0, 3), IndexError);
  EXPECT_THROW(m(~std::uint64_t{0}, 0), IndexError);
  EXPECT_THROW(m(0), IndexError);
  EXPECT_THROW(m(0, 0, 0), IndexError);
  EXPECT_THROW(scalar(1.0f)(0), IndexError);
  EXPECT_THROW(empty({0})(0), IndexError);
  EXPECT_EQ(message<IndexError>([&] { m(0, 5); }), "element: index 5 of dimension 1 is outside shape [2, 3]");
}

TEST(Tensor, ElementsFollowStrides) {
  const auto m = from_vector<std::int64_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor<std::int64_t> t(make_alias(*m.impl(), {3, 2}, {1, 3}, 0));
  EXPECT_EQ(t(2, 0), 3);
  EXPECT_EQ(t.to_vector(), (Ints{1, 4, 2, 5, 3, 6}));
  const Tensor<std::int64_t> expanded(make_alias(*m.impl(), {2, 2}, {0, 1}, 4));
  EXPECT_EQ(expanded.to_vector(), (Ints{5, 6, 5, 6}));
}

TEST(Tensor, ItemIsTheOnlyElement) {
  EXPECT_EQ(scalar(2.5).item(), 2.5);
  EXPECT_EQ(full({1, 1, 1}, 3).item(), 3);
  EXPECT_EQ(message<ShapeError>([] { zeros({2}).item(); }), "item: expected one element, got shape [2]");
  EXPECT_THROW(empty({0}).item(), ShapeError);
}

TEST(Tensor, ToVectorOfAnyShape) {
  EXPECT_TRUE(empty({3, 0}).to_vector().empty());
  EXPECT_EQ(scalar(true).to_vector(), std::vector<bool>{true});
  EXPECT_EQ(from_vector<bool>({true, false, true}).to_vector(), (std::vector<bool>{true, false, true}));
}

// ---- factories

TEST(Factories, FilledTensors) {
  EXPECT_EQ(zeros<std::int32_t>({2, 2}).to_vector(), (std::vector<std::int32_t>{0, 0, 0, 0}));
  EXPECT_EQ(ones<bool>({2}).to_vector(), (std::vector<bool>{true, true}));
  EXPECT_EQ(full({3}, 2.5f).to_vector(), (Floats{2.5f, 2.5f, 2.5f}));
  EXPECT_EQ(zeros<half>({2}).to_vector(), (std::vector<half>{half(0), half(0)}));
  EXPECT_EQ(scalar(std::uint8_t{255}).item(), 255);
  EXPECT_EQ(scalar(1.0f).shape(), Shape{});
  EXPECT_EQ(empty({0, 5}).numel(), 0);
}

TEST(Factories, SizesAreChecked) {
  EXPECT_THROW(zeros({-1}), ShapeError);
  EXPECT_THROW(empty({big, big}), ShapeError);
  EXPECT_EQ(message<ShapeError>([] {
              empty<double>({big, big / 4});
            }),
            "tensor: [4294967296, 1073741824] of float64 has more bytes than int64 can count");
  EXPECT_THROW(empty<std::uint8_t>({std::numeric_limits<std::int64_t>::max()}), Error);  // no such memory
  EXPECT_THROW(eye(-1), ShapeError);
  EXPECT_THROW(eye(2, -5), ShapeError);
}

TEST(Factories, LikeFormsTakeShapeAndType) {
  const auto m = from_vector<std::int64_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor<std::int64_t> t(make_alias(*m.impl(), {3, 2}, {1, 3}, 0));
  EXPECT_EQ(zeros_like(t).to_vector(), Ints(6, 0));
  EXPECT_EQ(ones_like(t).shape(), (Shape{3, 2}));
  EXPECT_EQ(full_like(t, 7).to_vector(), Ints(6, 7));
  EXPECT_TRUE(empty_like(t).is_contiguous());
  EXPECT_TRUE((std::is_same_v<decltype(empty_like(t)), Tensor<std::int64_t>>));
}

TEST(Factories, Arange) {
  EXPECT_EQ(arange(3).to_vector(), (Floats{0, 1, 2}));
  EXPECT_EQ(arange(0).numel(), 0);
  EXPECT_EQ(arange<std::int64_t>(5, 5).numel(), 0);
  EXPECT_EQ(arange<std::int64_t>(1, 8, 3).to_vector(), (Ints{1, 4, 7}));
  EXPECT_EQ(arange<std::int64_t>(1, 7, 3).to_vector(), (Ints{1, 4}));
  EXPECT_EQ(arange<std::int64_t>(3, -3, -2).to_vector(), (Ints{3, 1, -1}));
  EXPECT_EQ(arange(0, 1, 0.25f).to_vector(), (Floats{0, 0.25f, 0.5f, 0.75f}));
  EXPECT_EQ(arange(0, 1.1f, 0.25f).numel(), 5);
  EXPECT_EQ(arange<double>(0, 1, 0.1).numel(), 10);
  EXPECT_EQ(arange(1, 0, -0.5f).to_vector(), (Floats{1, 0.5f}));
}

TEST(Factories, ArangeAtTheEndsOfItsType) {
  EXPECT_EQ(arange<std::uint8_t>(250, 255, 2).to_vector(), (std::vector<std::uint8_t>{250, 252, 254}));
  const auto bytes = arange<std::int8_t>(-128, 127);
  EXPECT_EQ(bytes.numel(), 255);
  EXPECT_EQ(bytes(0), -128);
  EXPECT_EQ(bytes(254), 126);
  const std::int64_t wide = std::int64_t{1} << 60;  // not every whole number there is a double
  EXPECT_EQ(arange<std::int64_t>(wide, wide + 3).to_vector(), (Ints{wide, wide + 1, wide + 2}));
  const std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(arange<std::int64_t>(least, most, most).to_vector(), (Ints{least, -1, most - 1}));
  EXPECT_EQ(arange<std::int64_t>(most, least, least).to_vector(), (Ints{most, -1}));
}

TEST(Factories, ArangeRefusesWhatHasNoEnd) {
  EXPECT_THROW(arange(0, 1, 0), Error);
  EXPECT_THROW(arange<std::int64_t>(0, 1, 0), Error);
  EXPECT_THROW(arange(0, 1, -1), Error);
  EXPECT_THROW(arange<std::int64_t>(1, 0), Error);
  EXPECT_THROW(arange<std::uint8_t>(10, 0), Error);
  EXPECT_THROW(arange(-1), Error);
  EXPECT_THROW(arange(NAN), Error);
  EXPECT_THROW(arange(0, 1, NAN), Error);
  EXPECT_THROW(arange(0, INFINITY), Error);
  EXPECT_THROW(arange<double>(0, 1, 5e-324), Error);
  EXPECT_EQ(message<Error>([] { arange<std::int64_t>(3, 7, -2); }), "arange: cannot go from 3 to 7 in steps of -2");
}

TEST(Factories, Linspace) {
  EXPECT_EQ(linspace(0, 1, 5).to_vector(), (Floats{0, 0.25f, 0.5f, 0.75f, 1}));
  EXPECT_EQ(linspace(3, -3, 3).to_vector(), (Floats{3, 0, -3}));
  EXPECT_EQ(linspace(2, 9, 1).to_vector(), Floats{2});
  EXPECT_EQ(linspace(2, 9, 0).numel(), 0);
  EXPECT_EQ(linspace(5, 5, 4).to_vector(), Floats(4, 5));
  EXPECT_THROW(linspace(0, 1, -1), ShapeError);
  const auto third = linspace<double>(0, 0.3, 7);
  EXPECT_EQ(third(0), 0);
  EXPECT_EQ(third(6), 0.3);
}

TEST(Factories, Eye) {
  EXPECT_EQ(eye(2).to_vector(), (Floats{1, 0, 0, 1}));
  EXPECT_EQ(eye<std::int64_t>(2, 3).to_vector(), (Ints{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(eye(3, 1).to_vector(), (Floats{1, 0, 0}));
  EXPECT_EQ(eye(0).shape(), (Shape{0, 0}));
}

TEST(Factories, FromVectorCopies) {
  Floats v{1, 2, 3, 4};
  const auto t = from_vector(v, {2, 2});
  v[0] = 9;
  EXPECT_EQ(t(0, 0), 1);
  EXPECT_EQ(from_vector(v).shape(), Shape{4});
  EXPECT_EQ(message<ShapeError>([&] { from_vector(v, {3}); }), "from_vector: expected 3 values for shape [3], got 4");
}

TEST(Factories, FromBlobShares) {
  float memory[6] = {1, 2, 3, 4, 5, 6};
  int returned = 0;
  {
    const auto t = from_blob(memory, {2, 3}, count_return, &returned);
    EXPECT_EQ(t.data(), memory);
    t(1, 0) = -4;
    EXPECT_EQ(memory[3], -4);
    const auto copy = t;
    EXPECT_EQ(returned, 0);
  }
  EXPECT_EQ(returned, 1);
  { const auto t = from_blob(memory, {6}); }
  EXPECT_EQ(memory[0], 1);
}

TEST(Factories, FromBlobRefusesNull) {
  int returned = 0;
  EXPECT_THROW(from_blob<float>(nullptr, {2}, count_return, &returned), Error);
  EXPECT_EQ(returned, 0);
  EXPECT_EQ(from_blob<float>(nullptr, {0, 2}).numel(), 0);
}

TEST(Factories, NestedLists) {
  const auto m = tensor<float>({{1, 2}, {3, 4.5}});
  EXPECT_EQ(m.shape(), (Shape{2, 2}));
  EXPECT_EQ(m.to_vector(), (Floats{1, 2, 3, 4.5}));
  EXPECT_EQ(tensor({1, 2, 3}).shape(), Shape{3});
  EXPECT_EQ(tensor(7).shape(), Shape{});
  EXPECT_EQ(tensor({7}).shape(), Shape{1});
  EXPECT_EQ(tensor({}).shape(), Shape{0});
  EXPECT_EQ(tensor({{}, {}}).shape(), (Shape{2, 0}));
  EXPECT_EQ(tensor<std::int64_t>({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}}).to_vector(), (Ints{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(tensor<half>({half(1), half(2)}).dtype(), DType::float16);
  EXPECT_EQ(tensor<bool>({true, false}).to_vector(), (std::vector<bool>{true, false}));
}

TEST(Factories, NestedListsOfOneItemKeepEachBrace) {
  EXPECT_EQ(tensor({{1, 2}}).shape(), (Shape{1, 2}));
  EXPECT_EQ(tensor({{1}, {2}}).shape(), (Shape{2, 1}));
  EXPECT_EQ(tensor({{7}}).shape(), (Shape{1, 1}));
  EXPECT_EQ(tensor({{{7}}}).shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(tensor({{{1, 2}}}).shape(), (Shape{1, 1, 2}));
}

TEST(Factories, RaggedListsAreRefused) {
  EXPECT_THROW(tensor({{1, 2}, {3}}), ShapeError);
  EXPECT_THROW(tensor({{1, 2}, 3}), ShapeError);
  EXPECT_THROW(tensor({1, {2, 3}}), ShapeError);
  EXPECT_THROW(tensor({{}, {1}}), ShapeError);
  EXPECT_THROW(tensor({{{1}, {2}}, {{3}, {4, 5}}}), ShapeError);
}
