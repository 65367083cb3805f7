#include "engine/base/file_bytes.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace eagle {

Status write_at(int fd, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return {Reason::system, std::string("pwrite: ") + std::strerror(errno)};
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

StatusOr<std::string> read_at(int fd, std::uint64_t offset, std::uint64_t bytes) {
  std::string data(bytes, '\0');
  std::uint64_t got = 0;
  while (got < bytes) {
    const ssize_t part = ::pread(fd, data.data() + got, bytes - got, static_cast<off_t>(offset + got));
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) return Status(Reason::system, std::string("pread: ") + std::strerror(errno));
    if (part == 0) {
      return Status(Reason::bad_message, "a file that ends after " + std::to_string(offset + got) + " bytes");
    }
    got += static_cast<std::uint64_t>(part);
  }
  return data;
}

}  // namespace eagle
