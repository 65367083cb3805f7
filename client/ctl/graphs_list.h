// Graphs as people name them: which there are, which one is meant, and which of its nodes and kernels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/host_admin.h"
#include "eagle/client/session.h"
#include "engine/view/picture.h"

namespace eagle::ctl {

// What people call a graph by: "3f9c02aa.1", the beginning of its session's id and its number there.
std::string id_of(const GraphInfo& graph);

// The one graph with this name or id (of whose session any beginning will do). UNKNOWN_GRAPH where there is
// none, which names the nearest; BAD_VALUE where there are several; both list the candidates.
StatusOr<GraphInfo> find_graph(const std::vector<GraphInfo>& graphs, std::string_view which);

// The one of `names` that is meant, by name or index. UNKNOWN_NAME and BAD_VALUE as above; `what` is what
// they are: "node", "kernel".
StatusOr<std::size_t> find_name(std::string_view what, const std::vector<std::string>& names,
                                std::string_view which);

// "--svg" and its like.
struct FormatFlag {
  std::string_view flag;
  view::Format format;
  std::string_view help;
};
constexpr FormatFlag format_flags[] = {
    {"--text", view::Format::text, "Box drawing for a terminal; the default"},
    {"--svg", view::Format::svg, "An image that needs nothing outside itself"},
    {"--dot", view::Format::dot, "Graphviz"},
    {"--mermaid", view::Format::mermaid, "A flowchart for Markdown"},
};

// A table for people.
std::string table_of(const std::vector<GraphInfo>& graphs);

}  // namespace eagle::ctl
