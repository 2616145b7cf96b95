// A file as memory.
#pragma once

#include <tenet/core/counted.hpp>
#include <tenet/core/error.hpp>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tenet::io {
inline namespace TENET_CONFIG {

/// The bytes of a file. They may be written to: the file does not see it. The file must not be made shorter
/// meanwhile; replacing it by another (as AtomicFile does) is no such change.
struct MappedFile {
  Count count;
  char* data = nullptr;
  std::size_t size = 0;

  void destroy() {
    if (size) ::munmap(data, size);
    delete this;
  }
};

/// Maps a regular file; throws Error naming `op` and the path.
inline Ref<MappedFile> map_file(const char* op, const std::string& path) {
  struct Descriptor {
    int fd;
    ~Descriptor() {
      if (fd >= 0) ::close(fd);
    }
  };
  const auto fail = [&] { throw Error(text({op, ": cannot read '", path, "': ", std::strerror(errno)})); };
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};  // a pipe must not hang us
  struct stat status {};
  if (file.fd < 0 || ::fstat(file.fd, &status) != 0) fail();
  if (!S_ISREG(status.st_mode)) throw Error(text({op, ": expected '", path, "' to be a regular file"}));

  Ref<MappedFile> mapped = Ref<MappedFile>::adopt(new MappedFile);
  if (status.st_size == 0) return mapped;  // nothing to map
  void* data = ::mmap(nullptr, std::size_t(status.st_size), PROT_READ | PROT_WRITE, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) fail();
  mapped->data = static_cast<char*>(data);
  mapped->size = std::size_t(status.st_size);
  return mapped;
}

}  // namespace TENET_CONFIG
}  // namespace tenet::io
