// Layers split over ranks are the layers that are not; the same for each engine. Each function runs on every rank.
#pragma once

#include <tenet/ops/compare.hpp>

#include "parallel/support.hpp"

namespace tenet::test {

using Floats = std::vector<Tensor<float>>;

inline Tensor<float> numbers(const Shape& shape, std::uint64_t seed) {
  Generator g(seed);
  return randn(shape, g);
}
inline void expect_near(const AnyTensor& a, const AnyTensor& b, const std::string& what) {
  ASSERT_TRUE(a.defined() && b.defined()) << what;
  ASSERT_EQ(a.shape(), b.shape()) << what;
  EXPECT_TRUE(allclose(Tensor<float>(a), Tensor<float>(b), 1e-5, 1e-5)) << what;
}

/// The gradients of the model that is not split.
template <class M>
nn::StateDict whole_gradients(M& model) {
  nn::StateDict all = model.named_parameters();
  for (auto& [name, tensor] : all) tensor = tensor.grad_any();
  parallel::detail::each_shard(model, [&](const std::string& name, parallel::Shard shard, auto comm) {
    if (AnyTensor* g = parallel::detail::entry_of(all, name)) *g = parallel::detail::whole_of(*g, shard, comm, name);
  });
  return all;
}

inline void expect_same(const nn::StateDict& a, const nn::StateDict& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_EQ(Tensor<float>(a[i].second).to_vector(), Tensor<float>(b[i].second).to_vector()) << a[i].first;
  }
}

/// From one seed, the split layer starts as the whole one and gives its result, and all gradients. f(layer, inputs)
/// runs it; `inputs` get gradients.
template <class Whole, class Split, class F>
void expect_equal_layers(const Whole& make_whole, const Split& make_split, const Floats& inputs, const F& f) {
  manual_seed(3);
  auto whole = make_whole();
  const GeneratorState after = default_generator().state();
  manual_seed(3);
  auto split = make_split();
  EXPECT_EQ(default_generator().state(), after);  // what comes next starts the same, too
  expect_same(parallel::whole_state_dict(split), whole.state_dict());
  const auto run = [&](auto& layer) {
    Floats x;
    for (const Tensor<float>& t : inputs) x.push_back(t.clone().requires_grad_());
    const Tensor<float> y = f(layer, x);
    y.backward(numbers(y.shape(), 9));
    Floats out{y.detach()};
    for (const Tensor<float>& t : x) out.push_back(t.grad());
    return out;
  };
  const Floats a = run(whole), b = run(split);
  for (std::size_t i = 0; i < a.size(); ++i) {
    expect_near(a[i], b[i], i ? text({"gradient of input ", i - 1}) : std::string("output"));
  }
  const nn::StateDict want = whole_gradients(whole), got = whole_gradients(split);
  ASSERT_EQ(want.size(), got.size());
  for (std::size_t i = 0; i < want.size(); ++i) expect_near(want[i].second, got[i].second, want[i].first);
  // It takes over another layer.
  auto other = make_whole();
  parallel::load_whole_state_dict(split, other.state_dict());
  expect_same(parallel::whole_state_dict(split), other.state_dict());
  expect_near(f(other, inputs), f(split, inputs), "of another layer");
}

template <class A, class B>
struct Mlp : nn::Module<Mlp<A, B>> {
  A fc1;
  B fc2;
  TENET_MODULE(fc1, fc2)
  Mlp(A a, B b) : fc1(std::move(a)), fc2(std::move(b)) {}
  Tensor<float> forward(const Tensor<float>& x) { return fc2(tanh(fc1(x))); }
};

/// For up to 4 ranks.
template <parallel::Communicator C>
void check_split_linear(C& comm) {
  using Column = parallel::ColumnParallelLinear<float>;
  using Row = parallel::RowParallelLinear<float>;
  const auto call = [](auto& layer, const Floats& x) { return layer(x[0]); };
  for (const bool bias : {true, false}) {
    const auto linear = [bias] { return nn::Linear<>(8, 12, {.bias = bias}); };
    expect_equal_layers(
        linear, [&] { return Column(comm, 8, 12, {.bias = bias, .gather_output = true}); }, {numbers({5, 8}, 1)}, call);
    const auto other = [bias] { return nn::Linear<>(12, 5, {.bias = bias}); };
    expect_equal_layers(
        other, [&] { return Row(comm, 12, 5, {.bias = bias, .input_is_parallel = false}); }, {numbers({2, 3, 12}, 1)},
        call);
  }
  const auto mlp = [] {
    nn::Linear<> a(4, 12);
    return Mlp(std::move(a), nn::Linear<>(12, 3));
  };
  const auto split = [&] {
    Column a(comm, 4, 12);
    return Mlp(std::move(a), Row(comm, 12, 3));
  };
  expect_equal_layers(mlp, split, {numbers({5, 4}, 1)}, call);
  // The gradient of a gradient.
  const auto penalty = [](auto& layer, const Floats& x) {
    const Tensor<float> in = x[0].requires_grad() ? x[0] : x[0].clone().requires_grad_();
    const auto g = autograd::grad<float>(Floats{layer(in).sum()}, {in}, {.create_graph = true});
    return Tensor<float>(g[0]) * Tensor<float>(g[0]);
  };
  manual_seed(3);
  auto a = mlp();
  manual_seed(3);
  auto b = split();
  const Tensor<float> x = numbers({5, 4}, 1);
  penalty(a, {x}).sum().backward();
  penalty(b, {x}).sum().backward();
  const nn::StateDict want = whole_gradients(a);
  const AnyTensor got = parallel::detail::whole_of(b.fc1.weight.grad(), {0}, comm, "");
  expect_near(want[0].second, got, "second derivative");
}

template <parallel::Communicator C>
void check_split_embedding(C& comm) {
  const auto index = tensor<std::int64_t>({{0, 11, 3}, {3, 5, 3}});
  expect_equal_layers([] { return nn::Embedding<float>(12, 5); },
                      [&] { return parallel::VocabParallelEmbedding<float>(comm, 12, 5); }, {},
                      [&](auto& layer, const Floats&) { return layer(index); });
  parallel::VocabParallelEmbedding<> layer(comm, 12, 5);
  for (const std::int64_t wrong : {-1, 12}) {
    EXPECT_EQ(message<IndexError>([&] {
                layer(tensor<std::int64_t>({0, wrong}));
              }),
              text({"embedding: index ", wrong, " is outside dimension 0, of size 12, of [12, 5]"}));
  }
}

template <parallel::Communicator C>
void check_split_attention(C& comm) {
  using Split = parallel::ParallelMultiheadAttention<float>;
  const nn::AttentionMasks none,
      masks{.key_padding_mask = tensor<bool>({{false, false, true}, {true, false, false}}), .is_causal = true};
  const auto check = [&](nn::MultiheadAttentionOptions o, const Floats& inputs, const nn::AttentionMasks& m) {
    expect_equal_layers([&] { return nn::MultiheadAttention<float>(24, 12, o); },
                        [&] { return Split(comm, 24, 12, o); }, inputs,
                        [&](auto& layer, const Floats& x) {
                          return layer(x[0], x[x.size() > 1 ? 1 : 0], x[x.size() > 2 ? 2 : x.size() - 1], m);
                        });
  };
  check({}, {numbers({4, 2, 24}, 1)}, none);
  check({.batch_first = true}, {numbers({2, 3, 24}, 1)}, masks);
  check({.bias = false}, {numbers({4, 2, 24}, 1), numbers({3, 2, 24}, 2)}, masks);
  check({}, {numbers({4, 24}, 1), numbers({3, 24}, 2), numbers({3, 24}, 4)}, none);
  Split dropping(comm, 24, 12, {.dropout = 1});
  const Tensor<float> x = numbers({4, 2, 24}, 1);
  EXPECT_EQ(dropping(x, x, x).sum().item(), 0);
}

/// Tensors that move, in one direction and back.
template <parallel::Communicator C>
void check_exchange(C& comm) {
  const int rank = comm.rank(), size = comm.size();
  const Tensor<float> all = arange(0.0f, float(6 * size)).view({size, 3, 2}).requires_grad_();
  for (const std::int64_t dim : {0, -3}) {
    const Tensor<float> part = parallel::scatter_to(all, comm, dim);
    EXPECT_EQ(part.to_vector(), all.narrow(0, rank, 1).to_vector());
    EXPECT_EQ(parallel::gather_from(part, comm, dim).to_vector(), all.to_vector());
  }
  const Tensor<float> turned = all.detach().transpose(0, 1);
  const Tensor<float> mine = parallel::scatter_to(turned, comm, 1);
  EXPECT_EQ(parallel::gather_from(mine, comm, 1).to_vector(), turned.to_vector());
  // Each rank uses its part: the whole has the gradients of all.
  (parallel::scatter_to(all, comm, 0) * float(rank + 1)).sum().backward();
  for (int r = 0; r < size; ++r) EXPECT_EQ(all.grad()[r].to_vector(), std::vector<float>(6, float(r + 1)));

  const Tensor<bfloat16> low = full<bfloat16>({3}, bfloat16(float(rank + 1))).requires_grad_();
  const Tensor<bfloat16> sum = parallel::reduce_from(low, comm);
  EXPECT_EQ(float(sum(2)), float(size * (size + 1) / 2));
  EXPECT_EQ(float(low(2)), float(rank + 1));
  sum.sum().backward();
  EXPECT_EQ(float(low.grad()(0)), 1);
  EXPECT_THROW(parallel::gather_from(all, comm, 3), IndexError);
  if (size > 1) {
    EXPECT_EQ(message<ShapeError>([&] {
                parallel::scatter_to(ones({2, 1}), comm);
              }),
              text({"scatter_to: expected a size of dimension 1 that ", size, " ranks divide, got [2, 1]"}));
  }
}

/// What cannot be split, and ranks that disagree, are errors on each; ranks go on afterwards.
template <parallel::Communicator C>
void check_split_errors(C& comm) {
  const int rank = comm.rank(), size = comm.size();
  if (size == 1) return;
  manual_seed(3);
  EXPECT_EQ(message<ShapeError>([&] { parallel::ColumnParallelLinear fc(comm, 8, 4 * size + 1); }),
            text({"ColumnParallelLinear: expected a size of dimension 0 that ", size, " ranks divide, got [",
                  4 * size + 1, ", 8]"}));
  EXPECT_THROW(parallel::RowParallelLinear(comm, 4 * size + 1, 8), ShapeError);
  EXPECT_THROW(parallel::VocabParallelEmbedding(comm, 4 * size + 1, 8), ShapeError);
  EXPECT_THROW(parallel::ParallelMultiheadAttention(comm, 24, 1), ShapeError);
  EXPECT_THROW(parallel::ParallelMultiheadAttention(comm, 24, 5 * size), ShapeError);
  manual_seed(3);
  EXPECT_EQ(message([&] { parallel::ColumnParallelLinear fc(comm, 8 + rank, 4 * size); }),
            text({"distributed: the ranks differ in a layer: rank 0 has ColumnParallelLinear(8, ", 4 * size,
                  ") of seed 3 after 0 blocks of random numbers, rank 1 has ColumnParallelLinear(9, ", 4 * size,
                  ") of seed 3 after 0 blocks of random numbers"}));
  manual_seed(3 + std::uint64_t(rank));
  EXPECT_NE(message([&] { parallel::RowParallelLinear fc(comm, 4 * size, 8); }).find("of seed 4"), std::string::npos);
  manual_seed(3);
  parallel::ColumnParallelLinear<> fc(comm, 8, 4 * size);
  const std::vector<float> before = fc.weight.to_vector();
  nn::Linear<> wrong(8, 4 * size + 1), other(7, 4 * size);
  EXPECT_EQ(message<ShapeError>([&] { parallel::load_whole_state_dict(fc, wrong.state_dict()); }).substr(0, 40),
            "load_whole_state_dict: weight: expected ");
  EXPECT_THROW(parallel::load_whole_state_dict(fc, other.state_dict()), Error);
  EXPECT_THROW(parallel::load_whole_state_dict(fc, {}), Error);
  EXPECT_EQ(fc.weight.to_vector(), before);
}

struct SplitLeNet : nn::Module<SplitLeNet> {
  nn::Conv2d<double> conv1{1, 20, 5}, conv2{20, 50, 5};
  nn::MaxPool2d pool{2, 2};
  parallel::ColumnParallelLinear<double> fc1;
  parallel::RowParallelLinear<double> fc2;
  TENET_MODULE(conv1, conv2, pool, fc1, fc2)

  explicit SplitLeNet(parallel::CommunicatorRef comm) : fc1(comm, 50 * 4 * 4, 500), fc2(comm, 500, 10) {}
  Tensor<double> forward(Tensor<double> x) {
    x = pool(relu(conv1(x)));
    x = pool(relu(conv2(x)));
    x = x.view({-1, 50 * 4 * 4});
    x = relu(fc1(x));
    return fc2(x);
  }
};

/// Trains LeNet with layers split over pairs of ranks, and batches over the pairs; the loss of a whole batch after each
/// step.
template <parallel::Communicator C>
Losses split_losses(C& comm) {
  const int tensor = std::min(2, comm.size());
  parallel::Mesh mesh(comm, {.data = comm.size() / tensor, .tensor = tensor});
  manual_seed(1);
  SplitLeNet model(mesh.tensor);
  parallel::DistributedDataParallel ddp(model, mesh.data);
  Digits digits;
  digits.options.rank = mesh.data.rank();
  digits.options.ranks = mesh.data.size();
  digits.options.batch_size /= mesh.data.size();
  Losses losses;
  digits.train(
      model, [&](const Tensor<double>& x) { return ddp(x); },
      [&](double loss, std::int64_t examples) {
        double sums[2] = {loss * double(examples), double(examples)};
        mesh.data.all_reduce(sums, 2);
        losses.push_back(sums[0] / sums[1]);
      });
  ddp.check_agreement();
  // What is not split is the same everywhere.
  parallel::check_values(comm, model.conv2.state_slots());
  parallel::check_values(comm, {{"fc2.bias", &model.fc2.bias, true}});
  return losses;
}

}  // namespace tenet::test
