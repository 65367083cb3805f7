// A kernel as its derivative looks at it: no vectors and matrices between its planes, no primitives without
// rules.
#pragma once

#include "engine/kernel/ir.h"

namespace eagle::kernel::diff {

// The same kernel, to the bit, in operations on scalars: vectors are taken apart where they come from planes,
// and put together where they go to planes. So every component has an adjoint of its own, and one that
// nothing uses has none. Primitives without rules are written out. Arguments stay as they are.
Kernel in_scalars(const Kernel& kernel);

}  // namespace eagle::kernel::diff
