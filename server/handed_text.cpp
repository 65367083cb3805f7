#include "server/handed_text.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "engine/base/file_bytes.h"
#include "engine/plane/memfd.h"

namespace eagle::server {
namespace {

Status failed(const char* call) { return {Reason::system, std::string(call) + ": " + std::strerror(errno)}; }

}  // namespace

StatusOr<UniqueFd> hand_over(std::string_view text, std::string_view label) {
  EAGLE_ASSIGN_OR_RETURN(UniqueFd fd, plane::make_memfd(label));
  EAGLE_RETURN_IF_ERROR(write_at(fd.get(), text, 0));
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    return failed("fcntl");
  }
  return fd;
}

StatusOr<std::string> handed(int fd, std::size_t most) {
  struct stat found {};
  if (::fstat(fd, &found) != 0) return failed("fstat");
  const auto size = static_cast<std::size_t>(found.st_size);
  if (found.st_size < 0 || size > most) {
    return Status(Reason::bad_message, "expected a text of at most " + std::to_string(most) +
                                           " bytes, found " + std::to_string(found.st_size));
  }
  return read_at(fd, 0, size);  // by position: another process may read the same file
}

}  // namespace eagle::server
