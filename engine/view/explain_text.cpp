#include "engine/view/explain_text.h"

#include <algorithm>
#include <cstddef>
#include <variant>
#include <vector>

#include "engine/view/width.h"

namespace eagle::view {
namespace {

using graph::Hazard;
using graph::Meeting;
using graph::NodeExplanation;
using graph::NodeName;
using graph::PairExplanation;
using graph::PlaneExplanation;
using graph::Relation;

constexpr int name_columns = 60;
constexpr std::size_t most_listed = 30;

std::string shown(const std::string& name) { return cut(escaped(name), name_columns); }
std::string quoted(const std::string& name) { return "'" + shown(name) + "'"; }
std::string quoted(const NodeName& node) { return quoted(node.label); }
std::string numbered(const NodeName& node) { return quoted(node) + " (" + std::to_string(node.index) + ")"; }

std::string padded(std::string text, int columns) {
  text.append(static_cast<std::size_t>(std::max(0, columns - display_width(text))), ' ');
  return text;
}

// "1 byte", "2,097,152 bytes".
std::string bytes(std::int64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits + (count == 1 ? " byte" : " bytes");
}

std::string memory(const std::string& label) {
  return label.empty() ? "private memory" : "memory " + quoted(label);
}

std::string more(std::size_t all, std::string_view indent) {
  if (all <= most_listed) return "";
  return std::string(indent) + "and " + std::to_string(all - most_listed) + " more\n";
}

std::string describe(const PairExplanation& pair, const Meeting& meeting) {
  const std::string first = meeting.kind == Hazard::war ? " reads " : " writes ";
  const std::string second = meeting.kind == Hazard::raw ? " reads " : " writes ";
  std::string text = "  " + std::string(graph::name_of(meeting.kind)) + "  " +
                     std::string(graph::meaning_of(meeting.kind)) + ": " + quoted(pair.source) + first +
                     shown(meeting.source_plane) + ", " + quoted(pair.destination) + second +
                     shown(meeting.destination_plane) + "\n";
  text += "       " + std::string(meeting.exact ? "" : "at least ") + bytes(meeting.shared.count) +
          " in common, the first at byte " + std::to_string(meeting.shared.first) + " of " +
          memory(meeting.memory) + "\n";
  text += "       (byte " + std::to_string(meeting.first_in_source) + " of the first one's " +
          shown(meeting.source_plane) + ", byte " + std::to_string(meeting.first_in_destination) +
          " of the second one's " + shown(meeting.destination_plane) + ")\n";
  if (!meeting.exact)
    text += "       The search was capped here: where it could not tell, it says that they share.\n";
  return text;
}

std::string heading(const PairExplanation& pair) {
  const std::string both = numbered(pair.source) + " and " + numbered(pair.destination);
  switch (pair.relation) {
    case Relation::ordered:
      return numbered(pair.source) + " → " + numbered(pair.destination) + ": the second waits for the first";
    case Relation::independent:
      return both + ": neither waits for the other";
    case Relation::siblings:
      return both + ": branches of one group, free to run at the same time";
    case Relation::racing:
      return both + ": branches of one group that race, so build refuses them";
  }
  return both;
}

std::string roles(const PlaneExplanation& plane) {
  if (plane.read && plane.written) return "reads, writes";
  if (plane.written) return "writes";
  return plane.read ? "reads" : "neither";
}

std::string planes(const std::vector<PlaneExplanation>& planes) {
  if (planes.empty()) return "  It touches no plane.\n";
  const std::size_t listed = std::min(planes.size(), most_listed);
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < listed; ++i) {
    const PlaneExplanation& plane = planes[i];
    rows.push_back({shown(plane.plane), roles(plane),
                    (plane.bytes.exact ? "" : "at least ") + bytes(plane.bytes.count),
                    "from byte " + std::to_string(plane.first) + " of " + memory(plane.memory), plane.why});
  }
  std::vector<int> widths(5, 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string text = "  planes\n";
  for (const auto& row : rows) {
    text += "    ";
    for (std::size_t i = 0; i + 1 < row.size(); ++i) text += padded(row[i], widths[i] + 2);
    text += row.back() + "\n";
  }
  return text + more(planes.size(), "    ");
}

// One line a neighbour, with every hazard between.
std::string edges(const NodeExplanation& node, const std::vector<graph::Edge>& edges, bool in) {
  struct EdgeLine {
    std::uint32_t neighbour = 0;
    std::string hazards;
  };
  std::vector<EdgeLine> lines;
  for (const graph::Edge& edge : edges) {
    const std::uint32_t neighbour = in ? edge.source : edge.destination;
    if (lines.empty() || lines.back().neighbour != neighbour) lines.push_back({neighbour, ""});
    std::string& hazards = lines.back().hazards;
    hazards +=
        (hazards.empty() ? "" : ", ") + std::string(graph::name_of(edge.kind)) + " " + shown(edge.plane);
  }
  const std::string title = in ? "  waits for" : "  is waited for by";
  if (lines.empty()) return title + " nothing\n";
  std::string text = title + "\n";
  const std::size_t listed = std::min(lines.size(), most_listed);
  for (std::size_t i = 0; i < listed; ++i) {
    const auto name = std::ranges::find(node.neighbours, lines[i].neighbour, &NodeName::index);
    text += "    " + numbered(*name) + ": " + lines[i].hazards + "\n";
  }
  return text + more(lines.size(), "    ");
}

// Line by line below the schedule.
std::string executed(const std::string& execution) {
  if (execution.empty()) return {};
  std::string text = "  runs as ";
  for (const char c : execution) {
    text += c;
    if (c == '\n') text += "          ";
  }
  return text + "\n";
}

}  // namespace

std::string to_text(const PairExplanation& pair) {
  std::string text = heading(pair) + "\n\n";
  if (pair.meetings.empty()) return text + "  They have no byte in common that either of them writes.\n";
  const std::size_t listed = std::min(pair.meetings.size(), most_listed);
  for (std::size_t i = 0; i < listed; ++i) text += describe(pair, pair.meetings[i]);
  text += more(pair.meetings.size(), "  ");
  text += pair.relation == Relation::racing ? "\n  The refusal:\n"
                                            : "\n  As branches of one group they would be refused:\n";
  return text + "  " + pair.refusal + "\n";
}

std::string to_text(const NodeExplanation& node) {
  std::string text = numbered(node.node) + ": " + node.kind + "\n\n  stage " + std::to_string(node.stage);
  text += node.schedule ? ", " + std::string(graph::name_of(*node.schedule)) : ", not built";
  text += ": " + node.schedule_why + "\n" + executed(node.execution) + planes(node.planes);
  return text + edges(node, node.in, true) + edges(node, node.out, false);
}

std::string to_text(const graph::Explanation& explanation) {
  return std::visit([](const auto& kind) { return to_text(kind); }, explanation);
}

}  // namespace eagle::view
