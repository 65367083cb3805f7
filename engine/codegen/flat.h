// Flat choices: those that differ between lanes and whose sides are all computed, then selected.
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/kernel/ir.h"

namespace eagle::codegen {

// Sides of a branch with at most this many ops are cheaper to compute than to jump around.
constexpr std::size_t flat_ops = 12;

// Ops in a side; a loop, a gather or a random number is never cheap.
inline std::size_t weight(const kernel::Region& region) {
  std::size_t total = 0;
  for (const kernel::Op& op : region.ops) {
    const bool heavy = op.code == kernel::Opcode::while_ || op.code == kernel::Opcode::gather ||
                       op.code == kernel::Opcode::random_words;
    total += heavy ? flat_ops + 1 : 1;
    for (const kernel::Region& nested : op.regions) total += weight(nested);
  }
  return total;
}

// `op`: an if, or a switch, which is flat where its author said so.
inline bool is_flat(const kernel::Op& op) {
  if (op.code == kernel::Opcode::if_) return weight(op.regions[0]) + weight(op.regions[1]) <= flat_ops;
  return op.dispatch && op.dispatch->policy == kernel::DispatchPolicy::predicated;
}

}  // namespace eagle::codegen
