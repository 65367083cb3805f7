// What a running daemon says of itself, for HEALTHCHECK and the like.
#pragma once

#include <string>

#include "engine/base/status.h"
#include "server/options.h"

namespace eagle::server {

// Asks the daemon at the unix socket of the options, or where there is none at the first TCP address, by
// grpc.health.v1: "SERVING", "NOT_SERVING", "UNKNOWN". `service`: "", "eagled.ready", "eagled.device.NAME".
// CONNECTION_LOST where nobody answers within a few seconds, UNKNOWN_NAME for a service that there is not,
// BAD_VALUE for TCP with TLS: this process has no certificate to show.
StatusOr<std::string> health_of(const ProgramOptions& options, const std::string& service);

}  // namespace eagle::server
