// The safetensors reader: any bytes give tensors that lie inside the file, or an Error; what was read can be
// written and read again.
#include <tenet/io/safetensors.hpp>

#include "memory_file.hpp"

using namespace tenet;

namespace {

std::size_t bytes_of(const AnyTensor& t) { return std::size_t(t.numel()) * item_size(t.dtype()); }

bool same(const NamedTensors& a, const NamedTensors& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const AnyTensor &x = a[i].second, &y = b[i].second;
    if (a[i].first != b[i].first || x.dtype() != y.dtype() || !(x.shape() == y.shape())) return false;
    if (bytes_of(x) && std::memcmp(x.data_ptr(), y.data_ptr(), bytes_of(x)) != 0) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const std::string copy = "/dev/shm/tenet-fuzz-" + std::to_string(::getpid());
  const MemoryFile file(bytes, size);
  TensorFile read;
  try {
    read = load_tensors(file.path());
  } catch (const Error&) {
    return 0;
  }
  std::size_t total = 0;
  for (const auto& [name, t] : read.tensors) total += bytes_of(t);
  require(total <= size);
  save_tensors(copy, read.tensors, read.metadata);
  const TensorFile again = load_tensors(copy);
  ::unlink(copy.c_str());
  require(same(read.tensors, again.tensors) && read.metadata == again.metadata);
  return 0;
}
