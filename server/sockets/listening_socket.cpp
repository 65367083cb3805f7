#include "server/sockets/listening_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace eagle::server {
namespace {

constexpr std::size_t max_path = sizeof(sockaddr_un::sun_path) - 1;
constexpr int backlog = 1024;

Status failed(const std::string& call, const std::string& path) {
  return {Reason::system, call + " of '" + path + "': " + std::strerror(errno)};
}

Status not_bound(const std::string& path) {
  const bool missing = errno == ENOENT || errno == ENOTDIR;
  return {Reason::system, failed("bind", path).message() +
                              (missing ? "; make its folder first, or choose another path"
                                       : "; choose a path in a folder that this user may write")};
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, max_path);
  return address;
}

UniqueFd stream_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool bind_to(int fd, const sockaddr_un& address) {
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// Held while a stale file is replaced, so that two daemons that start together do not both replace it.
UniqueFd lock_directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) static_cast<void>(::flock(fd.get(), LOCK_EX));
  return fd;
}

// Ok once the file at `path` is gone; it is left alone if something answers there.
Status remove_stale(const std::string& path, const sockaddr_un& address) {
  struct stat file {};
  if (::lstat(path.c_str(), &file) != 0) return errno == ENOENT ? Status() : failed("lstat", path);
  if (!S_ISSOCK(file.st_mode)) {
    return {Reason::bad_endpoint,
            "'" + path + "' exists and is not a socket; remove it or choose another path"};
  }
  // The worker of a daemon that was killed just now may not have ended yet.
  constexpr int probes = 10;
  constexpr std::chrono::milliseconds between_probes{100};
  for (int left = probes;;) {
    const UniqueFd probe = stream_socket();
    if (!probe.valid()) return failed("socket", path);
    if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
        errno == ECONNREFUSED) {
      break;
    }
    if (--left == 0) {
      return {Reason::bad_endpoint,
              "another daemon answers at '" + path + "'; stop it first, or choose another path"};
    }
    std::this_thread::sleep_for(between_probes);
  }
  return ::unlink(path.c_str()) == 0 ? Status() : failed("unlink", path);
}

}  // namespace

StatusOr<std::string> unix_path(std::string_view endpoint) {
  constexpr std::string_view scheme = "unix:";
  if (!endpoint.starts_with(scheme)) {
    return Status(Reason::bad_endpoint, "expected an endpoint of the form unix:PATH, found '" +
                                            std::string(endpoint.substr(0, 256)) + "'; TCP is dns:HOST:PORT");
  }
  std::string path(endpoint.substr(scheme.size()));
  if (path.empty() || path.find('\0') != std::string::npos) {
    return Status(Reason::bad_endpoint, "expected a path after 'unix:', found none");
  }
  if (path.size() > max_path) {
    return Status(Reason::bad_endpoint, "expected a socket path of at most " + std::to_string(max_path) +
                                            " bytes, found " + std::to_string(path.size()) + " ('" +
                                            path.substr(0, 256) + "'); choose a shorter one");
  }
  return path;
}

StatusOr<ListeningSocket> ListeningSocket::open(const std::string& path) {
  EAGLE_RETURN_IF_ERROR(unix_path("unix:" + path).status());
  const sockaddr_un address = address_of(path);
  UniqueFd fd = stream_socket();
  if (!fd.valid()) return failed("socket", path);
  // Before bind, which takes the mode over: at no time is the file open to more than these.
  if (::fchmod(fd.get(), 0660) != 0) return failed("fchmod", path);
  const UniqueFd lock = lock_directory_of(path);
  if (!bind_to(fd.get(), address)) {
    if (errno != EADDRINUSE) return not_bound(path);
    EAGLE_RETURN_IF_ERROR(remove_stale(path, address));
    if (!bind_to(fd.get(), address)) return not_bound(path);
  }
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return failed("stat", path);
  ListeningSocket socket(std::move(fd), path, file.st_dev, file.st_ino);
  if (::listen(socket.fd(), backlog) != 0) return failed("listen", path);
  return socket;
}

ListeningSocket ListeningSocket::adopt(UniqueFd fd, std::string path, dev_t device, ino_t inode) {
  return {std::move(fd), std::move(path), device, inode};
}

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      device_(other.device_),
      inode_(other.inode_) {}

ListeningSocket::~ListeningSocket() {
  if (!fd_.valid()) return;
  struct stat file {};
  if (::stat(path_.c_str(), &file) == 0 && file.st_dev == device_ && file.st_ino == inode_) {
    ::unlink(path_.c_str());
  }
}

}  // namespace eagle::server
