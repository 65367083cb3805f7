// What may be relied on of every graph that `read` accepts, checked.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/address.h"
#include "engine/graph/edges.h"
#include "engine/graph/graph.h"
#include "engine/graph/races.h"
#include "engine/graph/run_plan.h"
#include "engine/graph/schedule.h"
#include "engine/graph/scratch.h"

namespace eagle::graph {

// It can be looked at, scheduled and lowered. Says what is not so; empty: all of it is.
inline std::string usable_problem(const Graph& graph) {
  const std::vector<Leaf> all = leaves(graph);
  for (const Edge& edge : edges(graph)) {
    if (edge.source >= edge.destination || edge.destination >= all.size())
      return "an edge that leads nowhere";
  }
  const Status races = check_races(graph);
  if (!races.ok() && races.reason() != Reason::racing_siblings) return races.to_string();
  const StatusOr<ScratchLayout> scratch = lay_out_scratch(graph);
  if (!scratch.ok() && scratch.status().reason() != Reason::scratch_plane)
    return scratch.status().to_string();
  const Status same = check_same_structure(graph, graph);
  if (!same.ok()) return "it is not like itself: " + same.to_string();
  const StatusOr<std::vector<Target>> found = resolve(graph, {"", {}, "x"}, Wanted::plane, "rebind");
  if (!found.ok() && found.status().reason() != Reason::unknown_name) return found.status().to_string();
  const RunPlan plan = lower(graph, schedule_of(graph, 4));
  if (plan.program.size() + plan.branches.size() < graph.stages.size())
    return "stages are missing from its plan";
  return {};
}

// An error of `read` that a client can use. Says what is wrong with it; empty: nothing.
inline std::string refusal_problem(const Status& status) {
  if (status.reason() == Reason::internal) return "an internal error: " + status.message();
  if (status.message().empty()) return "an error that says nothing";
  if (status.message().size() >= 4000)
    return "an error of " + std::to_string(status.message().size()) + " bytes";
  return {};
}

}  // namespace eagle::graph
