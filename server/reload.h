// What a running daemon takes over from its configuration, at its start and on SIGHUP.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/base/status.h"
#include "server/daemon.h"
#include "server/options.h"

namespace eagle::server {

// Tenants, admins and limits.
void follow(const ProgramOptions& options, Daemon& daemon);

// That this process may have: RLIMIT_NOFILE, which bounds limits (within_descriptors).
std::uint64_t descriptors_allowed();

// What of the configuration the text alone does not show: that listeners, TLS, `tokens` and metrics go
// together. BAD_VALUE, BAD_ENDPOINT.
Status check(const ProgramOptions& options, const std::shared_ptr<Tokens>& tokens);

// Reads command line, environment, file (or `text` in its place), and the files named there anew, and takes
// over what may change:
// limits, tenants, admins, tokens, the log level. (gRPC itself looks whether the files of TLS have changed.)
// All of it or, where anything is wrong, nothing: the error says what. Settings that need a restart are named
// in the log and stay.
Status reload(ProgramOptions& options, Daemon& daemon, const std::optional<std::string>& text = std::nullopt);

}  // namespace eagle::server
