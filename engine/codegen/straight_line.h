// Straight lines: kernels whose samples go through the same ops once, whatever they hold.
//
// What such a kernel commits need not stay in registers until its last op: it is stored where it is made.
#pragma once

#include <vector>

#include "engine/kernel/ir.h"

namespace eagle::codegen {

// No mask, no loop, nothing that samples make together, no state that a later step would begin with, and
// nothing that is counted in each step: so the last of several steps stands for all of them.
bool is_straight_line(const kernel::Kernel& kernel);

// How many native vectors one copy of such a kernel keeps at a time, at most, each value from its op to its
// last use. At least 1. `uniform`: uniform.h.
int vectors_kept(const kernel::Kernel& kernel, const std::vector<bool>& uniform);

}  // namespace eagle::codegen
