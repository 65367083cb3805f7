// The text picture of a graph.
//
// Rows are stages; drawn edges are the transitive reduction of the derived ones; the format is fixed
// (docs/design/pictures.md) and equal for every host. Works on racing and unbuilt graphs. Time is near
// linear in the number of nodes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/schedule.h"

namespace eagle::view {

struct TextOptions {
  // One a stage once the graph is built; empty before: the header then says "(not built)".
  std::vector<graph::StageSchedule> schedule;
  std::string backend = "cpu";
  bool recorded = false;
};

// UTF-8, lines end in '\n', no line ends in a blank. Past 64 MiB the picture ends with a line that says so.
std::string to_text(const graph::Graph& graph, const TextOptions& options = {});

}  // namespace eagle::view
