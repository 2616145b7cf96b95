// IDX readers: any bytes give a tensor of the size they name, or an Error.
#include <tenet/data/gzip.hpp>

#include "memory_file.hpp"

using namespace tenet;

namespace {

// Whether the bytes are an IDX file of T for the reader; every element of it can be read.
template <class T, class Read>
bool reads(const Read& read) {
  try {
    const Tensor<T> t = read();
    const auto elements = t.to_vector();
    require(std::int64_t(elements.size()) == t.numel());
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const MemoryFile file(bytes, size);
  const std::string path = file.path();
  const auto plain = [&]<class T>(T) { return reads<T>([&] { return data::read_idx<T>(path); }); };
  const auto any = [&]<class T>(T) { return reads<T>([&] { return data::read_idx_gzip<T>(path); }); };
  const bool u8 = plain(std::uint8_t{}), i32 = plain(std::int32_t{});
  require(u8 + i32 + plain(std::int8_t{}) + plain(float{}) + plain(double{}) <= 1);
  require(any(std::uint8_t{}) >= u8);
  require(any(std::int32_t{}) >= i32);
  return 0;
}
