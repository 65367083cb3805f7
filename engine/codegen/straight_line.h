// Straight lines: kernels whose samples go through the same ops once, whatever they hold. What such a kernel
// commits need not stay in registers until its last op: it is stored where it is made.
//
// And kernels whose samples go through the same ops in each step, so that masks may wait until one finishes.
#pragma once

#include <vector>

#include "engine/kernel/ir.h"

namespace eagle::codegen {

// No mask, no loop, nothing that samples make together, no state that a later step would begin with, and
// nothing that is counted in each step: so the last of several steps stands for all of them.
bool is_straight_line(const kernel::Kernel& kernel);

// Whether a sample of a kernel with a mask may go on computing beside live ones once it has finished: nothing
// that it computes is seen by anybody (no gather, no count, nothing that samples make together), and it holds
// nobody up (no loop, no side of a choice that is jumped around where nobody takes it).
bool may_run_on(const kernel::Kernel& kernel, const std::vector<bool>& uniform);

// How many native vectors one copy of such a kernel keeps at a time, at most, each value from its op to its
// last use. At least 1. `uniform`: uniform.h.
int vectors_kept(const kernel::Kernel& kernel, const std::vector<bool>& uniform);

}  // namespace eagle::codegen
