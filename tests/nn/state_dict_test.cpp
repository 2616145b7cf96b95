#include <tenet/nn/module.hpp>
#include <tenet/ops/view.hpp>

#include "message.hpp"

namespace tenet {
namespace {

using test::message;

struct Inner : nn::Module<Inner> {
  nn::Parameter<> weight{zeros({2, 3})}, bias{zeros({2})};
  TENET_MODULE(weight, bias)
};
struct Net : nn::Module<Net> {
  Inner first, second;
  nn::Parameter<double> scale{zeros<double>({})};
  nn::Buffer<std::int64_t> count{zeros<std::int64_t>({1})};
  TENET_MODULE(first, second, scale, count)
};

/// A state in which every element differs from those of a new Net.
nn::StateDict filled(Net& like) {
  nn::StateDict out;
  float next = 1;
  for (const auto& [name, t] : like.state_dict()) {
    if (t.dtype() == DType::float64) {
      out.emplace_back(name, full<double>(t.shape(), next++));
    } else if (t.dtype() == DType::int64) {
      out.emplace_back(name, full<std::int64_t>(t.shape(), std::int64_t(next++)));
    } else {
      Tensor<float> x = empty(t.shape());
      for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] = next++;
      out.emplace_back(name, x);
    }
  }
  return out;
}

bool is_new(Net& m) {
  for (const nn::Parameter<>* p : {&m.first.weight, &m.first.bias, &m.second.weight, &m.second.bias})
    for (const float x : p->to_vector())
      if (x != 0) return false;
  return m.scale.item() == 0 && m.count.item() == 0;
}

TEST(StateDict, HoldsTheTensorsThemselves) {
  Net m;
  EXPECT_TRUE(m.state_dict()[1].second.is(m.first.bias));
}

TEST(StateDict, LoadingCopiesIntoTheParameters) {
  Net m;
  const nn::StateDict state = filled(m);
  const AnyTensor weight = m.first.weight;
  const auto version = weight.version();
  m.load_state_dict(state);
  EXPECT_TRUE(weight.is(m.first.weight));  // which an optimizer may hold
  EXPECT_GT(weight.version(), version);    // as backward will notice
  EXPECT_TRUE(m.first.weight.requires_grad());
  EXPECT_EQ(m.first.weight.to_vector(), Tensor<float>(state[0].second).to_vector());
  EXPECT_EQ(m.second.bias.to_vector(), Tensor<float>(state[3].second).to_vector());
  EXPECT_EQ(m.scale.item(), Tensor<double>(state[4].second).item());
  EXPECT_EQ(m.count.item(), Tensor<std::int64_t>(state[5].second).item());
  Tensor<float>(state[0].second).data()[0] = -1;
  EXPECT_EQ(m.first.weight(0, 0), 1);  // a copy
  Net other;
  other.load_state_dict(m.state_dict());
  EXPECT_EQ(other.second.weight.to_vector(), m.second.weight.to_vector());
  m.load_state_dict(m.state_dict());  // its own
  EXPECT_EQ(other.second.weight.to_vector(), m.second.weight.to_vector());
}

TEST(StateDict, OrderDoesNotMatterAndSourcesMayBeStrided) {
  Net m;
  nn::StateDict state = filled(m);
  const Tensor<float> wide = full({3, 5}, 100.f);
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 5; ++j) wide(i, j) = float(10 * i + j);
  state[0].second = wide.slice(1, 0, 4, 2).t();            // [2, 3], columns 0 and 2 of the transpose
  state[1].second = Tensor<float>(ones({1}).expand({2}));  // one element for both
  std::swap(state[0], state[5]);
  m.load_state_dict(state);
  EXPECT_EQ(m.first.weight.to_vector(), (std::vector<float>{0, 10, 20, 2, 12, 22}));
  EXPECT_EQ(m.first.bias.to_vector(), (std::vector<float>{1, 1}));
  EXPECT_TRUE(m.first.weight.is_contiguous());
}

TEST(StateDict, ErrorsListEverythingAndChangeNothing) {
  Net m;
  nn::StateDict state = filled(m);
  state[0].second = ones({3, 2});
  state[1].second = ones<double>({2});
  state[2].first = "second.wieght";
  state[5].second = ones<std::int64_t>({});
  const std::string why = message([&] { m.load_state_dict(state); });
  for (const char* part : {"first.weight: expected [2, 3] of float32, got [3, 2] of float32",
                           "first.bias: expected [2] of float32, got [2] of float64", "missing: second.weight",
                           "unexpected: second.wieght", "count: expected [1] of int64, got [] of int64"}) {
    EXPECT_NE(why.find(part), why.npos) << why;
  }
  EXPECT_EQ(why.find("second.bias"), why.npos) << why;
  EXPECT_TRUE(is_new(m));
  EXPECT_THROW(m.load_state_dict({}), Error);
  state = filled(m);
  state[3].second = AnyTensor();
  EXPECT_THROW(m.load_state_dict(state), Error);
  EXPECT_TRUE(is_new(m));
}

TEST(StateDict, NamesMayBeMissingWhereAllowed) {
  Net m;
  nn::StateDict state = filled(m);
  state.erase(state.begin() + 1, state.end());
  state.emplace_back("unknown", ones({4}));
  m.load_state_dict(state, {.strict = false});
  EXPECT_EQ(m.first.weight(1, 2), 6);
  EXPECT_EQ(m.second.weight(1, 2), 0);
  state[0].second = ones({1});
  EXPECT_THROW(m.load_state_dict(state, {.strict = false}), Error);  // shapes must fit
}

TEST(StateDict, AnUndefinedParameterHasNoName) {
  Net m;
  m.second.bias = nn::Parameter<>();
  EXPECT_EQ(m.state_dict().size(), 5u);
  EXPECT_EQ(m.parameters().size(), 4u);
}

}  // namespace
}  // namespace tenet
