// A hash of bytes, to tell whether two memories hold the same. Not against an adversary.
#pragma once

#include <tenet/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tenet {
inline namespace TENET_CONFIG {

/// FNV-1a over words, then over the rest; `h` goes on from an earlier hash.
inline std::uint64_t hash_bytes(const void* data, std::size_t bytes, std::uint64_t h = 0xCBF29CE484222325) {
  const char* p = static_cast<const char*>(data);
  const auto add = [&](std::uint64_t word) { h = ((h ^ word) * 0x100000001B3) ^ (h >> 29); };
  for (; bytes >= 8; bytes -= 8, p += 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    add(word);
  }
  for (; bytes; --bytes, ++p) add(static_cast<unsigned char>(*p));
  return h;
}

}  // namespace TENET_CONFIG
}  // namespace tenet
