// What each way of pruning chooses.
#include <gtest/gtest.h>
#include <tenet/tenet.hpp>

#include "message.hpp"
#include "ops/reference.hpp"

namespace {

using namespace tenet;

struct Layer : nn::Module<Layer> {
  nn::Weight<double> weight;
  TENET_MODULE(weight)
  explicit Layer(const Tensor<double>& w) : weight(w.clone()) {}
};

Tensor<bool> mask(const Layer& layer) { return static_cast<prune::Masked<double>*>(layer.weight.format())->mask; }
double left(const Layer& layer) { return double(count_nonzero(mask(layer)).item()); }

using Step = void (*)(Layer&);

struct Case {
  const char* name;
  std::vector<Step> steps;
};

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(Methods, ChooseAsPyTorch) {
  const Step l1_half = [](Layer& l) { prune::l1_unstructured(l, {.amount = 0.5}); };
  const Step ln_half = [](Layer& l) { prune::ln_structured(l, {.amount = 0.5}); };
  const Step ln_2 = [](Layer& l) { prune::ln_structured(l, {.amount = 2}); };
  const std::vector<Case> cases = {
      {"l1_fraction", {[](Layer& l) { prune::l1_unstructured(l, {.amount = 0.3}); }}},
      {"l1_count", {[](Layer& l) { prune::l1_unstructured(l, {.amount = 7}); }}},
      {"l1_half_to_even", {l1_half}},
      {"l1_half_to_even_down", {l1_half}},
      {"l1_all", {[](Layer& l) { prune::l1_unstructured(l, {.amount = 1.0}); }}},
      {"l1_none", {[](Layer& l) { prune::l1_unstructured(l, {.amount = 0.0}); }}},
      {"l1_twice", {l1_half, l1_half}},
      {"ln_outputs", {ln_half}},
      {"ln_inputs", {[](Layer& l) { prune::ln_structured(l, {.amount = 2, .n = 1, .dim = 1}); }}},
      {"ln_infinity", {[](Layer& l) { prune::ln_structured(l, {.amount = 0.4, .n = infinity}); }}},
      {"ln_last_dim", {[](Layer& l) { prune::ln_structured(l, {.amount = 0.5, .dim = -1}); }}},
      {"ln_twice", {ln_half, ln_half}},
      {"l1_then_ln", {l1_half, ln_2}},
      {"ln_then_l1", {ln_2, [](Layer& l) { prune::l1_unstructured(l, {.amount = 0.25}); }}},
  };
  for (const Case& c : cases) {
    const auto reference = test::read_reference("prune.txt", c.name);
    Layer layer(reference.inputs[0]);
    for (const Step step : c.steps) step(layer);
    EXPECT_EQ(to<double>(mask(layer)).to_vector(), reference.output.to_vector()) << c.name;
  }
}

TEST(Methods, GlobalTakesAllTogether) {
  const auto reference = test::read_reference("prune.txt", "global");
  Layer a(reference.inputs[0]), b(reference.inputs[1]);
  prune::l1_unstructured(a, {.amount = 3});
  auto both = prune::weights<double>(a, b);
  prune::global_unstructured<double>(both, {.amount = 0.5});
  EXPECT_EQ(to<double>(cat({flatten(mask(a)), flatten(mask(b))})).to_vector(), reference.output.to_vector());
}

TEST(Methods, EqualElementsGoFromTheFirstOn) {
  Layer layer(ones<double>({2, 3}));
  prune::l1_unstructured(layer, {.amount = 2});
  EXPECT_EQ(mask(layer).to_vector(), (std::vector<bool>{0, 0, 1, 1, 1, 1}));
  Layer channels(ones<double>({3, 2}));
  prune::ln_structured(channels, {.amount = 1});
  EXPECT_EQ(mask(channels).to_vector(), (std::vector<bool>{1, 1, 1, 1, 0, 0}));
}

TEST(Methods, ByChanceAreRepeatable) {
  Generator generator(7), same(7);
  Layer a(ones<double>({8, 8})), b(ones<double>({8, 8}));
  prune::random_unstructured(a, {.amount = 0.5}, generator);
  prune::random_unstructured(b, {.amount = 0.5}, same);
  EXPECT_EQ(left(a), 32);
  EXPECT_EQ(mask(a).to_vector(), mask(b).to_vector());
  prune::random_unstructured(b, {.amount = 0.5}, same);
  EXPECT_EQ(left(b), 16);
}

TEST(Methods, RandomChannelsGoWhole) {
  Layer layer(ones<double>({4, 6}));
  prune::random_structured(layer, {.amount = 2, .dim = 1});
  EXPECT_EQ(left(layer), 16);
  const auto columns = count_nonzero(mask(layer), {0}).to_vector();
  for (const std::int64_t c : columns) EXPECT_TRUE(c == 0 || c == 4);
  prune::random_structured(layer, {.amount = 4, .dim = 1});
  EXPECT_EQ(left(layer), 0);
}

TEST(Methods, SemiStructuredKeepsTwoOfFour) {
  Layer layer(from_vector<double>({1, -4, 2, 3, 5, 0, -7, 6}, {1, 8}));
  prune::semi_structured(layer);
  EXPECT_EQ(mask(layer).to_vector(), (std::vector<bool>{0, 1, 0, 1, 0, 0, 1, 1}));
  Layer conv(randn<double>({3, 8, 2, 2}));
  prune::semi_structured(conv, {.keep = 1});
  EXPECT_EQ(count_nonzero(mask(conv), {1}).to_vector(), std::vector<std::int64_t>(12, 2));
  Layer narrow(ones<double>({2, 6}));
  EXPECT_NE(test::message<ShapeError>([&] { prune::semi_structured(narrow); }).find("by 4, got [2, 6]"),
            std::string::npos);
  EXPECT_THROW(prune::semi_structured(layer, {.keep = 5}), Error);
}

TEST(Methods, TakeMasksOfAnyType) {
  Layer layer(ones<double>({2, 2}));
  prune::custom_from_mask(layer, from_vector<float>({1, 0, 1, 1}, {2, 2}));
  prune::custom_from_mask(layer, from_vector<std::int64_t>({0, 1, 1, 1}, {2, 2}));
  EXPECT_EQ(mask(layer).to_vector(), (std::vector<bool>{0, 0, 1, 1}));
  EXPECT_THROW(prune::custom_from_mask(layer, ones<bool>({4})), ShapeError);
}

TEST(Methods, WrongAmountsChangeNothing) {
  struct Net : nn::Module<Net> {
    nn::Linear<> big{4, 4}, small{2, 2};
    TENET_MODULE(big, small)
  } net;
  EXPECT_EQ(test::message([&] { prune::l1_unstructured(net, {.amount = 5}); }),
            "l1_unstructured: expected 0 to 4 to prune, got 5");
  EXPECT_FALSE(prune::is_pruned(net));
  for (const double wrong : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(prune::l1_unstructured(net, {.amount = wrong}), Error);
    EXPECT_THROW(prune::global_unstructured(net, {.amount = wrong}), Error);
    EXPECT_THROW(prune::random_unstructured(net, {.amount = wrong}), Error);
    EXPECT_THROW(prune::ln_structured(net, {.amount = wrong}), Error);
    EXPECT_THROW(prune::random_structured(net, {.amount = wrong}), Error);
  }
  EXPECT_THROW(prune::l1_unstructured(net, {.amount = -1}), Error);
  EXPECT_THROW(prune::ln_structured(net, {.amount = 0.5, .dim = 2}), IndexError);
  EXPECT_THROW(prune::random_structured(net, {.amount = 0.5, .dim = -3}), IndexError);
  nn::ReLU none;
  EXPECT_THROW(prune::global_unstructured(none, {.amount = 0.5}), Error);
  EXPECT_FALSE(prune::is_pruned(net));
}

}  // namespace
