// The hosts that `hosts.cpp` registers, for cases that need more of them than a session.
#pragma once

#include "tests/conformance/daemon_process.h"

namespace eagle::conformance {

// The daemon behind the host "daemon". Cases that kill theirs start one of their own.
StatusOr<DaemonProcess*> suite_daemon();

void register_hosts();

}  // namespace eagle::conformance
