// What log lines are about: the session, graph and launch, and the trace of the user's that they belong to.
// Set for a scope of a thread, and put on every line that the thread writes there.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/trace_context.h"

namespace eagle::server {

// An id as logs and tools write it: 16 hexadecimal digits.
std::string id_text(std::uint64_t id);

struct LogIds {
  std::uint64_t session = 0;  // 0: none, as for the others
  std::uint64_t graph = 0;
  std::uint64_t launch = 0;
  TraceContext trace = {};
};

// Of this thread, now.
inline LogIds& log_ids() {
  static thread_local LogIds ids;
  return ids;
}

class LogScope {
public:
  // What `ids` does not give stays as it is.
  explicit LogScope(const LogIds& ids) : before_(log_ids()) {
    LogIds& now = log_ids();
    if (ids.session != 0) now.session = ids.session;
    if (ids.graph != 0) now.graph = ids.graph;
    if (ids.launch != 0) now.launch = ids.launch;
    if (ids.trace.given()) now.trace = ids.trace;
  }
  ~LogScope() { log_ids() = before_; }
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;

private:
  const LogIds before_;
};

}  // namespace eagle::server
