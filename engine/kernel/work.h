// How much work a kernel is for a sample, about.
#pragma once

#include "engine/kernel/ir.h"

namespace eagle::kernel {

// In units of an addition; functions, tables and loops count for what they usually take. For choosing how
// to run something, never for what comes out.
double work_of(const Kernel& kernel);
// Whether a sample may go round a loop, and so take any time.
bool has_loops(const Kernel& kernel);

}  // namespace eagle::kernel
