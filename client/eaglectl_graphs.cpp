#include "client/eaglectl_graphs.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>

#include "engine/view/width.h"

namespace eagle::ctl {
namespace {

constexpr std::size_t most_listed = 10;

std::string session_digits(const GraphInfo& graph) {
  char digits[20];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(graph.session));
  return digits;
}

// A name is somebody else's text in this terminal.
std::string shown_name(const GraphInfo& graph) {
  return graph.name.empty() ? "(no name)" : view::cut(view::escaped(graph.name), 40);
}

bool matches(const GraphInfo& graph, std::string_view which) {
  if (!graph.name.empty() && graph.name == which) return true;
  const std::size_t dot = which.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return false;
  return which.substr(dot + 1) == std::to_string(graph.graph) &&
         session_digits(graph).starts_with(which.substr(0, dot));
}

std::string listed(const std::vector<GraphInfo>& graphs) {
  std::string text;
  for (std::size_t i = 0; i < graphs.size() && i < most_listed; ++i) {
    text += (i == 0 ? "" : ", ") + id_of(graphs[i]) + " " + shown_name(graphs[i]);
  }
  if (graphs.size() > most_listed) text += " and " + std::to_string(graphs.size() - most_listed) + " more";
  return text;
}

std::string padded(std::string text, int columns) {
  text.append(static_cast<std::size_t>(std::max(1, columns - view::display_width(text))), ' ');
  return text;
}

}  // namespace

std::string id_of(const GraphInfo& graph) {
  return session_digits(graph).substr(0, 8) + "." + std::to_string(graph.graph);
}

StatusOr<GraphInfo> find_graph(const std::vector<GraphInfo>& graphs, std::string_view which) {
  std::vector<GraphInfo> found;
  std::ranges::copy_if(graphs, std::back_inserter(found),
                       [&](const GraphInfo& graph) { return matches(graph, which); });
  if (found.size() == 1) return found.front();
  const std::string asked = "'" + view::cut(view::escaped(which), 80) + "'";
  if (found.empty()) {
    return Status(Reason::unknown_graph,
                  "there is no graph " + asked + " that you may see" +
                      (graphs.empty() ? "; the daemon has none to show" : "; there are " + listed(graphs)));
  }
  return Status(Reason::bad_value,
                "several graphs are called " + asked + "; say which by its id: " + listed(found));
}

std::string table_of(const std::vector<GraphInfo>& graphs) {
  if (graphs.empty()) return "no graphs\n";
  std::string text =
      padded("ID", 14) + padded("NAME", 24) + padded("NODES", 8) + padded("LAUNCHES", 10) + "CLIENT\n";
  for (const GraphInfo& graph : graphs) {
    text += padded(id_of(graph), 14) + padded(shown_name(graph), 24) +
            padded(std::to_string(graph.nodes), 8) + padded(std::to_string(graph.launches), 10) +
            view::cut(view::escaped(graph.client), 40) + "\n";
  }
  return text;
}

}  // namespace eagle::ctl
