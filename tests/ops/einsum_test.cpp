#include <tenet/ops/einsum.hpp>

#include "core/support.hpp"
#include "ops/op_cases.hpp"

namespace tenet {
namespace {

// Every case of the fixture is named by its equation.
TEST(Einsum, Equations) {
  const auto all = test::read_references("einsum.txt");
  ASSERT_FALSE(all.empty());
  for (const auto& one : all) {
    test::check({.name = one.name, .f = [&](const auto& x) { return einsum(one.name, x); }, .file = "einsum.txt"});
  }
}

TEST(Einsum, Spellings) {
  const auto a = arange<double>(6).view({2, 3}), b = arange<double>(12).view({3, 4});
  const auto expected = matmul(a, b).to_vector();
  EXPECT_EQ(einsum(" i j, jk -> ik ", a, b).to_vector(), expected);
  EXPECT_EQ(einsum("ij,jk", {a, b}).to_vector(), expected);
  EXPECT_EQ(einsum("Xy,yZ->XZ", std::vector{a, b}).to_vector(), expected);
  EXPECT_EQ(einsum("ij,jk->ik", a.to<half>(), b.to<half>()).to_vector(), matmul(a, b).to<half>().to_vector());
}

TEST(Einsum, NamesWhatIsWrong) {
  const Tensor<float> x = zeros({2, 3}), y = zeros({3, 4});
  EXPECT_EQ(message<ShapeError>([&] { einsum("ijk->i", x); }),
            "einsum: the subscripts 'ijk' do not fit shape [2, 3] in 'ijk->i'");
  EXPECT_EQ(message<ShapeError>([&] { einsum("ij,ij->", x, y); }),
            "einsum: dimension 0 of [3, 4] does not fit the size 2 it has elsewhere in 'ij,ij->'");
  EXPECT_EQ(message<ShapeError>([&] { einsum("ij->ik", x); }),
            "einsum: expected in the output what occurs in the input, once in 'ij->ik'");
  EXPECT_EQ(message<ShapeError>([&] { einsum("ij,jk->ik", x); }),
            "einsum: expected terms for 1 tensors in 'ij,jk->ik'");
  EXPECT_THROW(einsum("ij->ik", x, y), ShapeError);
  EXPECT_THROW(einsum("ij->ii", x), ShapeError);
  EXPECT_THROW(einsum("ii->i", x), ShapeError);
  EXPECT_THROW(einsum("ii->i", zeros({1, 3})), ShapeError);
  EXPECT_THROW(einsum("i1->i", x), ShapeError);
  EXPECT_THROW(einsum("ij-i", x), ShapeError);
  EXPECT_THROW(einsum("i.j", x), ShapeError);
  EXPECT_THROW(einsum("...i...", x), ShapeError);
  EXPECT_THROW(einsum("ij->j>", x), ShapeError);
  EXPECT_THROW(einsum("ij->j,", x), ShapeError);
  EXPECT_THROW(einsum("...ijk", x), ShapeError);
  EXPECT_THROW(einsum("", x), ShapeError);
  EXPECT_THROW(einsum("ij", std::vector<Tensor<float>>{}), ShapeError);
  EXPECT_THROW(einsum("ijklmnopq", x), ShapeError);
}

}  // namespace
}  // namespace tenet
