// The edges of a graph that may have many: who waits for them may give up.
#pragma once

#include <vector>

#include "engine/base/given_up.h"
#include "engine/base/status.h"
#include "engine/graph/edges.h"

namespace eagle::graph {

// `edges` (edges.h), or CANCELLED.
StatusOr<std::vector<Edge>> find_edges(const Graph& graph, const GivenUp& given_up);

}  // namespace eagle::graph
