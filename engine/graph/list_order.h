// The order that edges demand, in few words.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/graph/edges.h"

namespace eagle::graph {

// Pairs (earlier, later), ascending, that order what the edges between these leaves (edges.h) order, and no
// more: an edge that others imply through who wrote the same place since is left out as a rule. So there are
// about as many as touches, where edges may be as many as pairs of them. For leaves without races: of a
// graph, or of the body of a conditional; numbered by their place in the list.
std::vector<std::pair<std::uint32_t, std::uint32_t>> list_order(const std::vector<Leaf>& leaves);

}  // namespace eagle::graph
