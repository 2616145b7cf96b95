// Files as a stream of bytes, for the readers of data sets.
#pragma once

#include <tenet/core/error.hpp>

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tenet::data {
inline namespace TENET_CONFIG {

/// Bytes that come one after the other, from somewhere with a name.
template <class S>
concept ByteSource = requires(S& source, void* to, std::size_t n) {
  { source.name() } -> std::convertible_to<std::string>;
  { source.read(to, n) } -> std::convertible_to<std::size_t>;  // fewer than n at the end only
  { source.most() } -> std::convertible_to<std::uint64_t>;     // no more bytes than that can come, all told
};

namespace detail {

struct CloseFile {
  void operator()(std::FILE* f) const { std::fclose(f); }
};

/// Opens a regular file for reading and tells its size; throws Error.
TENET_COLD inline std::unique_ptr<std::FILE, CloseFile> open_file(const std::string& path, std::uint64_t& size) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not hang us
  std::unique_ptr<std::FILE, CloseFile> file(descriptor < 0 ? nullptr : ::fdopen(descriptor, "rb"));
  struct stat status {};
  if (!file && descriptor >= 0) ::close(descriptor);
  if (!file || ::fstat(::fileno(file.get()), &status) != 0) {
    throw Error(text({"file: cannot open '", path, "': ", std::strerror(errno)}));
  }
  if (!S_ISREG(status.st_mode)) throw Error(text({"file: expected '", path, "' to be a regular file"}));
  size = std::uint64_t(status.st_size);
  return file;
}

}  // namespace detail

/// A file as it lies on disk. Throws Error when it cannot be opened or read.
class File {
 public:
  explicit File(std::string path) : path_(std::move(path)), file_(detail::open_file(path_, size_)) {}

  const std::string& name() const { return path_; }
  std::uint64_t most() const { return size_; }

  std::size_t read(void* to, std::size_t n) {
    const std::size_t got = std::fread(to, 1, n, file_.get());
    if (got < n && std::ferror(file_.get())) {
      throw Error(text({"file: cannot read '", path_, "': ", std::strerror(errno)}));
    }
    return got;
  }

 private:
  std::string path_;
  std::uint64_t size_ = 0;
  std::unique_ptr<std::FILE, detail::CloseFile> file_;
};

}  // namespace TENET_CONFIG
}  // namespace tenet::data
