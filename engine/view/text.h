// The text picture of a graph.
//
// Rows are stages; drawn edges are the transitive reduction of the derived ones; the format is fixed
// (docs/design/pictures.md) and equal for every host. Works on racing and unbuilt graphs. Time is near
// linear in the number of nodes.
#pragma once

#include <string>

#include "engine/graph/graph.h"
#include "engine/view/options.h"

namespace eagle::view {

// UTF-8, lines end in '\n', no line ends in a blank. Past 64 MiB the picture ends with a line that says so.
std::string to_text(const graph::Graph& graph, const PictureOptions& options = {});

}  // namespace eagle::view
