#include "engine/codegen/code_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace eagle::codegen {
namespace {

constexpr int final_seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;

std::string error_of(const char* call) { return std::string(call) + ": " + std::strerror(errno); }

}  // namespace

StatusOr<UniqueFd> sealed_image(const void* bytes, std::uint64_t count) {
  UniqueFd fd(::memfd_create("eagle-code", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return Status(Reason::system, error_of("memfd_create"));
  if (::fchmod(fd.get(), 0500) != 0) return Status(Reason::system, error_of("fchmod"));
  const char* from = static_cast<const char*>(bytes);
  std::uint64_t written = 0;
  while (written < count) {
    const ssize_t n = ::write(fd.get(), from + written, count - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Status(Reason::out_of_memory, error_of("writing compiled code"));
    written += static_cast<std::uint64_t>(n);
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, final_seals | F_SEAL_SEAL) != 0) {
    return Status(Reason::system, error_of("sealing compiled code"));
  }
  return fd;
}

Status check_image(int fd, const CodeHeader& header) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return {Reason::compile_failed, "compiled code came without its image"};
  if (static_cast<std::uint64_t>(file.st_size) != header.image_bytes ||
      header.entry_offset >= header.image_bytes) {
    return {Reason::compile_failed, "compiled code has another size than it says"};
  }
  if ((::fcntl(fd, F_GET_SEALS) & final_seals) != final_seals) {
    return {Reason::compile_failed, "compiled code came in a file that is not sealed"};
  }
  return {};
}

}  // namespace eagle::codegen
