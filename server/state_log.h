// StateLog: where the worker writes down what clients were told they have, before they are told.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace eagle::server {

enum class StateKind : std::uint8_t { session = 1, plane = 2, graph = 3, params = 4, strike = 5 };

// What an entry is about. A session's own entry has id 0, and goes with everything of that session; strikes
// belong to no session (0).
struct StateKey {
  std::uint64_t session = 0;
  StateKind kind = StateKind::session;
  std::uint64_t id = 0;
  friend auto operator<=>(const StateKey&, const StateKey&) = default;
};

struct StateChange {
  StateKey key;
  bool gone = false;  // the entry ends
  std::string value;  // a record of eagle/v1/state.proto
  // A plane's memory, or the process (pidfd) that a session belongs to. Borrowed; -1: none.
  int fd = -1;
};

// Thread-safe. What is written survives this process from the moment in which `write` returns.
class StateLog {
public:
  virtual ~StateLog() = default;
  // All of the changes or none. Entries of sessions that have none of their own are dropped.
  // SYSTEM: nobody takes them any more, and this process is about to end.
  virtual Status write(std::span<const StateChange> changes) = 0;
};

}  // namespace eagle::server
