#include "client/ctl/graphs_list.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>

#include "client/ctl/output.h"
#include "engine/base/nearest.h"
#include "engine/view/width.h"

namespace eagle::ctl {
namespace {

constexpr std::size_t most_listed = 10;

// A name is somebody else's text in this terminal.
std::string shown_name(const GraphInfo& graph) {
  return graph.name.empty() ? "(no name)" : view::cut(view::escaped(graph.name), 40);
}

bool matches(const GraphInfo& graph, std::string_view which) {
  if (!graph.name.empty() && graph.name == which) return true;
  const std::size_t dot = which.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return false;
  return which.substr(dot + 1) == std::to_string(graph.graph) &&
         hex_text(graph.session).starts_with(which.substr(0, dot));
}

std::string cited(std::string_view text) { return "'" + view::cut(view::escaped(text), 80) + "'"; }

std::string listed(const std::vector<GraphInfo>& graphs) {
  std::string text;
  for (std::size_t i = 0; i < graphs.size() && i < most_listed; ++i) {
    text += (i == 0 ? "" : ", ") + id_of(graphs[i]) + " " + shown_name(graphs[i]);
  }
  if (graphs.size() > most_listed) text += " and " + std::to_string(graphs.size() - most_listed) + " more";
  return text;
}

}  // namespace

std::string id_of(const GraphInfo& graph) {
  return hex_text(graph.session).substr(0, 8) + "." + std::to_string(graph.graph);
}

StatusOr<GraphInfo> find_graph(const std::vector<GraphInfo>& graphs, std::string_view which) {
  std::vector<GraphInfo> found;
  std::ranges::copy_if(graphs, std::back_inserter(found),
                       [&](const GraphInfo& graph) { return matches(graph, which); });
  if (found.size() == 1) return found.front();
  const std::string asked = cited(which);
  if (found.empty()) {
    std::vector<std::string> names;
    for (const GraphInfo& graph : graphs) names.push_back(graph.name.empty() ? id_of(graph) : graph.name);
    const std::string* const near = nearest(which, names);
    return Status(Reason::unknown_graph,
                  "there is no graph " + asked + " that you may see; " +
                      (near == nullptr ? "the daemon has none to show"
                                       : "the nearest is " + cited(*near) + " of " + listed(graphs)));
  }
  return Status(Reason::bad_value,
                "several graphs are called " + asked + "; say which by its id: " + listed(found));
}

StatusOr<std::size_t> find_name(std::string_view what, const std::vector<std::string>& names,
                                std::string_view which) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == which) found.push_back(i);
  }
  if (found.size() == 1) return found.front();
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(which.data(), which.data() + which.size(), index);
  const bool number = error == std::errc() && end == which.data() + which.size() && !which.empty();
  if (found.empty() && number && index < names.size()) return index;
  const std::string kind(what);
  if (found.empty()) {
    const std::string* const near = nearest(which, names);
    return Status(Reason::unknown_name,
                  "there is no " + kind + " " + cited(which) + " in this graph; " +
                      (near == nullptr ? "it has none"
                                       : "the nearest of its " + plural(names.size(), kind) + " is " +
                                             std::to_string(near - names.data()) + " " + cited(*near)));
  }
  std::string indices;
  for (std::size_t i = 0; i < found.size() && i < most_listed; ++i)
    indices += (i == 0 ? "" : ", ") + std::to_string(found[i]);
  if (found.size() > most_listed) indices += ", ...";
  return Status(Reason::bad_value,
                "several are called " + cited(which) + "; say which " + kind + " by its index: " + indices);
}

std::string table_of(const std::vector<GraphInfo>& graphs) {
  Table table({{"ID"},
               {"NAME"},
               {"NODES", Table::Align::right},
               {"LAUNCHES", Table::Align::right},
               {"SCRATCH", Table::Align::right},
               {"TENANT", Table::Align::left, 24},
               {"CLIENT"}});
  for (const GraphInfo& graph : graphs) {
    table.add({id_of(graph), graph.name.empty() ? "(no name)" : graph.name, count_text(graph.nodes),
               count_text(graph.launches), bytes_text(graph.scratch.bytes), graph.tenant, graph.client});
  }
  return table.empty() ? "no graphs\n" : table.text();
}

}  // namespace eagle::ctl
