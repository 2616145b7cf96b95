// Files compressed with gzip. Needs zlib: component tenet::gzip, or -lz.
#pragma once

#include <tenet/data/idx.hpp>

#include <zlib.h>

namespace tenet::data {
inline namespace TENET_CONFIG {

namespace detail {
struct CloseGzip {
  void operator()(gzFile_s* f) const { gzclose(f); }
};
}  // namespace detail

/// A file that is gzip'd, or not: which of them is seen by its first bytes. Throws Error when it cannot be
/// opened, FormatError when it is cut short or a checksum is wrong.
class GzipFile {
 public:
  explicit GzipFile(std::string path) : path_(std::move(path)) {
    const auto file = data::detail::open_file(path_, size_);
    file_.reset(gzopen(path_.c_str(), "rbe"));
    if (!file_) throw Error(text({"gzip: cannot open '", path_, "': ", std::strerror(errno)}));
  }

  const std::string& name() const { return path_; }

  std::uint64_t most() const {
    constexpr std::uint64_t ratio = 1032;  // deflate makes at most 258 bytes of 2 bits
    return gzdirect(file_.get()) || size_ > UINT64_MAX / ratio ? size_ : size_ * ratio;
  }

  std::size_t read(void* to, std::size_t n) {
    std::size_t got = 0;
    while (got < n) {
      const std::size_t left = n - got, step = left < (1u << 30) ? left : (1u << 30);
      const int count = gzread(file_.get(), static_cast<char*>(to) + got, unsigned(step));
      if (count < 0) fail();
      got += std::size_t(count);
      if (std::size_t(count) < step) break;
    }
    int status = Z_OK;
    if (got < n && (gzerror(file_.get(), &status), status != Z_OK)) fail();  // the end came too early
    return got;
  }

 private:
  [[noreturn]] TENET_COLD void fail() {
    int status = Z_OK;
    const char* why = gzerror(file_.get(), &status);
    throw FormatError(text({"gzip: '", path_, "' is damaged: ", status == Z_ERRNO ? std::strerror(errno) : why}));
  }

  std::string path_;
  std::uint64_t size_ = 0;
  std::unique_ptr<gzFile_s, detail::CloseGzip> file_;
};

/// As read_idx, from a file that may be gzip'd.
template <Element T>
Tensor<T> read_idx_gzip(const std::string& path) {
  GzipFile file(path);
  return read_idx<T>(file);
}

}  // namespace TENET_CONFIG
}  // namespace tenet::data
