// What a graph does with bytes that were left half written: does it read them, or does it write them anew?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/graph.h"

namespace eagle::graph {

// Bytes that are half written. The view's `plane` is an index into Graph::planes.
struct TornMark {
  std::uint64_t number = 0;  // the caller's
  plane::View view;
};

struct TornRead {
  std::string node;
  std::string argument;
  std::uint64_t number = 0;  // of the mark
};

struct TornOutlook {
  std::optional<TornRead> read;          // the first one that there may be
  std::vector<std::uint64_t> rewritten;  // marks whose bytes a whole replay surely writes, all of them
};

// Walks the nodes in order. A kernel argument that is stored for every sample and never looked at, the
// result of a reduction and the destination of a copy are surely written; what a host node writes is not, for
// it says only what it may write, and what the body of a conditional writes is so within that body. Near
// linear in the nodes, times the marks.
TornOutlook torn_outlook(const Graph& graph, std::vector<TornMark> marks);

}  // namespace eagle::graph
