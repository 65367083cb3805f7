// Whether one sample may keep a kernel so long that a wish to stop must reach into its loops.
#pragma once

#include "engine/kernel/ir.h"

namespace eagle::kernel {

// A loop nest of at most so many trips is done before a cancel could matter.
inline constexpr double many_trips = 1e6;

// Trips of all loops of a region, at most.
inline double trips_of(const Region& region) {
  double trips = 0;
  for (const Op& op : region.ops) {
    double inside = 0;
    for (const Region& nested : op.regions) inside += trips_of(nested);
    if (op.code == Opcode::while_) inside = static_cast<double>(op.max_trips) * (1 + inside);
    trips += inside;
  }
  return trips;
}

inline bool has_long_loops(const Kernel& kernel) { return trips_of(kernel.body) > many_trips; }

}  // namespace eagle::kernel
