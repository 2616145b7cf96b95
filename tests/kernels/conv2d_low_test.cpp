#include "isas.hpp"

#include <tenet/kernels/cpu/conv2d_low.hpp>

#include <cmath>
#include <string>
#include <vector>

using namespace tenet;

namespace {

using cpu::Conv2dShape;

Conv2dShape shape(int64_t n, int64_t c, int64_t size, int64_t o, int64_t k, int64_t stride, int64_t pad,
                  int64_t groups = 1) {
  Conv2dShape s;
  s.n = n, s.c = c, s.h = size, s.w = size + 1, s.o = o, s.kh = s.kw = k;
  s.stride_h = s.stride_w = stride, s.pad_h = s.pad_w = pad, s.dil_h = s.dil_w = 1, s.groups = groups;
  s.oh = (s.h + 2 * pad - k) / stride + 1, s.ow = (s.w + 2 * pad - k) / stride + 1;
  return s;
}

template <class T>
std::vector<T> numbers(int64_t count, double step) {
  std::vector<T> v;
  for (int64_t i = 0; i < count; ++i) v.push_back(T(float(std::sin(step * double(i * i)))));
  return v;
}

template <class T>
std::vector<double> wide(const std::vector<T>& v) {
  std::vector<double> out;
  for (const T x : v) out.push_back(double(float(x)));
  return out;
}

void expect_close(const std::vector<float>& got, const std::vector<double>& want, const char* what) {
  double greatest = 0;
  for (const double v : want) greatest = std::max(greatest, std::abs(v));
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-5 * greatest) << what << " at " << i;
}

/// What the three functions give on each instruction set, against the reference in double.
template <class T, class Forward, class Data, class Weight>
void check(const Conv2dShape& s, Forward forward, Data data, Weight weight) {
  SCOPED_TRACE(std::to_string(s.c) + "x" + std::to_string(s.o) + "k" + std::to_string(s.kh));
  const cpu::detail::Conv2dSizes size(s);
  const std::vector<T> x = numbers<T>(size.x, 0.7), w = numbers<T>(size.w, 1.3), dy = numbers<T>(size.y, 2.1);
  const std::vector<float> bias = numbers<float>(s.o, 0.3);
  const std::vector<double> x2 = wide(x), w2 = wide(w), dy2 = wide(dy), bias2 = wide(bias);
  std::vector<double> with_bias(dy.size()), without(dy.size()), want_dx(x.size()), want_dw(w.size());
  cpu::conv2d_forward_reference(s, x2.data(), w2.data(), static_cast<const double*>(nullptr), without.data());
  for (std::size_t i = 0; i < without.size(); ++i) {
    with_bias[i] = without[i] + bias2[i / std::size_t(s.oh * s.ow) % std::size_t(s.o)];
  }
  cpu::conv2d_backward_data_reference(s, dy2.data(), w2.data(), want_dx.data());
  cpu::conv2d_backward_weight_reference(s, x2.data(), dy2.data(), want_dw.data());
  for_each_isa_and_dots([&] {
    std::vector<float> y(dy.size(), NAN), dx(x.size(), NAN), dw(w.size(), NAN);
    forward(s, x.data(), w.data(), bias.data(), y.data());
    expect_close(y, with_bias, "forward with bias");
    forward(s, x.data(), w.data(), nullptr, y.data());
    expect_close(y, without, "forward");
    data(s, dy.data(), w.data(), dx.data());
    expect_close(dx, want_dx, "data");
    weight(s, x.data(), dy.data(), dw.data());
    expect_close(dw, want_dw, "weight");
  });
}

const Conv2dShape shapes[] = {shape(1, 16, 8, 64, 5, 1, 1),  shape(2, 64, 6, 64, 1, 1, 0),
                              shape(1, 64, 11, 64, 3, 2, 1), shape(1, 128, 6, 128, 2, 1, 1, 2),
                              shape(2, 3, 7, 5, 3, 1, 0),    shape(1, 48, 6, 64, 3, 1, 1)};

template <class T>
void check_all() {
  for (const Conv2dShape& s : shapes) {
    check<T>(s, &cpu::conv2d_forward_low<T>, &cpu::conv2d_backward_data_low<T>, &cpu::conv2d_backward_weight_low<T>);
  }
}

TEST(Conv2dLow, OfBfloat16) { check_all<bfloat16>(); }
TEST(Conv2dLow, OfHalf) { check_all<half>(); }

TEST(Conv2dLow, ByColumnsOnMachinesWithoutPairsToo) {
  for (const Conv2dShape& s : shapes) {
    check<bfloat16>(s, &cpu::conv2d_forward_columns<bfloat16, float>,
                    &cpu::conv2d_backward_data_columns<bfloat16, float>,
                    &cpu::conv2d_backward_weight_columns<bfloat16, float>);
  }
}

}  // namespace
