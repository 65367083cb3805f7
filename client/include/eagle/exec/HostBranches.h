// eagle::exec::resolve and eagle::exec::runHostBranches for C++ programs: see engine/run/cpu/host_branches.h,
// whose contract this is.
#pragma once

#include "engine/run/cpu/host_branches.h"
