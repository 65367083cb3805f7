// Edges of one list of leaves, such as the body of a conditional.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/graph/edges.h"

namespace eagle::graph {

// As `edges` of a graph (edges.h); leaves are numbered by their place in the list.
std::vector<Edge> list_edges(const std::vector<Leaf>& leaves);

// Pairs (earlier, later), ascending, that order what the edges order, and no more: an edge that others imply
// through who wrote the same place since is left out as a rule. So there are about as many as touches, where
// edges may be as many as pairs of them. For leaves without races.
std::vector<std::pair<std::uint32_t, std::uint32_t>> list_order(const std::vector<Leaf>& leaves);

}  // namespace eagle::graph
