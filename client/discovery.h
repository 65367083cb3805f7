// Discovery: from what the caller of connect() wrote (or did not write) to a session in a daemon.
#pragma once

#include <memory>
#include <string_view>

#include "client/host.h"

namespace eagle {

enum class Fallback {
  private_daemon,  // where no daemon is found: start one
  none,            // where no daemon is found: NO_DAEMON
};

// `endpoint`, else EAGLE_ENDPOINT, else the first of `default_endpoints()` where a daemon answers that this
// user may talk to, else the fallback.
StatusOr<std::shared_ptr<Host>> discover(std::string_view endpoint, const ConnectOptions& options,
                                         Fallback fallback);

}  // namespace eagle
