// SessionState: what both hosts remember about their session: its name, whether it is closed, and the
// process that opened it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/process.h"
#include "engine/base/status.h"

namespace eagle {

// The number of a new session, counted through this process.
std::uint64_t next_session_number();

class SessionState {
public:
  explicit SessionState(std::string name) : name_(std::make_shared<const std::string>(std::move(name))) {}

  [[nodiscard]] const std::string& name() const { return *name_; }
  [[nodiscard]] const std::shared_ptr<const std::string>& shared_name() const { return name_; }

  // Whether this process is a forked child of the one that opened the session. Threads do not survive a
  // fork, so neither gRPC nor an OpenMP team may be touched there, not even to take them down.
  [[nodiscard]] bool forked() const { return this_process() != owner_; }
  [[nodiscard]] bool closed() const { return closed_.load(std::memory_order_acquire); }
  // True for the one call that closes.
  bool close() { return !closed_.exchange(true, std::memory_order_acq_rel); }

  // SESSION_FORKED or SESSION_CLOSED where the session cannot be used; `operation` begins the text.
  [[nodiscard]] Status check(std::string_view operation) const;

private:
  std::shared_ptr<const std::string> name_;
  pid_t owner_ = this_process();
  std::atomic<bool> closed_ = false;
};

}  // namespace eagle
