// What a running daemon takes over from its configuration, at its start and on SIGHUP.
#pragma once

#include "engine/base/status.h"
#include "server/daemon.h"
#include "server/options.h"

namespace eagle::server {

// Tenants, admins and limits.
void follow(const ProgramOptions& options, Daemon& daemon);

// Reads command line, environment, file, and the files named there anew, and takes over what may change:
// limits, tenants, admins, tokens, the log level. (gRPC itself looks whether the files of TLS have changed.)
// All of it or, where anything is wrong, nothing: the error says what. Settings that need a restart are named
// in the log and stay.
Status reload(ProgramOptions& options, Daemon& daemon);

}  // namespace eagle::server
