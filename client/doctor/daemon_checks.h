// A daemon that answers: whether it and this host suit each other, and how full it is.
#pragma once

#include "client/doctor/machine.h"
#include "eagle/client/session.h"

namespace eagle::doctor {

// `info`: what the daemon says of itself, or why it does not. Files of its process are looked at where it
// runs on this host.
Findings check_daemon(const Machine& machine, const StatusOr<SessionInfo>& info);

}  // namespace eagle::doctor
