// RemoteHost: a session in an eagled. Memory is shared with it, everything else is calls over its socket.
#pragma once

#include <memory>

#include "client/endpoint.h"
#include "client/host.h"

namespace eagle {

// Opens a session. `daemon` (optional) is kept for as long as the session lives.
StatusOr<std::shared_ptr<Host>> open_remote(const Endpoint& endpoint, const ConnectOptions& options,
                                            std::shared_ptr<const void> daemon);

}  // namespace eagle
