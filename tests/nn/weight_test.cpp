// Weights in other formats than dense: what layers, copies, states and loading make of them.
#include <gtest/gtest.h>
#include <tenet/tenet.hpp>

#include "message.hpp"

namespace {

using namespace tenet;

// A weight of rank one: the product of a column and a row, both of which train.
struct Outer final : nn::WeightFormat<float> {
  nn::Parameter<> column, row;

  Outer(Tensor<float> c, Tensor<float> r) : column(std::move(c)), row(std::move(r)) {}
  std::string_view name() const override { return "outer"; }
  Shape shape() const override { return {column.numel(), row.numel()}; }
  Tensor<float> dense(const Tensor<float>&) const override { return matmul(unsqueeze(column, 1), unsqueeze(row, 0)); }
  std::shared_ptr<nn::WeightFormat<float>> clone() const override { return std::make_shared<Outer>(*this); }
  void collect(const std::string& prefix, std::vector<nn::StateSlot>& slots) override {
    slots.push_back(slot(prefix, "column", column));
    slots.push_back(slot(prefix, "row", row));
  }
  static std::shared_ptr<nn::WeightFormat<float>> read(const Shape& shape, const nn::StateDict& part) {
    if (part.size() != 2) throw Error("outer: expected a column and a row");
    return std::make_shared<Outer>(zeros<float>({shape[0]}), zeros<float>({shape[1]}));
  }
};

// Half of the layer's own weight.
struct Halved final : nn::WeightFormat<float> {
  nn::Buffer<> factor{full<float>({1}, 0.5f)};
  Shape of;

  explicit Halved(Shape s) : of(s) {}
  std::string_view name() const override { return "halved"; }
  Shape shape() const override { return of; }
  bool keeps_parameter() const override { return true; }
  Tensor<float> dense(const Tensor<float>& parameter) const override { return parameter * factor; }
  std::shared_ptr<nn::WeightFormat<float>> clone() const override { return std::make_shared<Halved>(*this); }
  void collect(const std::string& prefix, std::vector<nn::StateSlot>& slots) override {
    slots.push_back(slot(prefix, "factor", factor));
  }
  static std::shared_ptr<nn::WeightFormat<float>> read(const Shape& shape, const nn::StateDict&) {
    return std::make_shared<Halved>(shape);
  }
};

struct Net : nn::Module<Net> {
  nn::Conv2d<> conv{1, 2, 3};
  nn::Linear<> fc{8, 3};
  TENET_MODULE(conv, fc)
  Tensor<float> forward(const Tensor<float>& x) { return fc(flatten(relu(conv(x)), 1)); }
};

Net outer_net() {
  Net net;
  net.fc.weight.set_format(std::make_shared<Outer>(from_vector<float>({1, 2, 3}), randn<float>({8})));
  net.conv.weight.set_format(std::make_shared<Halved>(net.conv.weight.full_shape()));
  return net;
}

std::vector<std::string> names(const nn::StateDict& dict) {
  std::vector<std::string> out;
  for (const auto& entry : dict) out.push_back(entry.first);
  return out;
}

std::vector<float> answer(Net& net) { return net(ones<float>({1, 1, 4, 4})).to_vector(); }

const std::vector<nn::WeightReader<>> formats = {{"outer", &Outer::read}, {"halved", &Halved::read}};

TEST(Weight, LayersComputeWithIt) {
  Net net = outer_net();
  const auto x = randn<float>({2, 1, 4, 4});
  const auto y = net(x);
  const auto hidden = flatten(relu(conv2d(x, net.conv.weight * 0.5f, net.conv.bias)), 1);
  EXPECT_EQ(y.to_vector(), linear(hidden, net.fc.weight.dense(), net.fc.bias).to_vector());
  EXPECT_EQ(net.fc.weight.full_shape(), (Shape{3, 8}));
  EXPECT_FALSE(bool(net.fc.weight));
  EXPECT_EQ(net.fc.weight.format_name(), "outer");
}

TEST(Weight, NamesItsTensorsInTheState) {
  Net net = outer_net();
  EXPECT_EQ(names(net.state_dict()),
            (std::vector<std::string>{"conv.weight", "conv.weight.halved.factor", "conv.bias", "fc.weight.outer.column",
                                      "fc.weight.outer.row", "fc.bias"}));
  EXPECT_EQ(net.named_buffers().size(), 1u);
  EXPECT_EQ(net.num_parameters(), 18 + 2 + 3 + 8 + 3);
}

TEST(Weight, Trains) {
  Net net = outer_net();
  net(ones<float>({1, 1, 4, 4})).sum().backward();
  for (const auto& [name, p] : net.named_parameters()) EXPECT_TRUE(bool(p.impl()->grad)) << name;
  net.zero_grad();
  for (const auto& [name, p] : net.named_parameters()) EXPECT_FALSE(bool(p.impl()->grad)) << name;
}

TEST(Weight, CopiesAreDeep) {
  Net net = outer_net();
  {
    const no_grad guard;
    net.conv.bias.fill_(5);  // the hidden values are not 0
  }
  Net copy = net;
  const auto before = answer(copy);
  {
    const no_grad guard;
    static_cast<Outer*>(net.fc.weight.format())->row.zero_();
  }
  EXPECT_EQ(answer(copy), before);
  EXPECT_NE(answer(net), before);
  net = copy;
  EXPECT_EQ(answer(net), before);
}

TEST(Weight, FollowsTheFormatOfAState) {
  Net stored = outer_net(), net;
  const auto parameter = net.conv.weight;
  const TensorImpl* identity = net.conv.weight.impl();
  net.load_state_dict(stored.state_dict(), {.formats = formats});
  EXPECT_EQ(answer(net), answer(stored));
  EXPECT_EQ(net.conv.weight.impl(), identity);  // an optimizer may hold it
  Net dense;
  net.load_state_dict(dense.state_dict());
  EXPECT_EQ(net.fc.weight.format_name(), "dense");
  EXPECT_EQ(answer(net), answer(dense));
}

TEST(Weight, AStateThatDoesNotFitChangesNothing) {
  Net stored = outer_net(), net;
  const auto before = answer(net);
  EXPECT_NE(test::message([&] {
              net.load_state_dict(stored.state_dict());
            }).find("conv.weight is stored as halved, which is not among LoadOptions::formats"),
            std::string::npos);
  auto dict = stored.state_dict();
  dict.back().second = ones<float>({4});
  EXPECT_THROW(net.load_state_dict(dict, {.formats = formats}), Error);
  dict = stored.state_dict();
  dict.erase(dict.end() - 2);  // fc.weight.outer.row
  EXPECT_THROW(net.load_state_dict(dict, {.formats = formats}), Error);
  EXPECT_EQ(net.fc.weight.format_name(), "dense");
  EXPECT_EQ(answer(net), before);
}

TEST(Weight, ModulesAreVisitedByName) {
  struct Outermost : nn::Module<Outermost> {
    Net net;
    nn::ModuleList<nn::Linear<>> list{nn::Linear<>{1, 1}};
    TENET_MODULE(net, list)
  } model;
  std::vector<std::string> seen;
  model.each_module([&](const std::string& name, auto&) { seen.push_back(name); });
  EXPECT_EQ(seen, (std::vector<std::string>{"net.conv", "net.fc", "net", "list.0", "list", ""}));
}

}  // namespace
