#include <tenet/nn/container.hpp>
#include <tenet/nn/conv.hpp>
#include <tenet/nn/dropout.hpp>
#include <tenet/nn/linear.hpp>
#include <tenet/nn/pooling.hpp>
#include <tenet/nn/summary.hpp>

#include <gtest/gtest.h>

namespace tenet {
namespace {

struct Net : nn::Module<Net> {
  nn::Conv2d<> conv{1, 20, 5};
  nn::MaxPool2d pool{2};
  nn::Sequential<nn::Dropout, nn::Linear<>> head{nn::Dropout(0.5), nn::Linear<>(20 * 16, 10)};
  nn::ModuleList<nn::Linear<>> unused{nn::Linear<>(2, 1)};
  nn::Parameter<double> scale{ones<double>({1})};
  TENET_MODULE(conv, pool, head, unused, scale)

  Tensor<float> forward(const Tensor<float>& x) { return head(pool(pool(conv(x))).view({-1, 320})); }
};

TEST(Summary, ListsModulesShapesAndParameters) {
  Net net;
  EXPECT_EQ(nn::summary(net, zeros({64, 1, 20, 20})),
            R"(layer                 output                          parameters
----------------------------------------------------------------
Net                   [64, 10]                                 1
  conv: Conv2d        [64, 20, 16, 16]                       520
  pool: MaxPool2d     [64, 20, 8, 8], [64, 20, 4, 4]           0
  head: Sequential    [64, 10]
    0: Dropout        [64, 320]                                0
    1: Linear         [64, 10]                             3,210
  unused: ModuleList  -
    0: Linear         -                                        3
----------------------------------------------------------------
3,734 parameters, 14,940 bytes
)");
  net.conv.requires_grad_(false);
  const std::string frozen = nn::summary(net, zeros({1, 1, 20, 20}));
  EXPECT_NE(frozen.find("3,734 parameters, 14,940 bytes; 520 of them frozen\n"), frozen.npos) << frozen;
}

TEST(Summary, LeavesTheModelAsItWas) {
  Net net;
  net.head.eval();
  const GeneratorState random = default_generator().state();
  nn::summary(net, zeros({1, 1, 20, 20}));
  EXPECT_EQ(default_generator().state(), random);  // dropout drew nothing
  EXPECT_TRUE(net.is_training() && net.conv.is_training());
  EXPECT_FALSE(net.head.is_training() || net.head.get<0>().is_training());
  EXPECT_THROW(nn::summary(net, zeros({1, 2, 20, 20})), ShapeError);
  EXPECT_TRUE(net.is_training());
  EXPECT_FALSE(net.head.is_training());
  EXPECT_TRUE(net(zeros({1, 1, 20, 20})).requires_grad());
}

struct Tied : nn::Module<Tied> {
  nn::Linear<> a{2, 2, {.bias = false}}, b{2, 2, {.bias = false}};
  TENET_MODULE(a, b)
  Tied() { b.weight.tie(a.weight); }
  Tensor<float> forward(const Tensor<float>& x) { return b(a(x)); }
};

TEST(Summary, CountsTiedParametersOnce) {
  Tied net;
  const std::string table = nn::summary(net, zeros({1, 2}));
  EXPECT_NE(table.find("\n4 parameters, 16 bytes\n"), table.npos) << table;
}

}  // namespace
}  // namespace tenet
