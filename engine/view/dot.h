// The picture as a Graphviz graph.
#pragma once

#include <string>
#include <string_view>

#include "engine/view/figure.h"

namespace eagle::view {

// Nodes are n0, n1, ..., by their index among the figure's shapes; frames are clusters cluster_f0, ..., and
// an edge that ends at a frame is drawn to a point f0 in it, clipped at its border.
std::string to_dot(const Figure& figure);

// Between quotes. Line breaks stay line breaks.
std::string dot_quoted(std::string_view text);

}  // namespace eagle::view
