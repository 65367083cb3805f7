// PrivateDaemon: an `eagled` that this process starts for itself when none is running, shared by all its
// sessions, and ended with the last of them.
//
// It listens in a directory that nobody else can enter, and watches this process through a pidfd: however
// this process ends, the daemon ends too. A forked child has no part in it and starts its own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>

#include "client/endpoint.h"
#include "engine/base/status.h"
#include "engine/base/unique_fd.h"

namespace eagle {

// EAGLED where set, else `eagled` beside the program or shared object that this code is in, in bin or ../bin
// of it, or on PATH. NO_DAEMON lists the places looked at.
StatusOr<std::string> find_eagled();

class PrivateDaemon {
public:
  // The one of this process, started now if need be. Errors say what eagled said, NO_DAEMON where it said
  // nothing before `deadline`.
  static StatusOr<std::shared_ptr<PrivateDaemon>> of_process(std::chrono::steady_clock::time_point deadline);
  ~PrivateDaemon();
  PrivateDaemon(const PrivateDaemon&) = delete;
  PrivateDaemon& operator=(const PrivateDaemon&) = delete;

  [[nodiscard]] Endpoint endpoint() const { return {directory_ + "/eagled.sock"}; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  // Waits for its end: whoever asks has been turned away and wants to know whether for good.
  [[nodiscard]] bool ends_before(std::chrono::steady_clock::time_point deadline) const;

private:
  PrivateDaemon() = default;
  static StatusOr<std::shared_ptr<PrivateDaemon>> start(std::chrono::steady_clock::time_point deadline);
  Status make_directory();
  bool make_directory_in(const std::string& parent);
  Status spawn(const std::string& program, UniqueFd ready);
  [[nodiscard]] bool running() const;
  [[nodiscard]] bool wait_for_end(std::chrono::milliseconds limit) const;
  void end();

  pid_t owner_ = -1;
  pid_t pid_ = -1;
  std::string directory_;
  UniqueFd lock_;     // says that the directory is in use
  UniqueFd process_;  // pidfd of the daemon: it stays right when the host program reaps our child
};

}  // namespace eagle
