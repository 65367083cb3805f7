// Notifier: what the service manager is told (sd_notify(3)): a datagram of NAME=VALUE lines.
//
// The protocol is spoken here and not with libsystemd, which would bring its dependencies into the process
// that is to die last.
#pragma once

#include <chrono>
#include <string>

#include "engine/base/unique_fd.h"

namespace eagle::server {

// Thread-compatible. Where nobody listens, everything does nothing.
class Notifier {
public:
  Notifier() = default;
  // Of NOTIFY_SOCKET and, where WATCHDOG_PID is this process or not set, WATCHDOG_USEC; takes them out of the
  // environment, so that processes which are started later do not speak there, too.
  static Notifier from_environment() {
    Notifier notifier;
    notifier.take_from_environment();
    return notifier;
  }
  void take_from_environment();
  // For the program that this process is to become.
  void leave_to_environment() const;

  void ready(const std::string& status) { send("READY=1\nSTATUS=" + status); }
  void reloading();
  // The end takes at most so long: the manager is to wait for that, whatever its own timeout.
  void stopping(const std::string& status, std::chrono::nanoseconds time) {
    send("STOPPING=1\nSTATUS=" + status + "\n" + extension(time));
  }
  // The same again, at most once a second.
  void still_stopping(std::chrono::nanoseconds time,
                      std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());
  void status(const std::string& status) { send("STATUS=" + status); }
  // The work goes round: shown to the manager at most four times in its interval.
  void goes_round(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());
  // So long, and the manager ends this process unless it hears of that. 0: it does not look.
  [[nodiscard]] std::chrono::microseconds watchdog() const { return watchdog_; }

private:
  static std::string extension(std::chrono::nanoseconds time);
  void send(const std::string& message) const;

  std::string path_;  // of the manager's socket; empty: there is none
  UniqueFd socket_;   // connected; or invalid
  std::chrono::microseconds watchdog_{0};
  std::chrono::steady_clock::time_point fed_;
  std::chrono::steady_clock::time_point extended_;
};

}  // namespace eagle::server
