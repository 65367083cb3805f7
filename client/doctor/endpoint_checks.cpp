// Where a daemon listens: whether somebody does, who that is, and who may connect.
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "client/doctor/machine.h"
#include "client/endpoint.h"
#include "engine/base/unique_fd.h"

namespace eagle::doctor {
namespace {

using enum Severity;

std::string user_text(uid_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  char buffer[4096];
  ::getpwuid_r(uid, &entry, buffer, sizeof buffer, &found);
  return (found == nullptr ? "uid " : std::string(found->pw_name) + ", uid ") + std::to_string(uid);
}

std::string group_text(gid_t gid) {
  group entry{};
  group* found = nullptr;
  char buffer[4096];
  ::getgrgid_r(gid, &entry, buffer, sizeof buffer, &found);
  return found == nullptr ? "gid " + std::to_string(gid) : found->gr_name;
}

bool trusted(uid_t uid, uid_t own) {
  if (uid == 0 || uid == own) return true;
  passwd entry{};
  passwd* found = nullptr;
  char buffer[4096];
  ::getpwnam_r("eagled", &entry, buffer, sizeof buffer, &found);
  return found != nullptr && found->pw_uid == uid;
}

// The uid at the other end, or errno.
struct Peer {
  int error = 0;
  uid_t uid = 0;
};
Peer peer_at(const std::string& path) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return {errno, 0};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return {errno, 0};
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return {errno, 0};
  return {0, peer.uid};
}

std::string mode_of(const struct stat& info) {
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(info.st_mode & 07777));
  return mode;
}

}  // namespace

Findings check_endpoint(const Machine& machine, const std::string& text) {
  const auto one = [&](Severity severity, std::string what, std::string cure) {
    return Findings{{"socket", severity, text + ": " + std::move(what), std::move(cure)}};
  };
  const StatusOr<Endpoint> endpoint = parse_endpoint(text);
  if (!endpoint.ok()) return {{"socket", problem, endpoint.status().message(), "name another endpoint"}};
  if (endpoint->tcp()) return one(note, "over TCP; whether a daemon answers is tried below", "");
  struct stat info {};
  if (::lstat(endpoint->path.c_str(), &info) != 0) {
    if (errno == EACCES) {
      return one(problem, "a folder on the way may not be searched by you",
                 "ask who owns it for access (its group, usually), or name another endpoint");
    }
    return one(note, "nobody listens there", "start one: eagled --listen " + text);
  }
  if (S_ISLNK(info.st_mode) && ::stat(endpoint->path.c_str(), &info) != 0)
    return one(warning, "a link that leads nowhere", "start eagled where it leads to, or remove it");
  if (!S_ISSOCK(info.st_mode))
    return one(problem, "there is a file, and it is no socket", "remove it, or let eagled listen elsewhere");
  const std::string rights =
      "mode " + mode_of(info) + ", " + user_text(info.st_uid) + ", group " + group_text(info.st_gid);
  const Peer peer = peer_at(endpoint->path);
  switch (peer.error) {
    case 0:
      break;
    case ECONNREFUSED:
      return one(warning, "a socket that nobody listens at any more (" + rights + ")",
                 "start eagled, which replaces it, or remove it");
    case EACCES:
      return one(problem, "you may not connect (" + rights + ")",
                 "join that group (usermod -aG " + group_text(info.st_gid) + " NAME, then log in again)");
    case EAGAIN:
      return one(warning, "its queue of connections is full (" + rights + ")",
                 "the daemon is stopped or far behind: look at its process and log");
    default:
      return one(problem, std::string("cannot be connected to: ") + std::strerror(peer.error), "");
  }
  if (!trusted(peer.uid, machine.uid)) {
    return one(problem,
               "what listens there runs as " + user_text(peer.uid) +
                   ", which is neither root, eagled nor you: "
                   "clients send it nothing",
               "find out who made that socket; name the right one in EAGLE_ENDPOINT");
  }
  return one(fine, user_text(peer.uid) + " listens (" + rights + ")", "");
}

Findings check_runtime_dir(const Machine& machine) {
  if (!machine.runtime_dir || machine.runtime_dir->empty()) {
    return {{"socket.runtime_dir", note,
             "XDG_RUNTIME_DIR is not set: a daemon of your own is not looked for at its usual place",
             "log in through a session (pam_systemd sets it), or use EAGLE_ENDPOINT"}};
  }
  const std::string& folder = *machine.runtime_dir;
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return {{"socket.runtime_dir", warning, "XDG_RUNTIME_DIR names " + folder + ", which is no folder",
             "unset it, or make the folder: mkdir -m 700 " + folder}};
  }
  const std::string path = folder + "/eagled.sock";
  if (path.size() > max_socket_path_bytes) {
    return {{"socket.runtime_dir", warning,
             "XDG_RUNTIME_DIR is so long that a socket in it has " + std::to_string(path.size()) +
                 " bytes; the system allows " + std::to_string(max_socket_path_bytes),
             "use a shorter folder, or EAGLE_ENDPOINT"}};
  }
  if (info.st_uid != machine.uid || (info.st_mode & 0022) != 0) {
    return {{"socket.runtime_dir", warning,
             "XDG_RUNTIME_DIR is " + folder + " (mode " + mode_of(info) + ", " + user_text(info.st_uid) +
                 "): others can put a socket there",
             "use a folder of your own, of mode 0700"}};
  }
  return {{"socket.runtime_dir", fine, "XDG_RUNTIME_DIR is " + folder + ", yours alone", ""}};
}

}  // namespace eagle::doctor
