// The host: the process and machine that executes, and how much of it a team may use.
#pragma once

#include <cstdint>
#include <string>

namespace eagle::run {

struct HostIdentity {
  std::int64_t pid = 0;
  std::string host_name;
};
// The machine as it was called when this process first asked: every launch tells of it.
HostIdentity this_host();

// Threads a team of this process may have: the affinity mask, the cgroup's CPU quota (rounded up) and
// OMP_NUM_THREADS where set, whichever is least.
int allowed_threads();

// The team of at most `wanted` (>= 1) threads that this process can start now, and a few others beside it.
// libgomp ends the process when it cannot start a thread (pids.max, RLIMIT_NPROC): so this tries first.
int startable_threads(int wanted);

// Both.
int available_threads();

}  // namespace eagle::run
