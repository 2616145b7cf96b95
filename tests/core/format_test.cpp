#include <tenet/core/factories.hpp>
#include <tenet/core/format.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>

using namespace tenet;

namespace {

struct WithOptions {
  explicit WithOptions(const PrintOptions& o) : old(print_options()) { set_print_options(o); }
  ~WithOptions() { set_print_options(old); }
  PrintOptions old;
};

std::int64_t longest_line(const std::string& s) {
  std::istringstream in(s);
  std::size_t most = 0;
  for (std::string line; std::getline(in, line);) most = std::max(most, line.size());
  return std::int64_t(most);
}

}  // namespace

TEST(Format, WholeFloatsHaveABarePoint) {
  EXPECT_EQ(to_string(tensor({{1, 2}, {3, 4}})), "tensor([[1., 2.],\n        [3., 4.]])");
  EXPECT_EQ(to_string(tensor({-1, 10, 0})), "tensor([-1., 10.,  0.])");
}

TEST(Format, FloatsShareOneWidth) {
  EXPECT_EQ(to_string(tensor({{1.5, 2}, {3, 4}})), "tensor([[1.5000, 2.0000],\n        [3.0000, 4.0000]])");
  EXPECT_EQ(to_string(tensor({-1.25, 10.5})), "tensor([-1.2500, 10.5000])");
}

TEST(Format, ScientificWhenTheRangeAsks) {
  EXPECT_EQ(to_string(tensor({1e-5, 1.0})), "tensor([1.0000e-05, 1.0000e+00])");
  EXPECT_EQ(to_string(tensor({0.001, 1.5})), "tensor([1.0000e-03, 1.5000e+00])");
  EXPECT_EQ(to_string(tensor({0.002, 1.5})), "tensor([0.0020, 1.5000])");
  EXPECT_EQ(to_string(tensor({1e9})), "tensor([1.0000e+09])");
  EXPECT_EQ(to_string(tensor({1, 1000})), "tensor([   1., 1000.])");
  EXPECT_EQ(to_string(tensor({1, 1001})), "tensor([1.0000e+00, 1.0010e+03])");
  EXPECT_EQ(to_string(tensor<double>({1e308, -1e-308})), "tensor([ 1.0000e+308, -1.0000e-308], dtype=float64)");
}

TEST(Format, NanAndInfinity) {
  EXPECT_EQ(to_string(tensor({double(NAN), 1.5, INFINITY, -INFINITY})), "tensor([   nan, 1.5000,    inf,   -inf])");
  EXPECT_EQ(to_string(tensor({-double(NAN), double(INFINITY)})), "tensor([nan, inf])");
  EXPECT_EQ(to_string(tensor({double(INFINITY), 1.0})), "tensor([inf, 1.])");
}

TEST(Format, Integers) {
  EXPECT_EQ(to_string(tensor<std::int64_t>({1, -20, 300})), "tensor([  1, -20, 300])");
  EXPECT_EQ(to_string(tensor<std::uint8_t>({1, 255})), "tensor([  1, 255], dtype=uint8)");
  EXPECT_EQ(to_string(tensor<std::int64_t>({std::numeric_limits<std::int64_t>::min()})),
            "tensor([-9223372036854775808])");
}

TEST(Format, Booleans) { EXPECT_EQ(to_string(tensor<bool>({true, false})), "tensor([ true, false])"); }

TEST(Format, Scalars) {
  EXPECT_EQ(to_string(scalar(3.5f)), "tensor(3.5000)");
  EXPECT_EQ(to_string(scalar(3.0f)), "tensor(3.)");
  EXPECT_EQ(to_string(scalar(std::int64_t{7})), "tensor(7)");
  EXPECT_EQ(to_string(scalar(true)), "tensor(true)");
}

TEST(Format, TypesAreNamedUnlessUsual) {
  EXPECT_EQ(to_string(full<half>({1}, half(0.5f))), "tensor([0.5000], dtype=float16)");
  EXPECT_EQ(to_string(full<bfloat16>({1}, bfloat16(2))), "tensor([2.], dtype=bfloat16)");
  EXPECT_EQ(to_string(zeros<std::int32_t>({1})), "tensor([0], dtype=int32)");
  EXPECT_EQ(to_string(zeros<std::int8_t>({1})), "tensor([0], dtype=int8)");
}

TEST(Format, EmptyTensorsShowTheirSize) {
  EXPECT_EQ(to_string(empty({0})), "tensor([])");
  EXPECT_EQ(to_string(empty({2, 0, 3})), "tensor([], size=[2, 0, 3])");
  EXPECT_EQ(to_string(empty<std::int64_t>({0, 1})), "tensor([], size=[0, 1], dtype=int64)");
}

TEST(Format, MatricesOfMatricesAreSetApart) {
  EXPECT_EQ(to_string(arange<std::int64_t>(0)), "tensor([], dtype=int64)");
  const auto t = from_vector<std::int64_t>({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
  EXPECT_EQ(to_string(t), "tensor([[[1, 2],\n         [3, 4]],\n\n        [[5, 6],\n         [7, 8]]])");
}

TEST(Format, ManyElementsAreSummarized) {
  EXPECT_EQ(to_string(arange<std::int64_t>(1001)), "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
  const std::string whole = to_string(arange<std::int64_t>(1000));
  EXPECT_EQ(whole.find("..."), std::string::npos);
  EXPECT_EQ(to_string(full({40, 40}, 7)),
            "tensor([[7., 7., 7.,  ..., 7., 7., 7.],\n"
            "        [7., 7., 7.,  ..., 7., 7., 7.],\n"
            "        [7., 7., 7.,  ..., 7., 7., 7.],\n"
            "        ...,\n"
            "        [7., 7., 7.,  ..., 7., 7., 7.],\n"
            "        [7., 7., 7.,  ..., 7., 7., 7.],\n"
            "        [7., 7., 7.,  ..., 7., 7., 7.]])");
  // A short dimension is not cut, and elements that are not shown do not decide the form.
  auto t = zeros({2, 600});
  t(0, 300) = 1e-7f;
  EXPECT_EQ(to_string(t), "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n        [0., 0., 0.,  ..., 0., 0., 0.]])");
}

TEST(Format, LinesKeepTheirWidth) {
  const std::string s = to_string(full({3, 30}, 0.125f));
  EXPECT_EQ(s.substr(0, s.find('\n')),
            "tensor([[0.1250, 0.1250, 0.1250, 0.1250, 0.1250, 0.1250, 0.1250, 0.1250, 0.1250,");
  // Closing brackets may stand beyond the width, as in PyTorch.
  for (int n : {1, 9, 10, 40}) EXPECT_LE(longest_line(to_string(full<double>({2, n}, 0.125))), 83) << n;
  // A note that does not fit goes to a line of its own.
  EXPECT_EQ(to_string(full<double>({8}, 0.125)),
            "tensor([0.1250, 0.1250, 0.1250, 0.1250, 0.1250, 0.1250, 0.1250, 0.1250],\n       dtype=float64)");
}

TEST(Format, StridedTensorsShowTheirElements) {
  const auto t = from_vector<std::int64_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(to_string(AnyTensor(make_alias(*t.impl(), {3, 2}, {1, 3}, 0))),
            "tensor([[1, 4],\n        [2, 5],\n        [3, 6]])");
  EXPECT_EQ(to_string(AnyTensor(make_alias(*t.impl(), {2}, {0}, 4))), "tensor([5, 5])");
}

TEST(Format, GradientsAreNoted) {
  auto t = zeros({1});
  t.requires_grad_();
  EXPECT_EQ(to_string(t), "tensor([0.], requires_grad=true)");
}

TEST(Format, UndefinedTensorsPrint) { EXPECT_EQ(to_string(AnyTensor()), "tensor(undefined)"); }

TEST(Format, OptionsAreKept) {
  const WithOptions options({.precision = 2, .threshold = 5, .edge_items = 1, .line_width = 30});
  EXPECT_EQ(to_string(tensor({1.5, 2.25})), "tensor([1.50, 2.25])");
  EXPECT_EQ(to_string(arange<std::int64_t>(6)), "tensor([0,  ..., 5])");
  EXPECT_EQ(to_string(full({5}, 0.5)), "tensor([0.50, 0.50, 0.50,\n        0.50, 0.50])");
  EXPECT_THROW(set_print_options({.precision = -1}), Error);
  EXPECT_THROW(set_print_options({.threshold = -1}), Error);
  EXPECT_THROW(set_print_options({.edge_items = 0}), Error);
  EXPECT_THROW(set_print_options({.line_width = 0}), Error);
  EXPECT_EQ(print_options().precision, 2);
}

TEST(Format, ExtremeOptionsStayInBounds) {
  const WithOptions options({.precision = 99, .line_width = 1});
  EXPECT_EQ(to_string(tensor<double>({99999999.5})).size(),
            std::string("tensor([99999999.],\n       dtype=float64)").size() + 99);
  EXPECT_NE(to_string(tensor<double>({-1.5e-308, 2})).find("e-308"), std::string::npos);
}

TEST(Format, PrintsToStreams) {
  std::ostringstream out;
  out << "x = " << tensor({1, 2}) << '\n';
  EXPECT_EQ(out.str(), "x = tensor([1., 2.])\n");
}
