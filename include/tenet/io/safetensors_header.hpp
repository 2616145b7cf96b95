// The header of a safetensors file: JSON that says of each tensor its type, shape and place.
//
//   {"__metadata__": {"key": "value"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
//
// Source: the format's description, github.com/huggingface/safetensors. Read as the words of a stranger: every
// claim is checked against the size of the file before anything is made of it.
#pragma once

#include <tenet/core/dtype.hpp>
#include <tenet/core/shape.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tenet::io {
inline namespace TENET_CONFIG {

/// Most bytes of a header, as in the reference implementation.
inline constexpr std::uint64_t max_header_bytes = 100'000'000;
inline constexpr const char* metadata_key = "__metadata__";

/// A tensor of a file: `begin` and `end` count bytes from the end of the header.
struct TensorEntry {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  std::uint64_t begin = 0, end = 0;
};
struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in the order of the header
  std::map<std::string, std::string> metadata;
};

/// The format's name of an element type.
inline const char* safetensors_name(DType d) {
  switch (d) {
    case DType::float32: return "F32";
    case DType::float64: return "F64";
    case DType::bfloat16: return "BF16";
    case DType::float16: return "F16";
    case DType::int8: return "I8";
    case DType::uint8: return "U8";
    case DType::int32: return "I32";
    case DType::int64: return "I64";
    case DType::boolean: return "BOOL";
  }
  return "";
}

namespace detail {

/// A name out of a file, fit for an error text.
inline std::string shown(const std::string& name) {
  constexpr std::size_t most = 100;
  return "'" + (name.size() > most ? name.substr(0, most) + "..." : name) + "'";
}

/// Receives the events of the JSON parser; throws FormatError at the first that does not fit. What is nested
/// deeper than the format asks for ends the parse before it is read.
class HeaderEvents {
 public:
  SafetensorsHeader header;

  bool key(std::string& k) {
    if (depth_ == 1) {
      metadata_ = k == metadata_key;
      if (metadata_ && std::exchange(has_metadata_, true)) fail("duplicate " + shown(k));
      if (!metadata_) {
        header.tensors.emplace_back().name = k;
        has_dtype_ = has_shape_ = has_offsets_ = false;
      }
    } else {
      field_ = k;
    }
    return true;
  }
  bool start_object(std::size_t) {
    if (list_ || depth_ == 2) fail(here() + ": nested deeper than the format allows");
    ++depth_;
    return true;
  }
  bool end_object() {
    if (depth_-- == 2 && !metadata_ && !(has_dtype_ && has_shape_ && has_offsets_)) {
      fail(here() + ": expected dtype, shape and data_offsets");
    }
    return true;
  }
  bool start_array(std::size_t) {
    bool* const seen = field_ == "shape" ? &has_shape_ : field_ == "data_offsets" ? &has_offsets_ : nullptr;
    if (depth_ != 2 || metadata_ || list_ || !seen) unexpected("a list");
    if (std::exchange(*seen, true)) fail(here() + ": duplicate " + field_);
    list_ = true;
    count_ = 0;
    return true;
  }
  bool end_array() {
    list_ = false;
    TensorEntry& t = header.tensors.back();
    if (field_ == "shape") {
      Dims sizes;
      for (int i = 0; i < count_; ++i) sizes.push_back(std::int64_t(numbers_[i]));
      try {
        t.shape = sizes;
      } catch (const ShapeError& e) {
        fail(here() + ": " + e.what());
      }
    } else {
      if (count_ != 2) fail(text({here(), ": expected 2 data_offsets, got ", count_}));
      t.begin = numbers_[0];
      t.end = numbers_[1];
    }
    return true;
  }
  bool number_unsigned(std::uint64_t v) {
    if (!list_) unexpected("a number");
    if (count_ == max_rank) fail(text({here(), ": more than ", max_rank, " numbers in ", field_}));
    numbers_[count_++] = v;
    return true;
  }
  bool string(std::string& s) {
    if (depth_ != 2 || list_) unexpected("a string");
    if (metadata_) {
      if (!header.metadata.emplace(field_, s).second) fail("duplicate metadata " + shown(field_));
    } else {
      if (field_ != "dtype") unexpected("a string");
      if (std::exchange(has_dtype_, true)) fail(here() + ": duplicate dtype");
      header.tensors.back().dtype = dtype(s);
    }
    return true;
  }
  bool null() { return unexpected("null"); }
  bool boolean(bool) { return unexpected("true or false"); }
  bool number_integer(std::int64_t) { return unexpected("a negative number"); }
  bool number_float(double, const std::string&) { return unexpected("a fraction"); }
  bool binary(std::vector<std::uint8_t>&) { return unexpected("binary data"); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& e) { fail(e.what()); }

 private:
  [[noreturn]] TENET_COLD static void fail(const std::string& why) { throw FormatError(why); }
  [[noreturn]] TENET_COLD bool unexpected(const char* what) const {
    fail(text({here(), ": unexpected ", what, depth_ == 2 ? " as " + shown(field_) : std::string()}));
  }
  std::string here() const {
    if (depth_ == 0) return "header";
    return metadata_ || header.tensors.empty() ? "metadata" : "tensor " + shown(header.tensors.back().name);
  }
  DType dtype(const std::string& s) const {
    for (int d = 0; d <= int(DType::boolean); ++d) {
      if (s == safetensors_name(DType(d))) return DType(d);
    }
    fail(here() + ": element type " + shown(s) + " is not one of tenet's");
  }

  int depth_ = 0;
  bool metadata_ = false, has_metadata_ = false;                      // inside it; seen it
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;  // of the last tensor
  bool list_ = false;                                                 // inside one
  std::string field_;
  std::uint64_t numbers_[max_rank] = {};
  int count_ = 0;
};

inline void check_names(const SafetensorsHeader& header) {
  std::vector<std::string_view> names;
  for (const TensorEntry& t : header.tensors) names.push_back(t.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw FormatError("duplicate tensor " + shown(std::string(*twice)));
}

/// Each tensor has the bytes its shape asks for, and together they are the data: no hole, no overlap, no rest.
inline void check_layout(const SafetensorsHeader& header, std::uint64_t data_bytes) {
  std::vector<const TensorEntry*> places;
  for (const TensorEntry& t : header.tensors) {
    const std::string offsets = text({"[", t.begin, ", ", t.end, "]"});
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(std::uint64_t(t.shape.numel()), std::uint64_t(item_size(t.dtype)), &bytes) ||
        t.begin > t.end || t.end - t.begin != bytes) {
      throw FormatError(text({"tensor ", shown(t.name), ": ", tenet::name(t.dtype), " of shape ", t.shape,
                              " does not fit data_offsets ", offsets}));
    }
    if (t.end > data_bytes) {
      throw FormatError(
          text({"tensor ", shown(t.name), ": data_offsets ", offsets, " go past the ", data_bytes, " bytes of data"}));
    }
    places.push_back(&t);
  }
  std::sort(places.begin(), places.end(), [](const TensorEntry* a, const TensorEntry* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  std::uint64_t at = 0;
  for (const TensorEntry* t : places) {
    if (t->begin != at) {
      throw FormatError(text({"tensor ", shown(t->name), ": data_offsets begin at ", t->begin,
                              t->begin < at ? ", inside another tensor" : ", behind a hole from ",
                              t->begin < at ? "" : std::to_string(at)}));
    }
    at = t->end;
  }
  if (at != data_bytes) throw FormatError(text({"the tensors end at byte ", at, " of ", data_bytes, " bytes of data"}));
}

inline std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", unsigned(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace detail

/// What `json` says of `data_bytes` bytes of data behind it. Throws FormatError unless all of it holds: valid
/// UTF-8 and JSON, names that occur once, known element types, shapes that fit their offsets, offsets that
/// cover the data without hole or overlap.
inline SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes) {
  if (json.empty() || json.front() != '{') throw FormatError("expected the header to begin with '{'");
  // The parser takes a zero byte for the end.
  if (json.find('\0') != json.npos) throw FormatError("expected a header without zero bytes");
  detail::HeaderEvents events;
  nlohmann::json::sax_parse(json.begin(), json.end(), &events);
  detail::check_names(events.header);
  detail::check_layout(events.header, data_bytes);
  return std::move(events.header);
}

/// The header as text, filled up with spaces to a multiple of 8 bytes so that the data are aligned.
inline std::string safetensors_header_text(const SafetensorsHeader& header) {
  std::string json = "{";
  const auto next = [&](const std::string& key) {
    if (json.back() != '{') json += ',';
    json += detail::quoted(key) + ":";
  };
  if (!header.metadata.empty()) {
    next(metadata_key);
    json += '{';
    for (const auto& [key, value] : header.metadata) {
      next(key);
      json += detail::quoted(value);
    }
    json += '}';
  }
  for (const TensorEntry& t : header.tensors) {
    next(t.name);
    json += text({"{\"dtype\":\"", safetensors_name(t.dtype), "\",\"shape\":["});
    for (int i = 0; i < t.shape.size(); ++i) json += text({i ? "," : "", t.shape[i]});
    json += text({"],\"data_offsets\":[", t.begin, ",", t.end, "]}"});
  }
  json += '}';
  json.append((8 - json.size() % 8) % 8, ' ');
  return json;
}

}  // namespace TENET_CONFIG
}  // namespace tenet::io
