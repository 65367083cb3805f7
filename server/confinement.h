// Confinement: what this process gives up for good before it serves anybody.
#pragma once

#include "engine/base/status.h"

namespace eagle::server {

// Nothing that this process executes gains a right by it (no_new_privs), and system calls that a daemon never
// needs and an intruder would like fail with EPERM from now on: for every thread that starts later, and every
// process. Call it before threads start. SYSTEM where the first cannot be had; a kernel without filters is
// told in the log.
Status confine();

}  // namespace eagle::server
