// ListeningSocket: the daemon's place in the file system.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"

namespace eagle::server {

// How long a listener accepts nobody after the process ran out of descriptors or memory.
constexpr std::chrono::milliseconds pause_after_failure{100};

// The path of "unix:PATH". BAD_ENDPOINT names the scheme that cannot be used, or the length of a path that
// no socket address can hold.
StatusOr<std::string> unix_path(std::string_view endpoint);

// A unix socket that listens, non-blocking. Movable; its file is removed when it goes, if it still is its
// own.
class ListeningSocket {
public:
  // Mode 0660. A socket file that is in the way is removed if nothing answers there; BAD_ENDPOINT if
  // something does, or if it is no socket.
  static StatusOr<ListeningSocket> open(const std::string& path);

  // One that another program opened in this process; its file is known by device and inode.
  static ListeningSocket adopt(UniqueFd fd, std::string path, dev_t device, ino_t inode);

  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] dev_t device() const { return device_; }
  [[nodiscard]] ino_t inode() const { return inode_; }

private:
  ListeningSocket(UniqueFd fd, std::string path, dev_t device, ino_t inode)
      : fd_(std::move(fd)), path_(std::move(path)), device_(device), inode_(inode) {}
  UniqueFd fd_;
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace eagle::server
