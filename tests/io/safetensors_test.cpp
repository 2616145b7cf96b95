#include <tenet/io/safetensors.hpp>
#include <tenet/ops/copy.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>

#include <data/files.hpp>

using namespace tenet;

namespace {

bool has(const std::string& whole, const std::string& part) { return whole.find(part) != std::string::npos; }

// A file of a header and `data` bytes behind it; `length` replaces the header's true one.
Bytes file_of(const std::string& json, std::size_t data, std::uint64_t length = 0) {
  if (!length) length = json.size();
  Bytes bytes(8 + json.size() + data);
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, json.data(), json.size());
  return bytes;
}

std::string refusal(const Bytes& bytes) {
  const TemporaryFolder folder;
  const std::string path = folder.write("f.safetensors", bytes);
  const std::string why = message<FormatError>([&] { load_tensors(path); });
  EXPECT_TRUE(has(why, path)) << why;
  return why;
}
std::string refusal(const std::string& json, std::size_t data = 0) { return refusal(file_of(json, data)); }

TensorFile loaded(const std::string& json, std::size_t data = 0) {
  const TemporaryFolder folder;
  return load_tensors(folder.write("f.safetensors", file_of(json, data)));
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& at) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + at + "}";
}

template <class T>
void expect_same(const AnyTensor& a, const AnyTensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  const auto x = Tensor<T>(a).to_vector(), y = Tensor<T>(b).to_vector();
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(double(x[i]), double(y[i]));
}

NamedTensors one_of_each() {
  const Tensor<float> matrix = tensor<float>({{1, 2, 3}, {4, 5, 6}});
  NamedTensors all{{"bool", tensor<bool>({true, false, true})},
                   {"float32", matrix},
                   {"int8", tensor<std::int8_t>({-128, 127})},
                   {"float64", tensor<double>({1e300})},
                   {"uint8", tensor<std::uint8_t>({0, 255})},
                   {"float16", tensor<half>({half(1.5f), half(-2.0f), half(0.25f)})},
                   {"bfloat16", tensor<bfloat16>({bfloat16(3.0f)})},
                   {"int32", tensor<std::int32_t>({-5})},
                   {"int64", tensor<std::int64_t>({std::int64_t{1} << 40})},
                   {"scalar", scalar(7.0f)},
                   {"empty", zeros({2, 0, 3})},
                   {"transposed", Tensor<float>(make_alias(*matrix.impl(), {3, 2}, {1, 3}, 0))}};
  return all;
}

TEST(Safetensors, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  const std::string path = folder.file("all.safetensors");
  const NamedTensors all = one_of_each();
  save_tensors(path, all, {{"epoch", "3"}, {"quote\" \\ \n\x01", "é"}});
  EXPECT_EQ(folder.names(), std::vector<std::string>{"all.safetensors"});

  const TensorFile back = load_tensors(path);
  EXPECT_EQ(back.metadata, (Metadata{{"epoch", "3"}, {"quote\" \\ \n\x01", "é"}}));
  ASSERT_EQ(back.tensors.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(back.tensors[i].first, all[i].first);
    ASSERT_EQ(back.tensors[i].second.dtype(), all[i].second.dtype());
    dispatch(all[i].second.dtype(), [&]<class T>(T) { expect_same<T>(back.tensors[i].second, all[i].second); });
  }
  EXPECT_EQ(Tensor<float>(back["transposed"]).to_vector(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_TRUE(has(message<Error>([&] { back["nowhere"]; }), "'nowhere'"));
}

TEST(Safetensors, WritesTheFormatByteByByte) {
  const TemporaryFolder folder;
  const std::string path = folder.file("f");
  save_tensors(path, {{"b", tensor<std::uint8_t>({7})}, {"a", tensor<float>({{1}, {2}})}}, {{"k", "v"}});
  // Larger elements come first, for their alignment; the header keeps the caller's order.
  const std::string json = R"({"__metadata__":{"k":"v"},"b":{"dtype":"U8","shape":[1],"data_offsets":[8,9]},)"
                           R"("a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})";
  Bytes expected = file_of(json + std::string((8 - json.size() % 8) % 8, ' '), 9);
  const Bytes data{0, 0, 0x80, 0x3F, 0, 0, 0, 0x40, 7};
  std::copy(data.begin(), data.end(), expected.end() - 9);
  EXPECT_EQ(read_bytes(path), expected);
  save_tensors(path, {});
  EXPECT_EQ(read_bytes(path), file_of("{}      ", 0));
}

TEST(Safetensors, RefusesToWriteWhatItCouldNotRead) {
  const TemporaryFolder folder;
  const std::string path = folder.file("f");
  const Tensor<float> x = zeros({1});
  EXPECT_TRUE(has(message<FormatError>([&] { save_tensors(path, {{"x", x}, {"x", x}}); }), "duplicate tensor 'x'"));
  EXPECT_TRUE(has(message<FormatError>([&] { save_tensors(path, {{"\xFF", x}}); }), "UTF-8"));
  EXPECT_THROW(save_tensors(path, {{"__metadata__", x}}), FormatError);
  EXPECT_TRUE(has(message<Error>([&] { save_tensors(path, {{"x", {}}}); }), "'x' is undefined"));
  EXPECT_TRUE(folder.names().empty());
}

TEST(Safetensors, ATensorOutlivesTheFileAndItsCompanions) {
  Tensor<float> kept;
  {
    const TemporaryFolder folder;
    save_tensors(folder.file("f"), {{"a", tensor<float>({1, 2})}, {"b", tensor<float>({3, 4})}});
    kept = Tensor<float>(load_tensors(folder.file("f"))["b"]);
  }
  EXPECT_EQ(kept.to_vector(), (std::vector<float>{3, 4}));
}

TEST(Safetensors, ChangingATensorDoesNotChangeTheFile) {
  const TemporaryFolder folder;
  const std::string path = folder.file("f");
  save_tensors(path, {{"a", tensor<float>({1, 2})}});
  const Bytes before = read_bytes(path);
  const TensorFile first = load_tensors(path), second = load_tensors(path);
  static_cast<float*>(first["a"].data_ptr())[0] = 5;
  EXPECT_EQ(Tensor<float>(second["a"])(0), 1);
  EXPECT_EQ(read_bytes(path), before);
  save_tensors(path, first.tensors);  // over the file that is mapped
  EXPECT_EQ(Tensor<float>(load_tensors(path)["a"]).to_vector(), (std::vector<float>{5, 2}));
  EXPECT_EQ(Tensor<float>(second["a"]).to_vector(), (std::vector<float>{1, 2}));
}

TEST(Safetensors, ReadsDataThatLieAskew) {
  std::string json = "{" + entry("a", "F32", "[1]", "[1,5]") + "," + entry("b", "U8", "[1]", "[0,1]") + "}";
  while (json.size() % 4) json += ' ';
  Bytes bytes = file_of(json, 5);
  const Bytes data{9, 0, 0, 0x80, 0x3F};
  std::copy(data.begin(), data.end(), bytes.end() - 5);
  const TemporaryFolder folder;
  const TensorFile file = load_tensors(folder.write("f", bytes));
  EXPECT_EQ(Tensor<float>(file["a"]).item(), 1);
  EXPECT_EQ(std::uintptr_t(file["a"].data_ptr()) % 4, 0u);
  EXPECT_EQ(Tensor<std::uint8_t>(file["b"]).item(), 9);
}

TEST(Safetensors, ReadsWhatTheFormatAllows) {
  EXPECT_TRUE(loaded("{}").tensors.empty());
  EXPECT_EQ(loaded("{" + entry("a", "F32", "[]", "[0,4]") + "}", 4)["a"].shape(), Shape());
  EXPECT_EQ(
      loaded("{" + entry("a", "F32", "[2]", "[0,8]") + "," + entry("b", "F32", "[0]", "[8,8]") + "}", 8).tensors.size(),
      2u);
  const TensorFile unordered =
      loaded("{" + entry("b", "U8", "[2]", "[4,6]") + "," + entry("a", "F32", "[1]", "[0,4]") + "}   ", 6);
  EXPECT_EQ(unordered.tensors[0].first, "b");
  EXPECT_EQ(unordered.tensors[1].first, "a");
  const TensorFile meta = loaded(R"({"__metadata__":{"a":"b"},)" + entry("__metadata", "U8", "[0]", "[0,0]") + "}");
  EXPECT_EQ(meta.metadata, (Metadata{{"a", "b"}}));
  EXPECT_EQ(loaded("{" + entry("\\u0041\\n", "U8", "[0]", "[0,0]") + "}").tensors[0].first, "A\n");
  EXPECT_EQ(loaded("{" + entry("a", "U8", "[0, 1099511627776]", "[0,0]") + "}")["a"].size(1), std::int64_t{1} << 40);
}

TEST(Safetensors, RefusesLengthsThatLie) {
  const std::int64_t before = memory::stats().peak_reserved;
  EXPECT_TRUE(has(refusal(file_of("{}", 0, ~std::uint64_t{0})), "18446744073709551615"));
  EXPECT_TRUE(has(refusal(file_of("{}", 0, 100'000'001)), "100000001"));
  EXPECT_TRUE(has(refusal(file_of("{}", 4, 7)), "a header of at most 6 bytes, it claims 7"));
  EXPECT_TRUE(has(refusal(Bytes(7)), "expected at least 8 bytes, got 7"));
  EXPECT_TRUE(has(refusal(Bytes()), "expected at least 8 bytes, got 0"));
  EXPECT_LT(memory::stats().peak_reserved - before, 1 << 20);
}

TEST(Safetensors, RefusesAHeaderThatIsNoSuchJson) {
  EXPECT_TRUE(has(refusal(std::string()), "begin with '{'"));
  EXPECT_TRUE(has(refusal(" {}"), "begin with '{'"));
  EXPECT_TRUE(has(refusal("[]"), "begin with '{'"));
  EXPECT_TRUE(has(refusal("{"), "parse error"));
  EXPECT_TRUE(has(refusal("{} x"), "parse error"));
  EXPECT_TRUE(has(refusal(std::string("{}\0garbage", 10)), "zero bytes"));
  EXPECT_TRUE(has(refusal("{\"\xC3\x28\":1}"), "UTF-8"));
  EXPECT_TRUE(has(refusal("{\"a\":1}"), "unexpected a number"));
  EXPECT_TRUE(has(refusal("{\"a\":null}"), "unexpected null"));
  EXPECT_TRUE(has(refusal("{\"a\":[]}"), "unexpected a list"));
  EXPECT_TRUE(has(refusal("{\"a\":{}}"), "expected dtype, shape and data_offsets"));
  EXPECT_TRUE(has(refusal("{\"a\":{\"b\":{}}}"), "nested deeper"));
  EXPECT_TRUE(has(refusal(R"({"__metadata__":{"a":1}})"), "metadata: unexpected a number"));
  EXPECT_TRUE(has(refusal(R"({"__metadata__":{"a":"b","a":"c"}})"), "duplicate metadata 'a'"));
  EXPECT_TRUE(has(refusal(R"({"__metadata__":{},"__metadata__":{}})"), "duplicate"));
  std::string deep = "{\"a\":";
  for (int i = 0; i < 1'000'000; ++i) deep += '[';
  EXPECT_TRUE(has(refusal(deep), "unexpected a list"));
}

TEST(Safetensors, RefusesEntriesThatMakeNoSense) {
  const auto refused = [](const std::string& dtype, const std::string& shape, const std::string& at) {
    return refusal("{" + entry("a", dtype, shape, at) + "}", 4);
  };
  EXPECT_TRUE(has(refused("F8_E4M3", "[4]", "[0,4]"), "element type 'F8_E4M3'"));
  EXPECT_TRUE(has(refused("F32", "[1]", "[4,0]"), "does not fit data_offsets [4, 0]"));
  EXPECT_TRUE(has(refused("F32", "[1000,1000]", "[0,4]"), "does not fit data_offsets [0, 4]"));
  EXPECT_TRUE(has(refused("F32", "[4294967296,4294967296]", "[0,0]"), "more elements than int64 can count"));
  EXPECT_TRUE(has(refused("F64", "[2305843009213693952]", "[0,0]"), "does not fit data_offsets [0, 0]"));
  EXPECT_TRUE(has(refused("F32", "[18446744073709551615]", "[0,4]"), "tensor 'a'"));
  EXPECT_TRUE(has(refused("F32", "[18446744073709551616]", "[0,4]"), "fraction"));
  EXPECT_TRUE(has(refused("F32", "[-1]", "[0,4]"), "unexpected a negative number"));
  EXPECT_TRUE(has(refused("F32", "[1.0]", "[0,4]"), "unexpected a fraction"));
  EXPECT_TRUE(has(refused("F32", "[[1]]", "[0,4]"), "unexpected a list"));
  EXPECT_TRUE(has(refused("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), "more than 8 numbers in shape"));
  EXPECT_TRUE(has(refused("F32", "1", "[0,4]"), "unexpected a number as 'shape'"));
  EXPECT_TRUE(has(refused("F32", "[1]", "[0]"), "expected 2 data_offsets, got 1"));
  EXPECT_TRUE(has(refused("F32", "[1]", "[0,2,4]"), "expected 2 data_offsets, got 3"));
  EXPECT_TRUE(has(refused("F32", "[2]", "[0,8]"), "past the 4 bytes"));
  EXPECT_TRUE(has(refusal(R"({"a":{"dtype":"F32","shape":[1]}})", 4), "expected dtype, shape and data_offsets"));
  EXPECT_TRUE(has(refusal(R"({"a":{"dtype":"F32","dtype":"F32"}})", 4), "duplicate dtype"));
  EXPECT_TRUE(has(refusal(R"({"a":{"shape":[1],"shape":[1]}})", 4), "duplicate shape"));
  EXPECT_TRUE(has(refusal(R"({"a":{"size":"F32"}})", 4), "unexpected a string as 'size'"));
}

TEST(Safetensors, RefusesLayoutsWithHolesOverlapsAndRests) {
  const auto two = [](const std::string& a, const std::string& b, std::size_t data) {
    return refusal("{" + entry("a", "U8", "[4]", a) + "," + entry("b", "U8", "[4]", b) + "}", data);
  };
  EXPECT_TRUE(has(two("[0,4]", "[2,6]", 6), "tensor 'b': data_offsets begin at 2, inside another"));
  EXPECT_TRUE(has(two("[0,4]", "[0,4]", 4), "inside another"));
  EXPECT_TRUE(has(two("[0,4]", "[8,12]", 12), "tensor 'b': data_offsets begin at 8, behind a hole from 4"));
  EXPECT_TRUE(has(two("[0,4]", "[4,8]", 9), "end at byte 8 of 9"));
  EXPECT_TRUE(has(refusal("{}", 1), "end at byte 0 of 1"));
  EXPECT_TRUE(has(refusal("{" + entry("a", "U8", "[4]", "[0,4]") + "," + entry("a", "U8", "[4]", "[4,8]") + "}", 8),
                  "duplicate tensor 'a'"));
}

TEST(Safetensors, RefusesABoolThatIsNone) {
  Bytes bytes = file_of("{" + entry("a", "BOOL", "[2]", "[0,2]") + "}", 2);
  bytes.back() = 2;
  EXPECT_TRUE(has(refusal(bytes), "expected 0 or 1 for bool, got 2"));
}

TEST(Safetensors, RefusesEachFileThatWasCutShort) {
  const TemporaryFolder folder;
  save_tensors(folder.file("whole"), one_of_each());
  const Bytes whole = read_bytes(folder.file("whole"));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const std::string path = folder.write("part", Bytes(whole.begin(), whole.begin() + std::ptrdiff_t(n)));
    EXPECT_THROW(load_tensors(path), FormatError) << n;
  }
}

TEST(Safetensors, AFailedWriteLeavesTheOldFile) {
  const TemporaryFolder folder;
  const std::string path = folder.file("f");
  save_tensors(path, {{"a", tensor<float>({1, 2})}});
  const Bytes before = read_bytes(path);

  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string why = message<Error>([&] { save_tensors(path, {{"a", zeros({5000})}}); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);

  EXPECT_TRUE(has(why, "save_tensors: cannot write '" + path)) << why;
  EXPECT_EQ(read_bytes(path), before);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"f"});
  EXPECT_TRUE(has(message<Error>([] { save_tensors("/no/such/folder/f", {}); }), "No such file"));
}

TEST(Safetensors, SaysWhichFileIsMissing) {
  EXPECT_TRUE(has(message<Error>([] { load_tensors("/no/such/file"); }), "'/no/such/file': No such file"));
  EXPECT_TRUE(has(message<Error>([] { load_tensors("/"); }), "regular file"));
}

}  // namespace
