#include "engine/view/captions.h"

#include <cstddef>
#include <span>
#include <variant>

#include "engine/view/width.h"

namespace eagle::view {
namespace {

constexpr std::size_t most_undrawn_bytes = std::size_t{1} << 20;

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// On the CPU a stream node runs like any other; who asked for a stream should know.
void list_streams(const Layout& layout, std::vector<std::string>& lines) {
  for (const Shape& shape : layout.shapes) {
    if (shape.kind != Shape::Kind::box) continue;
    const auto* const host = graph::as<graph::HostNode>(*shape.node);
    if (host == nullptr || host->tier != graph::HostTier::stream) continue;
    lines.push_back(shape.label + " [stream: cpu runs eagerly]");
  }
}

// Those in branches included, those in bodies not.
std::size_t groups_in(std::span<const graph::Branch> branches) {
  std::size_t groups = 0;
  for (const graph::Branch& branch : branches) {
    for (const graph::Node& node : branch.nodes) {
      const auto* const group = graph::as<graph::Group>(node);
      if (group != nullptr) groups += 1 + groups_in(group->branches);
    }
  }
  return groups;
}

}  // namespace

std::string header(const graph::Graph& graph, const Layout& layout, const PictureOptions& options) {
  std::size_t groups = 0;
  for (const graph::Stage& stage : graph.stages) groups += (stage.group ? 1 : 0) + groups_in(stage.branches);
  const std::string backend = options.schedule.empty() ? "(not built)" : escaped(options.backend);
  return "eagle.Graph  " + counted(layout.leaves, "node") + " · " + counted(groups, "group") +
         " · backend: " + backend + (options.recorded ? " · recorded" : "");
}

std::string stage_caption(std::uint32_t stage, const PictureOptions& options) {
  std::string text = "stage " + std::to_string(stage);
  if (stage < options.schedule.size()) text += " " + std::string(graph::name_of(options.schedule[stage]));
  return text;
}

std::vector<std::string> undrawn(const Layout& layout) {
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  std::size_t more = 0;
  for (const Connection& connection : layout.connections) {
    if (connection.drawn) continue;
    if (bytes > most_undrawn_bytes) {
      ++more;
      continue;
    }
    lines.push_back("not drawn: " + numbered(layout.shapes[connection.source]) + " → " +
                    numbered(layout.shapes[connection.destination]) + ": " + plane_names(connection.hazards));
    bytes += lines.back().size();
  }
  if (more > 0) lines.push_back("not drawn: " + counted(more, "edge") + " more");
  return lines;
}

std::vector<std::string> notes(const Layout& layout, const PictureOptions& options) {
  std::vector<std::string> lines;
  if (!layout.ordered) lines.emplace_back("(edges are missing: too many planes to compare for a picture)");
  if (!layout.named) lines.emplace_back("(names are missing: those of planes are too long together)");
  if (!options.schedule.empty() && options.backend == "cpu") list_streams(layout, lines);
  return lines;
}

std::string numbered(const Shape& shape) { return shape.label + " (" + std::to_string(shape.leaf) + ")"; }

}  // namespace eagle::view
