// Uniform values: those that are the same for all samples of a block, whatever the planes hold.
#pragma once

#include <vector>

#include "engine/kernel/ir.h"

namespace eagle::codegen {

// By value. Constants, Params, n_samples, step_index, gathers at uniform indices, and what is computed from
// uniform values alone; a value that is carried through a loop or leaves a branch only where what decides
// about it is uniform too. Every value of a kernel is decided by its uniform inputs alone, so one scalar
// stands for all lanes.
std::vector<bool> uniform_values(const kernel::Kernel& kernel);

}  // namespace eagle::codegen
