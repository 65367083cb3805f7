// Roles: in what way a node touches each of its planes, and why.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/graph/explain.h"

namespace eagle::graph {

// The planes of a launch come with the reason that the verified kernel gives, those of a host node are as
// declared, and those of a conditional are its guard's cells and the planes of its body. One entry a name and
// view.
// GRAPH_LIMIT for a node of more than `explain_planes_limit` planes. Counting bytes takes from `work`.
StatusOr<std::vector<PlaneExplanation>> explain_planes(const Graph& graph, const Node& node, Work& work);

constexpr std::size_t explain_planes_limit = 10'000;

}  // namespace eagle::graph
