// Kernels that ask for the number of their step, where that is in a cell of memory: what a run is to itself
// is a loop of a graph to a reverse pass.
#pragma once

#include <string>

#include "engine/kernel/ir.h"

namespace eagle::diff {

bool asks_for_step(const kernel::Kernel& kernel);

// With a table `name` of one i64 as the last argument, whose element step_index() is.
kernel::Kernel with_step_cell(const kernel::Kernel& kernel, const std::string& name);

}  // namespace eagle::diff
