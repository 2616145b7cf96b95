// The IDX format of MNIST: a magic number, the sizes, and the elements in row-major order, all big-endian.
// Source: The MNIST database of handwritten digits, "The IDX file format", yann.lecun.com/exdb/mnist.
#pragma once

#include <tenet/core/factories.hpp>
#include <tenet/data/file.hpp>

#include <bit>

namespace tenet::data {
inline namespace TENET_CONFIG {

namespace detail {

/// What is common to the errors of a reader: the file's name comes first.
template <ByteSource S>
[[noreturn]] TENET_COLD void bad_idx(const S& source, const std::string& why) {
  throw FormatError(text({"idx: '", source.name(), "': ", why}));
}

template <ByteSource S>
TENET_COLD void read_exactly(S& source, void* to, std::size_t n, const char* what) {
  const std::size_t got = source.read(to, n);
  if (got != n) bad_idx(source, text({"expected ", n, " bytes of ", what, ", the file ends after ", got}));
}

inline std::uint32_t big_endian(const unsigned char* b) {
  return std::uint32_t(b[0]) << 24 | std::uint32_t(b[1]) << 16 | std::uint32_t(b[2]) << 8 | b[3];
}

/// The element type behind a code of the format (int16 has no tensor of its own); nullptr if there is none.
struct IdxType {
  const char* name;
  std::size_t bytes;
};
inline IdxType idx_type(unsigned code) {
  switch (code) {
    case 0x08: return {"uint8", 1};
    case 0x09: return {"int8", 1};
    case 0x0B: return {"int16", 2};
    case 0x0C: return {"int32", 4};
    case 0x0D: return {"float32", 4};
    case 0x0E: return {"float64", 8};
    default: return {nullptr, 0};
  }
}
template <Element T>
constexpr bool idx_holds(unsigned code) {
  switch (code) {
    case 0x08: return std::is_same_v<T, std::uint8_t>;
    case 0x09: return std::is_same_v<T, std::int8_t>;
    case 0x0B:
    case 0x0C: return std::is_same_v<T, std::int32_t>;
    case 0x0D: return std::is_same_v<T, float>;
    case 0x0E: return std::is_same_v<T, double>;
    default: return false;
  }
}

struct IdxHeader {
  unsigned code;
  std::size_t item;  // bytes of an element in the file
  Shape shape;
};

/// Reads the header, and compares the sizes it claims with what the source can hold.
template <ByteSource S>
TENET_COLD IdxHeader read_idx_header(S& source) {
  unsigned char magic[4];
  read_exactly(source, magic, 4, "magic number");
  if (magic[0] == 0x1F && magic[1] == 0x8B) {
    bad_idx(source, "it is compressed with gzip; read_idx_gzip() of tenet/data/gzip.hpp reads it");
  }
  const IdxType type = idx_type(magic[2]);
  if (magic[0] || magic[1] || !type.name) {
    bad_idx(source, text({"expected a magic number of bytes [0, 0, 8 to 14, dimensions], got [", magic[0], ", ",
                          magic[1], ", ", magic[2], ", ", magic[3], "]"}));
  }
  const int rank = magic[3];
  if (rank < 1 || rank > max_rank) bad_idx(source, text({"expected 1 to ", max_rank, " dimensions, got ", rank}));

  Dims sizes;
  std::uint64_t bytes = type.bytes;  // of the sizes that are not 0: a Shape wants their product to fit int64
  bool overflow = false;
  for (int i = 0; i < rank; ++i) {
    unsigned char size[4];
    read_exactly(source, size, 4, "a size");
    sizes.push_back(big_endian(size));
    overflow |= __builtin_mul_overflow(bytes, std::uint64_t(sizes[i] ? sizes[i] : 1), &bytes);
  }
  overflow |= bytes > std::uint64_t(std::numeric_limits<std::int64_t>::max());
  const std::uint64_t header = 4 + 4 * std::uint64_t(rank), most = source.most();
  if (overflow || (!sizes.contains(0) && bytes > most - (header < most ? header : most))) {
    bad_idx(source, text({"expected ", sizes, " elements of ", type.name, ", the file is too short for them"}));
  }
  return {magic[2], type.bytes, sizes};
}

/// Reads n elements that the file stores as `Stored` into `to`.
template <class Stored, ByteSource S, class T>
void read_elements(S& source, T* to, std::int64_t n) {
  if constexpr (sizeof(Stored) == 1) {
    read_exactly(source, to, std::size_t(n), "elements");
  } else {
    unsigned char bytes[4096];
    constexpr std::int64_t most = sizeof bytes / sizeof(Stored);
    for (std::int64_t left = n; left > 0;) {
      const std::int64_t count = left < most ? left : most;
      read_exactly(source, bytes, std::size_t(count) * sizeof(Stored), "elements");
      for (std::int64_t i = 0; i < count; ++i) {
        using Bits = std::conditional_t<sizeof(Stored) == 8, std::uint64_t,
                                        std::conditional_t<sizeof(Stored) == 4, std::uint32_t, std::uint16_t>>;
        Bits bits = 0;
        for (std::size_t b = 0; b < sizeof(Stored); ++b)
          bits = Bits(bits << 8 | bytes[std::size_t(i) * sizeof(Stored) + b]);
        *to++ = T(std::bit_cast<Stored>(bits));
      }
      left -= count;
    }
  }
}

}  // namespace detail

/// The tensor in an IDX stream: uint8, int8, int32 (from int16 too), float or double, of the sizes it names.
/// Nothing is allocated for sizes that the stream cannot hold. Throws FormatError, which names the file and
/// what was expected, unless the stream is one whole IDX file of element type T.
template <Element T, ByteSource S>
TENET_COLD Tensor<T> read_idx(S& source) {
  const detail::IdxHeader header = detail::read_idx_header(source);
  if (!detail::idx_holds<T>(header.code)) {
    detail::bad_idx(source, text({"expected elements of ", tenet::name(dtype_of<T>), ", got ",
                                  detail::idx_type(header.code).name}));
  }
  Tensor<T> t = empty<T>(header.shape);
  if constexpr (std::is_same_v<T, std::int32_t>) {
    if (header.item == 2) detail::read_elements<std::int16_t>(source, t.data(), t.numel());
    else detail::read_elements<std::int32_t>(source, t.data(), t.numel());
  } else {
    detail::read_elements<T>(source, t.data(), t.numel());
  }
  char more = 0;
  if (source.read(&more, 1) != 0) detail::bad_idx(source, text({"expected the end after ", header.shape, " elements"}));
  return t;
}

/// The same from a file that is not compressed; Error when it cannot be opened.
template <Element T>
Tensor<T> read_idx(const std::string& path) {
  File file(path);
  return read_idx<T>(file);
}

}  // namespace TENET_CONFIG
}  // namespace tenet::data
