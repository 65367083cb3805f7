// The small kernels of a reverse pass, beside the derivatives themselves. Each verifies.
#pragma once

#include "engine/base/status.h"
#include "engine/kernel/ir.h"

namespace eagle::diff {

// (into, from): into += from. A state and a read of this type.
kernel::Kernel add_into(const kernel::Type& type);
// (done, bar): 0 to `bar` of the samples that ran, as the mask at the launch's start tells; a stopped sample
// stored nothing, so that what is asked about its value is asked about the one before.
kernel::Kernel clear_where_run(const kernel::Type& type);
// (g, n, into): into[i] += g[i // n]: the reverse of a sum of rows of n.
kernel::Kernel spread(kernel::Scalar scalar);
// (x, m, n, w): w[i] is i where x[i] equals m[i // n], or both are NaN, else the largest number.
kernel::Kernel find_winners(kernel::Scalar scalar);
// (g, first, n, into): into[i] += g[i // n] where first[i // n] is i: the reverse of a maximum of rows of n,
// which goes to the first of equals.
kernel::Kernel give_to_winner(kernel::Scalar scalar);
// (at, v, into): into[at[i]] += v[i], in the order of samples.
kernel::Kernel scatter(kernel::Scalar scalar);

// Of one sample, on cells of i64:
kernel::Kernel count_up();    // (i): i + 1
kernel::Kernel count_down();  // (i): i - 1
// (size, phase, slot): phase + 1, or 0 and the next slot once it reaches `size`.
kernel::Kernel advance_slot();
// (trips, size, segments): ceil(trips / size).
kernel::Kernel count_segments();
// (trips, size, segment, length): segment - 1, and how many of the trips lie in it.
kernel::Kernel previous_segment();

}  // namespace eagle::diff
