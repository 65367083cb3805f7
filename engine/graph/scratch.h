// Scratch: where the planes lie that only the nodes of one graph touch.
//
// A scratch plane lives from the first stage that touches it to the last one. Planes whose lives do not meet
// may lie at the same bytes. (Nodes of one stage may run at the same time, so a stage is the unit.)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/graph.h"

namespace eagle::graph {

struct ScratchUse {
  std::string name;
  std::uint32_t plane = 0;  // index into Graph::planes
  std::uint64_t bytes = 0;
  bool in_memory = false;    // false: it has no bytes, no node touches it, or its values stay in registers
  std::uint64_t offset = 0;  // within the graph's scratch memory, a multiple of 64
};

struct ScratchLayout {
  std::vector<ScratchUse> uses;  // in the order of the planes
  std::uint64_t bytes = 0;       // of all of them together
};

constexpr std::uint64_t scratch_alignment = 64;

// SCRATCH_PLANE for a read of bytes that no earlier node surely wrote: a plane holds nothing between
// launches, and other planes lie at the same bytes. The message names the node, its argument, the plane, and
// whether it was written never, in part, or only in the body of a conditional.
//
// What the nodes before it surely wrote: everything that kernels, copies and reductions write, in add order;
// bodies of conditionals count within themselves only, since they may run never. A view counts as written if
// the byte range from its first to its last byte was, or if it lies in rows that were written with the same
// strides, count and start of the rows (one column of a matrix after another). A kernel reads what its body
// looks at, and its mask; outputs that merely keep what they had for stopped samples are not read, so what
// such a sample leaves there is the caller's question. Guards read their cells.
//
// GRAPH_LIMIT for more bytes than 2^62. Near-linear in the nodes and planes.
StatusOr<ScratchLayout> lay_out_scratch(const Graph& graph);

// Takes planes out of a layout that need no memory after all; the others stay where they are. `in_registers`,
// by plane of the graph.
void leave_out(ScratchLayout& layout, const std::vector<bool>& in_registers);

}  // namespace eagle::graph
