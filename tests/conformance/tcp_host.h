// The host "daemon_tcp": an eagled behind TCP, whose arrays are copies here. The cases read and write arrays
// where they are, so this session sends the arrays of a graph or run before it, and fetches them after.
#pragma once

#include "eagle/client/session.h"

namespace eagle::conformance {

// `session` is one over TCP.
Session mirrored(const Session& session);

}  // namespace eagle::conformance
