#include <tenet/nn/container.hpp>
#include <tenet/nn/dropout.hpp>
#include <tenet/nn/init.hpp>
#include <tenet/nn/linear.hpp>

#include <optional>

#include "message.hpp"

namespace tenet {
namespace {

using test::message;

using Names = std::vector<std::string>;

Names names(const nn::StateDict& dict) {
  Names all;
  for (const auto& entry : dict) all.push_back(entry.first);
  return all;
}

struct Net : nn::Module<Net> {
  nn::Linear<> fc1{3, 4}, fc2{4, 2, {.bias = false}};
  nn::Dropout dropout{0.5};
  TENET_MODULE(fc1, fc2, dropout)

  Tensor<float> forward(const Tensor<float>& x) { return fc2(dropout(fc1(x))); }
};

// With a parameter and buffers of its own before and after what is inside.
struct Outer : nn::Module<Outer> {
  nn::Parameter<double> scale{ones<double>({2})};
  Net net;
  nn::Buffer<std::int64_t> count{zeros<std::int64_t>({})};
  nn::Linear<> last{2, 1};
  TENET_MODULE(scale, net, count, last)
};

TEST(Module, NamesAreThoseOfPyTorch) {
  Outer m;
  EXPECT_EQ(names(m.named_parameters()),
            (Names{"scale", "net.fc1.weight", "net.fc1.bias", "net.fc2.weight", "last.weight", "last.bias"}));
  EXPECT_EQ(names(m.named_buffers()), (Names{"count"}));
  EXPECT_EQ(names(m.state_dict()),
            (Names{"scale", "net.fc1.weight", "net.fc1.bias", "net.fc2.weight", "count", "last.weight", "last.bias"}));
  EXPECT_EQ(m.parameters().size(), 6u);
  EXPECT_TRUE(m.parameters()[2].is(m.net.fc1.bias));
  EXPECT_EQ(m.num_parameters(), 2 + 12 + 4 + 8 + 2 + 1);
  for (const AnyTensor& p : m.parameters()) EXPECT_TRUE(p.requires_grad() && p.is_leaf());
  EXPECT_FALSE(m.count.requires_grad());
}

TEST(Module, ACopyIsDeep) {
  Outer a;
  a.scale.data()[0] = 5;
  Outer b = a;
  EXPECT_EQ(names(b.state_dict()), names(a.state_dict()));
  const auto pa = a.state_dict(), pb = b.state_dict();
  for (std::size_t i = 0; i < pa.size(); ++i) {
    EXPECT_FALSE(pa[i].second.is(pb[i].second));
    EXPECT_NE(pa[i].second.data_ptr(), pb[i].second.data_ptr());
    EXPECT_EQ(pa[i].second.requires_grad(), pb[i].second.requires_grad());
  }
  EXPECT_EQ(b.scale(0), 5);
  b.scale.data()[0] = 7;
  EXPECT_EQ(a.scale(0), 5);
  // Assigning copies too, and gradients stay with the original.
  a.last(ones({1, 2})).backward();
  Outer c;
  c = a;
  EXPECT_FALSE(c.scale.is(a.scale));
  EXPECT_EQ(c.scale(0), 5);
  EXPECT_TRUE(a.last.weight.grad().defined());
  EXPECT_FALSE(c.last.weight.grad().defined());
}

TEST(Module, AMoveKeepsTheParameters) {
  Outer a;
  const std::vector<AnyTensor> before = a.parameters();
  Outer b = std::move(a);
  const std::vector<AnyTensor> after = b.parameters();
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(after[i].is(before[i]));
  std::vector<Net> many(1);  // which move when the vector grows
  const AnyTensor weight = many[0].fc1.weight;
  many.resize(50);
  EXPECT_TRUE(many[0].parameters()[0].is(weight));
}

struct Tied : nn::Module<Tied> {
  nn::Linear<> encoder{3, 3}, decoder{3, 3};
  TENET_MODULE(encoder, decoder)
  Tied() { decoder.weight.tie(encoder.weight); }
};

TEST(Module, TiedParametersAreOne) {
  Tied m;
  EXPECT_EQ(m.parameters().size(), 3u);
  EXPECT_EQ(m.num_parameters(), 9 + 3 + 3);
  EXPECT_EQ(names(m.named_parameters()), (Names{"encoder.weight", "encoder.bias", "decoder.bias"}));
  EXPECT_EQ(names(m.state_dict()), (Names{"encoder.weight", "encoder.bias", "decoder.weight", "decoder.bias"}));
  m.decoder(m.encoder(ones({1, 3}))).backward(ones({1, 3}));
  EXPECT_TRUE(m.encoder.weight.grad().is(m.decoder.weight.grad()));
}

TEST(Module, ACloneKeepsTies) {
  const Tied a;
  Tied b = a.clone();
  EXPECT_TRUE(b.encoder.weight.is(b.decoder.weight));
  EXPECT_FALSE(b.encoder.weight.is(a.encoder.weight));
  EXPECT_EQ(b.encoder.weight.to_vector(), a.encoder.weight.to_vector());
  EXPECT_FALSE(Tied(a).decoder.weight.is(a.decoder.weight));
  // A clone after a clone is not tied to the first.
  EXPECT_FALSE(a.clone().encoder.weight.is(b.encoder.weight));
}

struct Forgetful : nn::Module<Forgetful> {
  nn::Linear<> fc1{2, 2}, fc2{2, 2};
  nn::Parameter<> scale{ones({1})};
  TENET_MODULE(fc1)
};
struct HoldsForgetful : nn::Module<HoldsForgetful> {
  nn::Linear<> before{2, 2};
  Forgetful inside;
  TENET_MODULE(before, inside)
};
struct ForgetsABuffer : nn::Module<ForgetsABuffer> {
  nn::Buffer<> mean{zeros({1})};
  TENET_MODULE()
};
struct ForgetsAnOptional : nn::Module<ForgetsAnOptional> {
  std::optional<nn::Linear<>> maybe;
  TENET_MODULE()
};

TEST(Module, ForgottenMembersAreFound) {
  Forgetful m;
  const std::string why = message([&] { m.parameters(); });
  EXPECT_NE(why.find("3 parameter(s)"), why.npos) << why;
  EXPECT_NE(why.find("TENET_MODULE(fc1)"), why.npos) << why;
  EXPECT_NE(why.find("after member 'fc1'"), why.npos) << why;
  EXPECT_THROW(m.state_dict(), Error);
  HoldsForgetful outer;
  EXPECT_THROW(outer.parameters(), Error);
  ForgetsABuffer buffer;
  EXPECT_THROW(buffer.state_dict(), Error);
  nn::Sequential<nn::Linear<>, Forgetful> sequence{nn::Linear<>{2, 2}, Forgetful{}};
  EXPECT_THROW(sequence.parameters(), Error);
  nn::ModuleList<Forgetful> list{Forgetful{}, Forgetful{}};
  EXPECT_THROW(list.parameters(), Error);
}

TEST(Module, MembersThatAreNotThereAreNotMissed) {
  ForgetsAnOptional m;
  EXPECT_TRUE(m.parameters().empty());
  m.maybe.emplace(2, 2);
  EXPECT_THROW(m.parameters(), Error);
  m.maybe.reset();
  EXPECT_TRUE(m.parameters().empty());
}

TEST(ModuleList, IsNamedByPlace) {
  nn::ModuleList<nn::Linear<>> list;
  for (int i = 0; i < 12; ++i) list.emplace_back(2, 2, nn::LinearOptions{.bias = false});
  EXPECT_EQ(list.size(), 12u);
  EXPECT_EQ(names(list.state_dict())[0], "0.weight");
  EXPECT_EQ(names(list.state_dict())[11], "11.weight");
  EXPECT_TRUE(list.parameters()[3].is(list[3].weight));
  EXPECT_EQ(message<IndexError>([&] { list[12]; }), "ModuleList: index 12 of 12 modules");
  const auto copy = list;
  EXPECT_FALSE(nn::ModuleList<nn::Linear<>>(copy)[0].weight.is(list[0].weight));
  std::size_t n = 0;
  for (nn::Linear<>& l : list) n += l.weight.is(list[n].weight);
  EXPECT_EQ(n, 12u);
}

TEST(Sequential, RunsAndNamesItsLayers) {
  nn::Sequential net{nn::Linear<>{3, 4}, nn::Dropout{0.0}, nn::Sequential{nn::Linear<>{4, 4}, nn::Linear<>{4, 1}}};
  EXPECT_EQ(names(net.state_dict()), (Names{"0.weight", "0.bias", "2.0.weight", "2.0.bias", "2.1.weight", "2.1.bias"}));
  EXPECT_EQ(net.size(), 3u);
  const Tensor<float> x = ones({2, 3});
  EXPECT_EQ(net(x).to_vector(), net.get<2>().get<1>()(net.get<2>().get<0>()(net.get<0>()(x))).to_vector());
  net.eval();
  EXPECT_FALSE(net.get<1>().is_training());
  EXPECT_FALSE(net.get<2>().get<1>().is_training());
  auto copy = net;
  EXPECT_FALSE(copy.get<0>().weight.is(net.get<0>().weight));
  EXPECT_FALSE(copy.is_training());
  nn::Sequential<> none;
  EXPECT_EQ(none(x).to_vector(), x.to_vector());
}

struct Mixed : nn::Module<Mixed> {
  nn::Sequential<nn::Linear<>, nn::Dropout> body{nn::Linear<>{2, 2}, nn::Dropout{0.5}};
  nn::ModuleList<nn::Dropout> drops{nn::Dropout{0.1}, nn::Dropout{0.2}};
  TENET_MODULE(body, drops)
};

TEST(Module, TrainAndEvalReachAllModules) {
  Mixed m;
  EXPECT_TRUE(m.is_training());
  EXPECT_EQ(&m.eval(), &m);
  EXPECT_FALSE(m.is_training() || m.body.is_training() || m.body.get<1>().is_training() || m.drops[1].is_training());
  m.train();
  EXPECT_TRUE(m.is_training() && m.body.get<0>().is_training() && m.drops[0].is_training());
  m.train(false);
  EXPECT_FALSE(m.drops[1].is_training());
}

TEST(Module, ApplyVisitsAllModules) {
  Mixed m;
  int modules = 0, weights = 0;
  m.apply([&](auto& inside) {
    ++modules;
    if constexpr (requires { inside.weight; }) {
      ++weights;
      nn::init::constant_(inside.weight, 3);
    }
  });
  EXPECT_EQ(modules, 1 + 3 + 3);
  EXPECT_EQ(weights, 1);
  EXPECT_EQ(m.body.get<0>().weight.to_vector(), std::vector<float>(4, 3.f));
}

TEST(Module, ParametersFreezeAndForgetGradients) {
  Net m;
  m.eval();
  m(ones({1, 3})).backward(ones({1, 2}));
  EXPECT_TRUE(m.fc1.weight.grad().defined());
  m.zero_grad();
  for (const AnyTensor& p : m.parameters()) EXPECT_FALSE(p.grad_any().defined());
  m.requires_grad_(false);
  EXPECT_FALSE(m(ones({1, 3})).requires_grad());
  m.fc2.requires_grad_();
  EXPECT_TRUE(m.fc2.weight.requires_grad());
  EXPECT_FALSE(m.fc1.weight.requires_grad());
  EXPECT_FALSE(Net(m).fc1.weight.requires_grad());  // a copy is as frozen
  EXPECT_EQ(m.parameters().size(), 3u);             // and frozen ones are still parameters
}

TEST(Module, LivesOnTheCpu) {
  Net m;
  EXPECT_EQ(&m.to(Device()), &m);
}

}  // namespace
}  // namespace tenet
