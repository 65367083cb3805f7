// The picture as a Mermaid flowchart, to paste into Markdown.
#pragma once

#include <string>
#include <string_view>

#include "engine/view/figure.h"

namespace eagle::view {

// Nodes are n0, n1, ... and frames f0, f1, ..., by their index among the figure's shapes.
std::string to_mermaid(const Figure& figure);

// A text between quotes: every sign that Mermaid, its Markdown or HTML might read as more than itself is
// written as its number, "#35;".
std::string mermaid_escaped(std::string_view text);

}  // namespace eagle::view
