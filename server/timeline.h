// Timeline: what happened lately: launches, runs, their turns on the team, host calls, builds. A bounded
// memory: the oldest are forgotten first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/reason.h"
#include "engine/base/trace_context.h"

namespace eagle::server {

// Whose work it is.
struct WorkIds {
  std::uint64_t session = 0;
  std::uint64_t graph = 0;   // 0: a run's
  std::uint64_t launch = 0;  // as the client numbers it
  TraceContext trace = {};
};

// Times are of the steady clock, in nanoseconds.
struct TimelineEvent {
  enum class Kind : std::uint8_t {
    job,        // a launch or run, from its admission to its end
    turn,       // a piece of one, on the team's thread or that of a GPU
    host_call,  // one waits for its client
    build,      // of a graph
  };
  Kind kind = Kind::job;
  Code code = Code::ok;     // of a job: how it ended
  std::uint32_t turns = 0;  // of a job: turns that it had, those that have no event of their own among them
  std::uint64_t job = 0;    // by which turns and host calls belong to it
  std::int64_t submitted = 0;  // of a job
  std::int64_t begin = 0;      // of a job: its first turn; 0: it had none
  std::int64_t end = 0;
  WorkIds ids;
  int gpu = -1;  // whose thread the turns were on; -1: the team's
};

// Thread-safe.
class Timeline {
public:
  static constexpr std::size_t capacity = 8192;

  void add(const TimelineEvent& event);
  struct Snapshot {
    std::vector<TimelineEvent> events;  // as they were added: in the order of their ends
    std::uint64_t forgotten = 0;
  };
  // Of one graph of a session, or with graph 0 of everything. Whoever adds an event meanwhile waits for a few
  // hundred to be copied, not for all.
  [[nodiscard]] Snapshot snapshot(std::uint64_t session = 0, std::uint64_t graph = 0) const;

private:
  mutable std::mutex mutex_;
  std::vector<TimelineEvent> events_;  // a ring once it is full: the Nth there was is at N % capacity
  std::uint64_t added_ = 0;
};

// Chrome's trace-event format (the object form), as chrome://tracing and ui.perfetto.dev read it. `name_of`
// names a graph by session and id.
std::string to_trace_json(
    const std::vector<TimelineEvent>& events,
    const std::function<std::string(std::uint64_t session, std::uint64_t graph)>& name_of);

}  // namespace eagle::server
