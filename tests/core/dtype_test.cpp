#include <tenet/core/dtype.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/support.hpp"

using namespace tenet;

namespace {

constexpr DType all_types[] = {DType::float32, DType::float64, DType::bfloat16, DType::float16, DType::int8,
                               DType::uint8,   DType::int32,   DType::int64,    DType::boolean};

std::uint32_t bits(float x) {
  std::uint32_t b;
  std::memcpy(&b, &x, sizeof b);
  return b;
}
float from_bits(std::uint32_t b) {
  float x;
  std::memcpy(&x, &b, sizeof x);
  return x;
}
std::uint32_t to_bfloat16(std::uint32_t b) { return bits(float(bfloat16(from_bits(b)))) >> 16; }

}  // namespace

TEST(DType, NamesAreThoseOfPyTorch) {
  const char* names[] = {"float32", "float64", "bfloat16", "float16", "int8", "uint8", "int32", "int64", "bool"};
  for (int i = 0; i < 9; ++i) EXPECT_STREQ(name(all_types[i]), names[i]);
}

TEST(DType, DispatchReachesTheTypeOfTheNameWithItsSize) {
  for (DType d : all_types) {
    dispatch(d, [&](auto zero) {
      EXPECT_EQ(dtype_of<decltype(zero)>, d);
      EXPECT_EQ(sizeof zero, item_size(d));
      EXPECT_EQ(FloatElement<decltype(zero)>, is_floating(d));
      EXPECT_EQ(double(zero), 0);
    });
  }
  EXPECT_EQ(dispatch(DType::int32, [](auto zero) { return int(sizeof zero); }), 4);
}

TEST(DType, DispatchRefusesWhatIsNone) {
  EXPECT_THROW(dispatch(DType(77), [](auto) {}), DTypeError);
  int calls = 0;
  for (DType d : all_types) {
    if (is_floating(d)) dispatch_floating("op", d, [&](auto) { ++calls; });
    else EXPECT_THROW(dispatch_floating("op", d, [&](auto) { ++calls; }), DTypeError);
  }
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(message<DTypeError>([] { dispatch_floating("gelu", DType::int8, [](auto) {}); }),
            "gelu: expected a floating type, got int8");
}

TEST(DType, SumsHaveRoom) {
  EXPECT_TRUE((std::is_same_v<accumulate_t<half>, float> && std::is_same_v<accumulate_t<bfloat16>, float>));
  EXPECT_TRUE((std::is_same_v<accumulate_t<float>, float> && std::is_same_v<accumulate_t<double>, double>));
  EXPECT_TRUE((std::is_same_v<accumulate_t<bool>, std::int64_t> && std::is_same_v<sum_t<std::uint8_t>, std::int64_t>));
  EXPECT_TRUE((std::is_same_v<sum_t<half>, half> && std::is_same_v<sum_t<float>, float>));
}

TEST(DType, FloatToBfloat16RoundsToEven) {
  EXPECT_EQ(to_bfloat16(0x3F808000), 0x3F80u);
  EXPECT_EQ(to_bfloat16(0x3F818000), 0x3F82u);
  EXPECT_EQ(to_bfloat16(0x3F808001), 0x3F81u);
  EXPECT_EQ(to_bfloat16(bits(3.14f)), 0x4049u);
  EXPECT_EQ(to_bfloat16(0x3E89CCD5), 0x3E8Au);
  EXPECT_EQ(to_bfloat16(0x7F7FFFFF), 0x7F80u);
  EXPECT_EQ(to_bfloat16(0x80000000), 0x8000u);
  EXPECT_EQ(to_bfloat16(0x00018000), 0x0002u);
  for (std::uint32_t nan : {0x7F800001u, 0xFF800001u, 0x7FFFFFFFu})
    EXPECT_TRUE(std::isnan(float(bfloat16(from_bits(nan)))));
}

TEST(DType, FloatToHalfRoundsToEven) {
  EXPECT_EQ(float(half(65519.99f)), 65504);
  EXPECT_EQ(float(half(65520.0f)), std::numeric_limits<float>::infinity());
  EXPECT_EQ(float(half(std::ldexp(1.0f, -25))), 0);
  EXPECT_EQ(float(half(std::ldexp(1.001f, -25))), std::ldexp(1.0f, -24));
  EXPECT_EQ(float(half(2049.0f)), 2048);
  EXPECT_EQ(float(half(2051.0f)), 2052);
  EXPECT_TRUE(std::isnan(float(half(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Error, TextJoinsPieces) {
  EXPECT_EQ(text({"a", 1, " ", std::string("b"), -2.5, " ", 0.1f, " ", 1e-9, " ", std::uint64_t{1} << 63}),
            "a1 b-2.5 0.1 1e-09 9223372036854775808");
  EXPECT_EQ(text({1e300, " ", std::nan(""), " ", 3.0}), "1e+300 nan 3");
  EXPECT_EQ(text({}), "");
}

TEST(Error, KindsAreErrors) {
  EXPECT_THROW(throw ShapeError("x"), Error);
  EXPECT_THROW(throw IndexError("x"), Error);
  EXPECT_THROW(throw FormatError("x"), Error);
  EXPECT_THROW(throw NotImplemented("x"), Error);
  EXPECT_EQ(message<std::runtime_error>([] { throw DeviceError("where"); }), "where");
}
