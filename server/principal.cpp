#include "server/principal.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

namespace eagle::server {
namespace {

// Linux 6.5; Debian 12's headers do not name it yet.
constexpr int so_peerpidfd = 77;

uid_t overflow_uid() {
  uid_t uid = 65534;
  std::ifstream("/proc/sys/kernel/overflowuid") >> uid;
  return uid;
}

// EAGLED_WITHOUT=pidfds, for tests: as on an older kernel, to which processes of another pid namespace are
// not there.
bool sees_processes() {
  static const char* const without = std::getenv("EAGLED_WITHOUT");
  return without == nullptr || std::string_view(without) != "pidfds";
}

}  // namespace

std::string Principal::text() const {
  switch (identity) {
    case Identity::user:
      return "uid:" + std::to_string(uid);
    case Identity::certificate:
      return "certificate:" + subject;
    case Identity::token:
      return "token:" + subject;
    case Identity::anonymous:
      break;
  }
  return "anonymous:" + subject;
}

bool Principal::same_as(const Principal& other) const {
  if (identity != other.identity) return false;
  return identity == Identity::user ? uid == other.uid : subject == other.subject;
}

Principal remote_principal(Identity identity, std::string subject) {
  return {static_cast<uid_t>(-1), static_cast<gid_t>(-1), 0, identity, std::move(subject)};
}

StatusOr<Principal> principal_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Status(Reason::system, std::string("SO_PEERCRED: ") + std::strerror(errno));
  }
  static const uid_t nobody = overflow_uid();
  if (peer.uid == nobody || peer.uid == static_cast<uid_t>(-1)) {
    return Status(Reason::unauthenticated,
                  "the caller's uid is not mapped into the daemon's user namespace (it shows as " +
                      std::to_string(peer.uid) +
                      "), so the daemon cannot tell who calls; run both in one "
                      "user namespace, or map the uid");
  }
  return Principal{peer.uid, peer.gid, peer.pid, Identity::user, {}};
}

UniqueFd process_of(int socket, const Principal& principal) {
  if (!sees_processes()) return {};
  // The kernel's own answer cannot be another process that got the pid meanwhile.
  int fd = -1;
  socklen_t size = sizeof fd;
  if (::getsockopt(socket, SOL_SOCKET, so_peerpidfd, &fd, &size) == 0) {
    return UniqueFd(fd);
  }
  if (principal.pid <= 0) return {};
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, principal.pid, 0)));
}

bool same_process(int one, int other) {
  constexpr long pidfs = 0x50494446;  // PID_FS_MAGIC: there each process has a number of its own
  struct statfs system {};
  struct stat a {};
  struct stat b {};
  if (::fstatfs(one, &system) != 0 || system.f_type != pidfs) return false;
  return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool runs(int process) {
  pollfd ready{process, POLLIN, 0};
  return ::poll(&ready, 1, 0) == 0;
}

}  // namespace eagle::server
