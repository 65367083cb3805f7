// eaglectl's commands about graphs: which there are, and what they look like.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "eagle/client/session.h"
#include "engine/view/picture.h"

namespace eagle::ctl {

// What people call a graph by: "3f9c02aa.1", the beginning of its session's id and its number there.
std::string id_of(const GraphInfo& graph);

// The one graph with this name or id (of whose session any beginning will do). UNKNOWN_GRAPH where there is
// none, BAD_VALUE where there are several; both list the candidates.
StatusOr<GraphInfo> find_graph(const std::vector<GraphInfo>& graphs, std::string_view which);

// "--svg" and its like.
struct FormatFlag {
  std::string_view flag;
  view::Format format;
  std::string_view help;
};
constexpr FormatFlag format_flags[] = {
    {"--text", view::Format::text, "box drawing for a terminal; the default"},
    {"--svg", view::Format::svg, "an image that needs nothing outside itself"},
    {"--dot", view::Format::dot, "Graphviz"},
    {"--mermaid", view::Format::mermaid, "a flowchart for Markdown"},
};

// A table for people.
std::string table_of(const std::vector<GraphInfo>& graphs);

}  // namespace eagle::ctl
