#include <gtest/gtest.h>
#include <tenet/kernels/cpu/update.hpp>

#include <cmath>
#include <cstring>
#include <vector>

namespace tenet {
namespace {

float* const no_state = nullptr;

template <class T, class C = cpu::compute_t<T>>
cpu::UpdateArrays arrays(std::int64_t n, T* p, const T* grad, C* first = nullptr, C* second = nullptr,
                         C* third = nullptr, C* master = nullptr) {
  return {.dtype = dtype_of<T>, .n = n, .p = p, .grad = grad, .states = {first, second, third}, .master = master};
}

// One parameter through several steps, the same gradient each time unless given.
std::vector<double> sgd(cpu::SgdStep step, double p, const std::vector<double>& gradients) {
  std::vector<double> path;
  double buffer = std::nan("");  // not to be read at the first step
  step.first = true;
  for (const double g : gradients) {
    cpu::sgd_update(step, arrays(1, &p, &g, step.momentum != 0 ? &buffer : nullptr));
    step.first = false;
    path.push_back(p);
  }
  return path;
}

std::vector<double> adam(cpu::AdamStep step, double p, const std::vector<double>& gradients, bool amsgrad = false) {
  std::vector<double> path;
  double mean = 0, square = 0, most = 0, t = 0;
  for (const double g : gradients) {
    ++t;
    step.correction1 = 1 - std::pow(step.beta1, t);
    step.correction2 = 1 - std::pow(step.beta2, t);
    cpu::adam_update(step, arrays(1, &p, &g, &mean, &square, amsgrad ? &most : nullptr));
    path.push_back(p);
  }
  return path;
}

void expect_path(const std::vector<double>& got, const std::vector<double>& want, double tolerance = 5e-9) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << "step " << i;
}

TEST(Sgd, FollowsTheDefinition) {
  expect_path(sgd({.lr = 0.1, .momentum = 0.9, .dampening = 0.5}, 1, {1, 1, 1}), {0.9, 0.76, 0.584});
  expect_path(sgd({.lr = 0.1, .weight_decay = 0.1}, 1, {0.5}), {0.94});
  expect_path(sgd({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1}, 1, {0.5, 0.5}), {0.94, 0.8266});
  expect_path(sgd({.lr = 0.1, .momentum = 0.9, .nesterov = true}, 1, {1, 1}), {0.81, 0.539});
  expect_path(sgd({.lr = 0.1, .maximize = true}, 1, {0.5}), {1.05});
}

// As in PyTorch: what is switched off takes no part, where times 0 would make NaN of an infinity.
TEST(Updates, LeaveOutWhatIsSwitchedOff) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(sgd({.lr = 0.1}, inf, {1}), std::vector<double>{inf});
  EXPECT_EQ(sgd({.lr = 0.1, .momentum = 0.9}, 1, {inf}), std::vector<double>{-inf});
  EXPECT_EQ(adam({.lr = 0.1}, inf, {1}), std::vector<double>{inf});
  EXPECT_TRUE(std::isnan(adam({.lr = 0.1, .weight_decay = 0.1}, inf, {1})[0]));
}

TEST(Adam, FollowsTheDefinition) {
  expect_path(adam({.lr = 0.1}, 0, {0.5}), {-0.099999998});
  expect_path(adam({.lr = 0.1}, 1, {0.5, -0.5, 1}), {0.900000002, 0.905263160, 0.855438946});
  expect_path(adam({.lr = 0.1, .weight_decay = 0.1}, 1, {0.5, 0.5}), {0.900000002, 0.800047340});
  expect_path(adam({.lr = 0.1, .weight_decay = 0.1, .decoupled = true}, 1, {0.5, 0.5}), {0.890000002, 0.781100004});
  expect_path(adam({.lr = 0.1, .weight_decay = 0.1}, 1, {0}), {0.90000001});
  expect_path(adam({.lr = 0.1, .weight_decay = 0.1, .decoupled = true}, 1, {0}), {0.99});
  expect_path(adam({.lr = 0.1, .maximize = true}, 0, {0.5}), {0.099999998});
}

TEST(Adam, AmsgradKeepsTheGreatestSquare) {
  // m2 = 0.09 + 0 = 0.09, corrected by 0.19; v stays at its greatest, 0.001, corrected by 0.001999.
  const double expected = -0.1 - 0.1 * (0.09 / 0.19) / (std::sqrt(0.001 / 0.001999) + 1e-8);
  expect_path(adam({.lr = 0.1}, 0, {1, 0}, true), {-0.1, expected}, 1e-8);
}

TEST(Updates, AreTheSameForAnyLengthInstructionSetAndNumberOfThreads) {
  const cpu::Isa best = cpu::isa();
  const int threads = num_threads();
  const int64_t n = 70001;
  const std::size_t size = std::size_t(n);
  std::vector<float> p0(size), g(size), m0(size), v0(size), expected_sgd, expected_adam;
  for (std::size_t i = 0; i < size; ++i) {
    p0[i] = std::sin(float(i));
    g[i] = std::cos(float(3 * i));
    m0[i] = 0.1f * std::sin(float(5 * i));
    v0[i] = 0.01f + m0[i] * m0[i];
  }
  const cpu::SgdStep sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true};
  const cpu::AdamStep adam{.lr = 0.1, .weight_decay = 0.01, .correction1 = 0.19, .correction2 = 0.002};
  for (const cpu::Isa isa : {cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512})
    for (const int t : {1, 2, 3}) {
      cpu::set_isa(isa);
      set_num_threads(t);
      std::vector<float> p = p0, m = m0, v = v0, most = v0;
      cpu::sgd_update(sgd, arrays(n, p.data(), g.data(), m.data()));
      if (expected_sgd.empty()) expected_sgd = p;
      EXPECT_EQ(std::memcmp(p.data(), expected_sgd.data(), size * sizeof(float)), 0);
      p = p0;
      cpu::adam_update(adam, arrays(n, p.data(), g.data(), m.data(), v.data(), most.data()));
      if (expected_adam.empty()) expected_adam = p;
      EXPECT_EQ(std::memcmp(p.data(), expected_adam.data(), size * sizeof(float)), 0);
      for (const std::size_t at : {std::size_t(1), std::size_t(68), size - 5}) {
        const int64_t few = std::min<int64_t>(n - int64_t(at), 70);
        p = p0;
        m = m0;
        cpu::sgd_update(sgd, arrays(few, p.data() + at, g.data() + at, m.data() + at));
        EXPECT_EQ(std::memcmp(p.data() + at, expected_sgd.data() + at, std::size_t(few) * sizeof(float)), 0);
        EXPECT_EQ(p[at - 1], p0[at - 1]);
      }
    }
  cpu::set_isa(best);
  set_num_threads(threads);
}

TEST(Updates, ChangeTheMastersOfHalves) {
  const int64_t n = 1000;
  std::vector<bfloat16> p(1000, bfloat16(1.f)), g(1000, bfloat16(0.5f));
  std::vector<float> master(1000, 0.f), m(1000, 0.f), v = m;
  cpu::sgd_update({.lr = 0.5}, arrays(n, p.data(), g.data(), no_state, no_state, no_state, master.data()));
  EXPECT_EQ(float(p[0]), 0.75f);
  EXPECT_EQ(float(p[999]), 0.75f);
  cpu::adam_update({.lr = 0.25, .correction1 = 0.1, .correction2 = 0.001},
                   arrays(n, p.data(), g.data(), m.data(), v.data(), no_state, master.data()));
  EXPECT_EQ(float(p[999]), 0.5f);
  EXPECT_NEAR(m[999], 0.05f, 1e-6f);
  EXPECT_NEAR(master[999], 0.5f, 1e-6f);
  // 0.5 + 2^-10 is no bfloat16; four of them are.
  std::fill(g.begin(), g.end(), bfloat16(-1.f));
  std::fill(master.begin(), master.end(), 0.5f);
  for (int i = 0; i < 3; ++i)
    cpu::sgd_update({.lr = 0x1p-10}, arrays(n, p.data(), g.data(), no_state, no_state, no_state, master.data()));
  EXPECT_EQ(master[700], 0.5f + 3 * 0x1p-10f);
  cpu::sgd_update({.lr = 0x1p-10}, arrays(n, p.data(), g.data(), no_state, no_state, no_state, master.data()));
  EXPECT_EQ(float(p[700]), 0.5f + 0x1p-8f);
  // Who changes a parameter changes its master.
  p[700] = bfloat16(2.f);
  cpu::sgd_update({.lr = 0x1p-10}, arrays(n, p.data(), g.data(), no_state, no_state, no_state, master.data()));
  EXPECT_EQ(master[700], 2 + 0x1p-10f);
  EXPECT_EQ(master[701], 0.5f + 5 * 0x1p-10f);
  cpu::add_into(n, p.data(), g.data());
  EXPECT_EQ(float(p[700]), 1.f);
}

TEST(Updates, AddInto) {
  std::vector<float> a(100000, 1.f), b(100000, 2.f);
  cpu::add_into(100000, a.data(), b.data());
  EXPECT_EQ(a, std::vector<float>(100000, 3.f));
}

}  // namespace
}  // namespace tenet
