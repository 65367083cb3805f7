// StateLog: where the worker writes down what clients were told they have, before they are told.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace eagle::server {

// `torn`: by the plane's id, what of its bytes is half written. `process`: one that may have mapped the
// session's planes. `name`: a published array. `run`, `run_plane`, `run_progress`: a submitted run, what of
// it may be fetched, and how far it is while it computes. `outcomes`: of launches that were enqueued, and are
// still to be asked for. `gpu_fault`: by its number, a GPU that was lost.
enum class StateKind : std::uint8_t {
  session = 1,
  plane = 2,
  graph = 3,
  params = 4,
  strike = 5,
  torn = 6,
  process = 7,
  name = 8,
  run = 9,
  run_plane = 10,
  outcomes = 11,
  run_progress = 12,
  gpu_fault = 13,
};
constexpr StateKind last_state_kind = StateKind::gpu_fault;

// What an entry is about. A session's own entry has id 0, and goes with everything of that session; strikes,
// submitted runs and faults of GPUs belong to no session (0).
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
  // Memory, or a process (pidfd). Borrowed; -1: none.
  int fd = -1;
  // The bytes are in this memory from now on, for every entry over them: the log keeps them once.
  bool moved = false;
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
