// Pruning: a kernel without the ops and carried values that nothing needs.
#pragma once

#include "engine/kernel/ir.h"

namespace eagle::kernel::diff {

// The kernel without what no committed value and no addition to an accumulator needs; values are numbered in
// the order of the text. `kernel` follows the verifier's rules but for that order.
Kernel pruned(const Kernel& kernel);

}  // namespace eagle::kernel::diff
