// Named tensors in a file, in the safetensors format: written so that the file is whole or not there, read by
// mapping it. PyTorch reads and writes the same files. Needs nlohmann-json: component tenet::checkpoint.
#pragma once

#include <tenet/core/tensor.hpp>
#include <tenet/io/atomic_file.hpp>
#include <tenet/io/mapped_file.hpp>
#include <tenet/io/safetensors_header.hpp>
#include <tenet/kernels/cpu/copy.hpp>

#include <bit>

namespace tenet {

static_assert(std::endian::native == std::endian::little, "the data of a safetensors file are little-endian");

using NamedTensors = std::vector<std::pair<std::string, AnyTensor>>;
using Metadata = std::map<std::string, std::string>;

/// What a file holds.
struct TensorFile {
  NamedTensors tensors;  ///< in the order of the file's header
  Metadata metadata;

  /// The tensor of that name; throws Error if there is none.
  TENET_TAG const AnyTensor& operator[](std::string_view name) const {
    for (const auto& [key, tensor] : tensors) {
      if (key == name) return tensor;
    }
    throw Error(text({"tensor file: no tensor '", name, "'"}));
  }
};

namespace io {
inline namespace TENET_CONFIG {
namespace detail {

/// Writes the elements in row-major order.
inline void write_elements(AtomicFile& file, const AnyTensor& t) {
  const std::size_t bytes = std::size_t(t.numel()) * item_size(t.dtype());
  if (t.is_contiguous()) return file.write(t.data_ptr(), bytes);
  const StorageRef copy = make_storage(bytes);
  dispatch(t.dtype(), [&]<class T>(T) {
    const Strides row_major = contiguous_strides(t.shape());
    cpu::copy<T, T>(t.dim(), t.shape().data(), {static_cast<T*>(copy->data), row_major.data()},
                    {static_cast<const T*>(t.data_ptr()), t.strides().data()});
  });
  file.write(copy->data, bytes);
}

/// The tensors' places in the file: larger elements first, so that each lies on a multiple of its size.
inline SafetensorsHeader plan(const NamedTensors& tensors, const Metadata& metadata, std::vector<std::size_t>& order) {
  SafetensorsHeader header;
  header.metadata = metadata;
  for (const auto& [name, t] : tensors) {
    if (!t.defined()) throw Error(text({"save_tensors: tensor '", name, "' is undefined"}));
    if (!t.device().is_cpu()) throw DeviceError(text({"save_tensors: tensor '", name, "' is on ", t.device()}));
    header.tensors.push_back({name, t.dtype(), t.shape()});
    order.push_back(order.size());
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return item_size(tensors[a].second.dtype()) > item_size(tensors[b].second.dtype());
  });
  std::uint64_t at = 0;
  for (const std::size_t i : order) {
    TensorEntry& entry = header.tensors[i];
    entry.begin = at;
    at = entry.end = at + std::uint64_t(entry.shape.numel()) * item_size(entry.dtype);
  }
  return header;
}

/// A bool that is neither 0 nor 1 must not come into being.
inline void check_bools(const TensorEntry& entry, const char* data) {
  for (std::uint64_t i = entry.begin; i < entry.end; ++i) {
    if (data[i] != 0 && data[i] != 1) {
      throw FormatError(text({"tensor ", shown(entry.name), ": expected 0 or 1 for bool, got ",
                              int(static_cast<unsigned char>(data[i]))}));
    }
  }
}

/// The tensor over the mapped bytes; a copy of them if they lie askew, as other writers may leave them.
inline AnyTensor tensor_of(const TensorEntry& entry, const Ref<MappedFile>& file, char* data) {
  if (entry.dtype == DType::boolean) check_bools(entry, data);
  char* const from = data + entry.begin;
  const std::size_t bytes = std::size_t(entry.end - entry.begin);
  if (bytes == 0 || reinterpret_cast<std::uintptr_t>(from) % item_size(entry.dtype) != 0) {
    AnyTensor t(make_impl(entry.shape, entry.dtype));
    if (bytes) std::memcpy(t.data_ptr(), from, bytes);
    return t;
  }
  Ref<MappedFile> share = file;
  StorageRef storage = borrow_storage(
      from, bytes, [](void* p) { Ref<MappedFile>::adopt(static_cast<MappedFile*>(p)); }, share.get());
  share.release();  // it is the storage's now
  return AnyTensor(make_impl(entry.shape, entry.dtype, std::move(storage)));
}

}  // namespace detail
}  // namespace TENET_CONFIG
}  // namespace io

inline namespace TENET_CONFIG {

/// Writes tensors, of any strides, under their names. The file appears whole or not at all, in place of what
/// was there; the same input gives the same bytes. Throws Error when it cannot be written, FormatError when
/// a name occurs twice or is not UTF-8.
inline void save_tensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata = {}) {
  std::vector<std::size_t> order;
  const io::SafetensorsHeader header = io::detail::plan(tensors, metadata, order);
  const std::string json = io::safetensors_header_text(header);
  const std::uint64_t length = json.size(), data_bytes = order.empty() ? 0 : header.tensors[order.back()].end;
  try {
    if (length > io::max_header_bytes) throw FormatError(text({"the header would take ", length, " bytes"}));
    io::parse_safetensors_header(json, data_bytes);  // what could not be read is not written
  } catch (const FormatError& e) {
    throw FormatError(text({"save_tensors: '", path, "': ", e.what()}));
  }
  io::AtomicFile file("save_tensors", path);
  file.write(&length, sizeof length);
  file.write(json.data(), json.size());
  for (const std::size_t i : order) io::detail::write_elements(file, tensors[i].second);
  file.commit();
}

/// Reads all tensors of a file. They lie in the mapped file, which stays mapped until the last of them is gone
/// and must not be shortened before; changing them does not change the file. Throws Error when it cannot be
/// opened, FormatError, with nothing allocated for a false claim, when it is not a safetensors file of
/// tenet's element types.
inline TensorFile load_tensors(const std::string& path) {
  const Ref<io::MappedFile> file = io::map_file("load_tensors", path);
  try {
    std::uint64_t length = 0;
    if (file->size < sizeof length) throw FormatError(text({"expected at least 8 bytes, got ", file->size}));
    std::memcpy(&length, file->data, sizeof length);
    const std::uint64_t rest = file->size - sizeof length;
    if (length > io::max_header_bytes || length > rest) {
      throw FormatError(
          text({"expected a header of at most ", std::min(io::max_header_bytes, rest), " bytes, it claims ", length}));
    }
    const std::string_view json(file->data + sizeof length, length);
    io::SafetensorsHeader header = io::parse_safetensors_header(json, rest - length);
    TensorFile out;
    out.metadata = std::move(header.metadata);
    for (const io::TensorEntry& entry : header.tensors) {
      out.tensors.emplace_back(entry.name, io::detail::tensor_of(entry, file, file->data + sizeof length + length));
    }
    return out;
  } catch (const FormatError& e) {
    throw FormatError(text({"load_tensors: '", path, "': ", e.what()}));
  }
}

}  // namespace TENET_CONFIG
}  // namespace tenet
