#include <tenet/data/gzip.hpp>

#include <gtest/gtest.h>

#include <data/files.hpp>

#include <sys/stat.h>

using namespace tenet;
using data::read_idx;
using data::read_idx_gzip;

namespace {

// What read_idx says of a file with these bytes, plain and gzip'd.
template <class T = std::uint8_t>
std::string refusal(const Bytes& bytes) {
  const TemporaryFolder folder;
  const std::string plain = folder.write("plain", bytes), packed = folder.write("packed.gz", gzip(bytes));
  const std::string why = message<FormatError>([&] { read_idx<T>(plain); });
  EXPECT_EQ(why, message<FormatError>([&] { read_idx_gzip<T>(plain); }));
  EXPECT_FALSE(message<FormatError>([&] { read_idx_gzip<T>(packed); }).empty());
  EXPECT_NE(why.find(plain), std::string::npos) << why;
  return why;
}

bool has(const std::string& whole, const char* part) { return whole.find(part) != std::string::npos; }

template <class T>
void expect_elements(const Bytes& bytes, const Shape& shape, const std::vector<T>& elements) {
  const TemporaryFolder folder;
  const std::string plain = folder.write("plain", bytes), packed = folder.write("packed", gzip(bytes));
  for (const Tensor<T>& t : {read_idx<T>(plain), read_idx_gzip<T>(plain), read_idx_gzip<T>(packed)}) {
    EXPECT_EQ(t.shape(), shape);
    EXPECT_EQ(t.to_vector(), elements);
  }
}

TEST(Idx, ReadsEachElementType) {
  expect_elements<std::uint8_t>({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255}, {2, 3}, {1, 2, 3, 4, 5, 255});
  expect_elements<std::int8_t>({0, 0, 9, 1, 0, 0, 0, 2, 0x80, 0xFF}, {2}, {-128, -1});
  expect_elements<std::int32_t>({0, 0, 0xB, 1, 0, 0, 0, 2, 0xFF, 0xFE, 1, 2}, {2}, {-2, 258});
  expect_elements<std::int32_t>({0, 0, 0xC, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4, 0xFF, 0xFF, 0xFF, 0xFF}, {1, 2},
                                {0x01020304, -1});
  expect_elements<float>({0, 0, 0xD, 1, 0, 0, 0, 2, 0x3F, 0x80, 0, 0, 0xC0, 0x20, 0, 0}, {2}, {1.0f, -2.5f});
  expect_elements<double>({0, 0, 0xE, 1, 0, 0, 0, 1, 0xBF, 0xE0, 0, 0, 0, 0, 0, 0}, {1}, {-0.5});
}

TEST(Idx, ReadsMoreThanOneChunk) {
  Bytes bytes{0, 0, 0xB, 2, 0, 0, 0x13, 0x88, 0, 0, 0, 3};  // [5000, 3]
  std::vector<std::int32_t> elements;
  for (int i = 0; i < 15000; ++i) {
    const int v = i * 7 - 30000;
    bytes.push_back(std::uint8_t(v >> 8));
    bytes.push_back(std::uint8_t(v));
    elements.push_back(std::int16_t(v));
  }
  expect_elements<std::int32_t>(bytes, {5000, 3}, elements);
}

TEST(Idx, ReadsNoElements) { expect_elements<std::uint8_t>({0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 3}, {0, 3}, {}); }

TEST(Idx, RefusesAFileThatEndsTooEarly) {
  EXPECT_TRUE(has(refusal({}), "expected 4 bytes of magic number, the file ends after 0"));
  EXPECT_TRUE(has(refusal({0, 0, 8, 1, 0, 0, 0}), "expected 4 bytes of a size, the file ends after 3"));
  EXPECT_TRUE(has(refusal({0, 0, 8, 1, 0, 0, 0, 10, 1, 2, 3, 4, 5}), "[10] elements of uint8"));
}

TEST(Idx, RefusesBytesAfterTheEnd) {
  EXPECT_TRUE(has(refusal({0, 0, 8, 1, 0, 0, 0, 2, 1, 2, 3}), "expected the end after [2] elements"));
}

TEST(Idx, RefusesHeadersThatAreNone) {
  EXPECT_TRUE(has(refusal({1, 0, 8, 1, 0, 0, 0, 1, 1}), "magic number"));
  EXPECT_TRUE(has(refusal({0, 0, 7, 1, 0, 0, 0, 1, 1}), "bytes [0, 0, 8 to 14, dimensions], got [0, 0, 7, 1]"));
  EXPECT_TRUE(has(refusal({0, 0, 0xA, 1, 0, 0, 0, 1, 1}), "magic number"));
  EXPECT_TRUE(has(refusal({0, 0, 8, 0, 1}), "dimensions, got 0"));
  EXPECT_TRUE(has(refusal(Bytes{0, 0, 8, 200, 0, 0, 0, 1, 1}), "dimensions, got 200"));
  EXPECT_TRUE(has(refusal<float>({0, 0, 8, 1, 0, 0, 0, 1, 1}), "expected elements of float32, got uint8"));
}

TEST(Idx, AllocatesNothingForSizesThatLie) {
  const std::int64_t before = memory::stats().peak_reserved;
  refusal({0, 0, 8, 1, 0xFF, 0xFF, 0xFF, 0xFF, 1});
  refusal({0, 0, 8, 3, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1});
  refusal<double>({0, 0, 0xE, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0x80, 0, 0, 0, 1});
  refusal({0, 0, 8, 3, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1});
  EXPECT_LT(memory::stats().peak_reserved - before, 1 << 20);
}

TEST(Idx, NamesGzipWithoutIt) {
  const TemporaryFolder folder;
  const std::string path = folder.write("f", gzip({0, 0, 8, 1, 0, 0, 0, 1, 1}));
  EXPECT_TRUE(has(message<FormatError>([&] { read_idx<std::uint8_t>(path); }), "gzip"));
}

TEST(Idx, RefusesEachDamageToAGzipFile) {
  Bytes bytes{0, 0, 8, 1, 0, 0, 1, 0};  // [256]
  for (int i = 0; i < 256; ++i) bytes.push_back(std::uint8_t(i * i >> 3));
  const Bytes packed = gzip(bytes);
  const TemporaryFolder folder;
  for (std::size_t length = 0; length < packed.size(); ++length) {
    const std::string path = folder.write("short", Bytes(packed.begin(), packed.begin() + std::ptrdiff_t(length)));
    EXPECT_TRUE(has(message<FormatError>([&] { read_idx_gzip<std::uint8_t>(path); }), "short")) << length;
  }
  Bytes wrong_checksum = packed;
  wrong_checksum[packed.size() - 5] ^= 1;
  const std::string path = folder.write("wrong", wrong_checksum);
  EXPECT_TRUE(has(message<FormatError>([&] { read_idx_gzip<std::uint8_t>(path); }), "incorrect data check"));
}

TEST(Idx, SaysWhichFileIsMissing) {
  EXPECT_TRUE(has(message<Error>([] { read_idx<std::uint8_t>("/no/such/file"); }), "/no/such/file"));
  EXPECT_TRUE(has(message<Error>([] { read_idx_gzip<std::uint8_t>("/no/such/file"); }), "/no/such/file"));
}

TEST(Idx, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {std::string("/"), pipe}) {
    EXPECT_TRUE(has(message<Error>([&] { read_idx<std::uint8_t>(path); }), "regular file"));
    EXPECT_TRUE(has(message<Error>([&] { read_idx_gzip<std::uint8_t>(path); }), "regular file"));
  }
}

}  // namespace
