// A thread that nobody waits for: for calls that may take for ever, and must hold up nobody.
#pragma once

#include <functional>

#include "engine/base/status.h"

namespace eagle {

// What `work` uses it keeps itself, since it may outlive whoever starts it. SYSTEM where the system has no
// thread for it (pids.max, RLIMIT_NPROC); `work` has not run then.
Status start_detached(std::function<void()> work);

}  // namespace eagle
