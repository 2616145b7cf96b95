// A file that appears whole or not at all.
#pragma once

#include <tenet/core/error.hpp>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace tenet {

namespace state {
inline constinit std::atomic<std::uint64_t> temporary_files{0};  // numbers them
}

namespace io {
inline namespace TENET_CONFIG {

/// Writes to a temporary file beside `path`; commit() gives it that name, in place of what was there. Without
/// commit() it goes, and `path` is what it was. Throws Error, naming `op` and the path.
class AtomicFile {
 public:
  AtomicFile(const char* op, std::string path) : op_(op), path_(std::move(path)) {
    // A number of this process that nobody else has; a file left behind by a crash may have taken it.
    do {
      temporary_ = text({path_, ".", ::getpid(), "-", ++state::temporary_files, ".tmp"});
      file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (file_ < 0 && errno == EEXIST);
    if (file_ < 0) fail();
  }
  ~AtomicFile() {
    if (file_ >= 0) ::close(file_);
    if (!committed_) ::unlink(temporary_.c_str());
  }
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes) {
    const char* from = static_cast<const char*>(data);
    while (bytes) {
      const ::ssize_t n = ::write(file_, from, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail();
      from += n;
      bytes -= std::size_t(n);
    }
  }

  /// Waits until the bytes are on the disk, then shows them under the name.
  void commit() {
    if (::fsync(file_) != 0) fail();
    if (::close(std::exchange(file_, -1)) != 0) fail();
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
    committed_ = true;
    sync_folder();
  }

 private:
  // The new name survives a power failure once the folder is on the disk. Not every file system can do it.
  void sync_folder() const {
    const std::size_t slash = path_.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    ::fsync(fd);
    ::close(fd);
  }
  [[noreturn]] TENET_COLD void fail() const {
    throw Error(text({op_, ": cannot write '", path_, "': ", std::strerror(errno)}));
  }

  const char* op_;
  std::string path_, temporary_;
  int file_ = -1;
  bool committed_ = false;
};

}  // namespace TENET_CONFIG
}  // namespace io
}  // namespace tenet
