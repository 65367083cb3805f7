// Edges of one list of leaves, such as the body of a conditional.
#pragma once

#include <vector>

#include "engine/graph/edges.h"

namespace eagle::graph {

// As `edges` of a graph (edges.h); leaves are numbered by their place in the list.
std::vector<Edge> list_edges(const std::vector<Leaf>& leaves);

}  // namespace eagle::graph
