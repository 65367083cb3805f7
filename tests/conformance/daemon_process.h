// A real eagled of the test's own, on a socket in a temporary folder.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace eagle::conformance {

class DaemonProcess {
public:
  // Starts the program that EAGLED names and waits until it serves. NO_DAEMON (unavailable) where EAGLED is
  // not set, INTERNAL with what eagled said where it does not start.
  // `threads` of its team; 0: as many as it finds.
  // `more`: further options; `descriptors`: how many it may have (0: as this process); `copied`: it is
  // started from a copy of its own (`program`), which may be exchanged.
  static StatusOr<std::unique_ptr<DaemonProcess>> start(int threads = 0,
                                                        const std::vector<std::string>& more = {},
                                                        std::uint64_t descriptors = 0, bool copied = false);
  ~DaemonProcess();  // SIGTERM, and waits
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  [[nodiscard]] std::string endpoint() const { return "unix:" + folder_ + "/eagled.sock"; }
  [[nodiscard]] const std::string& tcp_endpoint() const { return tcp_endpoint_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::string program() const { return folder_ + "/eagled"; }
  // The process that computes, which `pid` keeps; -1 while there is none.
  [[nodiscard]] pid_t worker() const;
  // SIGKILL, and waits for its end.
  void kill();
  // SIGTERM, and waits; its exit status, or -1 when a signal ended it.
  int terminate();
  // Waits for its end, which somebody else brings about; as `terminate`.
  int wait();

private:
  DaemonProcess() = default;
  int end(int signal);
  std::string folder_;
  std::string tcp_endpoint_;
  pid_t pid_ = -1;
};

}  // namespace eagle::conformance
