#include "engine/plane/memfd.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

namespace eagle::plane {
namespace {

// Linux 6.3; glibc of Debian 12 does not name it yet.
constexpr unsigned noexec_seal = 0x0008U;
constexpr std::size_t longest_label = 200;  // the kernel takes 249 bytes

Status failed(std::string_view call) {
  if (errno == EMFILE || errno == ENFILE) {
    return {Reason::out_of_memory,
            "no file descriptor is left for another plane (" + std::string(call) + ": " +
                std::generic_category().message(errno) +
                "); release arrays, or let the process that owns the planes have more: "
                "`ulimit -n`, LimitNOFILE= of its unit"};
  }
  return {Reason::system, std::string(call) + " failed: " + std::generic_category().message(errno)};
}

}  // namespace

StatusOr<UniqueFd> make_memfd(std::string_view label, NoExec no_exec) {
  std::string name(label.substr(0, longest_label));
  std::replace(name.begin(), name.end(), '\0', '_');
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  UniqueFd fd;
  if (no_exec == NoExec::where_known) fd.reset(::memfd_create(name.c_str(), flags | noexec_seal));
  // An older kernel refuses the flag it does not know.
  if (!fd.valid() && (no_exec == NoExec::unasked || errno == EINVAL)) {
    fd.reset(::memfd_create(name.c_str(), flags));
  }
  if (!fd.valid()) return failed("memfd_create");
  if (::fchmod(fd.get(), S_IRUSR | S_IWUSR) != 0) return failed("fchmod of a memfd");
  return fd;
}

}  // namespace eagle::plane
