// Indices of tables and accumulators, as the derivative needs them. Inside of this folder alone.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/kernel/diff/writer.h"

namespace eagle::kernel::diff {

// How long the table or accumulator that is this argument of the new kernel is along one of its axes.
inline ValueId extent_of(Writer& w, std::size_t argument, std::size_t axis) {
  const Argument& indexed = w.out.arguments[argument];
  if (!indexed.axes.empty()) return w.integer(indexed.axes[axis].extent);
  return w.length(argument);
}

// Each index within its axis, as a look-up takes it.
inline std::vector<ValueId> clamped(Writer& w, std::size_t argument, const std::vector<ValueId>& indices) {
  std::vector<ValueId> inside;
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    const ValueId last = w.sub(extent_of(w, argument, axis), w.integer(1));
    inside.push_back(w.of(Opcode::min, w.of(Opcode::max, indices[axis], w.integer(0)), last));
  }
  return inside;
}

// Whether all of them are within their axes.
inline ValueId inside(Writer& w, std::size_t argument, const std::vector<ValueId>& indices) {
  ValueId all = none;
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    const ValueId here = w.both(w.compare(Opcode::ge, indices[axis], w.integer(0)),
                                w.compare(Opcode::lt, indices[axis], extent_of(w, argument, axis)));
    all = all == none ? here : w.both(all, here);
  }
  return all;
}

}  // namespace eagle::kernel::diff
