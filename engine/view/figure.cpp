#include "engine/view/figure.h"

#include <algorithm>
#include <utility>

#include "engine/view/captions.h"
#include "engine/view/layout.h"
#include "engine/view/style.h"
#include "engine/view/width.h"

namespace eagle::view {
namespace {

constexpr int header_lines = 2;      // the title and an empty line
constexpr int label_in_title = 200;  // columns
constexpr int name_in_title = 80;
constexpr std::size_t hazards_in_title = 8;
constexpr std::size_t most_title_bytes = std::size_t{32} << 20;  // of all edges; the rest goes without

std::string in_title(const Shape& shape) {
  return cut(shape.label, label_in_title) + " (" + std::to_string(shape.leaf) + ")";
}

// "bytes 0 to 63 of 'x'", "32 bytes from 0 to 63 of 'x'", "at least 8 bytes from 0 on of 'x'"; without the
// name where the memory has none.
std::string bytes_of(const graph::Meeting& meeting) {
  const std::int64_t first = meeting.shared.first;
  const std::int64_t count = meeting.shared.count;
  const std::string counted = std::to_string(count) + (count == 1 ? " byte" : " bytes");
  const std::string range = std::to_string(first) + " to " + std::to_string(meeting.last);
  const std::string memory =
      meeting.memory.empty() ? "" : " of '" + cut(escaped(meeting.memory), name_in_title) + "'";
  if (!meeting.exact) return "at least " + counted + " from " + std::to_string(first) + " on" + memory;
  if (count == 1) return "byte " + std::to_string(first) + memory;
  if (count == meeting.last - first + 1) return "bytes " + range + memory;
  return counted + " from " + range + memory;
}

std::string hover_line(const graph::Meeting& meeting) {
  const std::string source = cut(escaped(meeting.source_plane), name_in_title);
  const std::string destination = cut(escaped(meeting.destination_plane), name_in_title);
  std::string line = std::string(graph::name_of(meeting.kind)) + " " + source;
  if (destination != source) line += " → " + destination;
  return line + ", " + bytes_of(meeting) + ": " + std::string(graph::meaning_of(meeting.kind));
}

std::string hover_title(const Figure& figure, const Connection& connection) {
  std::string title =
      figure.shapes[connection.source].title + " → " + figure.shapes[connection.destination].title;
  const std::size_t listed = std::min(connection.meetings.size(), hazards_in_title);
  for (std::size_t i = 0; i < listed; ++i) title += "\n" + hover_line(connection.meetings[i]);
  if (listed == 0) title += "\n" + cut(plane_names(connection.hazards), label_in_title);
  const std::size_t more = connection.meetings.size() - listed;
  if (more > 0) title += "\nand " + std::to_string(more) + " more";
  return title;
}

class Scale {
public:
  explicit Scale(int margin) : margin_(margin) {}

  // The middle of a cell.
  [[nodiscard]] FigurePoint at(Point cell) const {
    return {(margin_ + cell.x + 0.5) * character_width, (header_lines + cell.y + 0.5) * line_height};
  }
  // Where a text begins that is written from a cell on.
  [[nodiscard]] FigurePoint text_at(Point cell) const {
    return {(margin_ + cell.x) * character_width, at(cell).y};
  }

private:
  int margin_;
};

FigureShape shape_of(const Shape& shape, const Scale& scale) {
  const FigurePoint at = scale.at(shape.at);
  FigureShape out;
  out.x = at.x;
  out.y = at.y;
  out.width = (shape.width - 1) * character_width;
  out.height = (shape.height - 1) * line_height;
  out.frame = shape.kind == Shape::Kind::frame;
  out.dashed = shape.opaque;
  out.text = shape.text;
  out.title = in_title(shape);
  out.parent = shape.parent == no_shape ? -1 : static_cast<std::int32_t>(shape.parent);
  out.leaf = shape.leaf;
  out.stage = shape.stage;
  out.node = shape.node;
  return out;
}

// A line that ends at a frame, where its title stands, ends above the title.
void end_above_title(const FigureShape& frame, std::vector<FigurePoint>& points) {
  if (points.empty()) return;
  const double title = frame.x + title_offset;
  const double width = display_width(frame.text) * character_width;
  FigurePoint& end = points.back();
  if (end.x > title - character_width && end.x < title + width + character_width) end.y -= line_height / 2;
}

FigureEdge edge_of(const Figure& figure, const Connection& connection, const Scale& scale) {
  FigureEdge out{connection.source, connection.destination, drawn_kind(connection.hazards), {}, {}, {}};
  out.text = cut(plane_names(connection.hazards), edge_text_columns);
  for (const Point& point : connection.path) out.points.push_back(scale.at(point));
  const FigureShape& destination = figure.shapes[connection.destination];
  if (destination.frame) end_above_title(destination, out.points);
  return out;
}

// As many as are worth their own element, with titles while there is room for them.
void add_edges(const Layout& layout, const Scale& scale, Figure& figure) {
  const std::size_t edges = std::min(layout.connections.size(), most_edges);
  std::size_t title_bytes = 0;
  for (std::size_t i = 0; i < edges; ++i) {
    FigureEdge edge = edge_of(figure, layout.connections[i], scale);
    if (title_bytes < most_title_bytes) edge.title = hover_title(figure, layout.connections[i]);
    title_bytes += edge.title.size();
    figure.edges.push_back(std::move(edge));
  }
  if (edges < layout.connections.size()) {
    figure.notes.push_back("not drawn: " + std::to_string(layout.connections.size() - edges) +
                           " edges more than " + std::to_string(most_edges));
  }
}

}  // namespace

Figure make_figure(const graph::Graph& graph, const PictureOptions& options) {
  const Layout layout = lay_out(graph, Detail::edges);
  Figure figure;
  figure.title = header(graph, layout, options);
  figure.undrawn = undrawn(layout);
  figure.notes = notes(layout, options);
  if (layout.shapes.empty()) figure.notes.emplace_back("(empty)");

  constexpr int indent = 2;
  int margin = indent;
  for (const StageMark& mark : layout.stages) {
    margin = std::max(margin, indent + display_width(stage_caption(mark.stage, options)) + 1);
  }
  const Scale scale(margin);
  figure.margin = margin * character_width;
  for (const StageMark& mark : layout.stages) {
    figure.stages.push_back({scale.text_at({indent - margin, mark.y}), stage_caption(mark.stage, options)});
  }
  for (const Shape& shape : layout.shapes) figure.shapes.push_back(shape_of(shape, scale));
  for (const PlaneNames& names : layout.names) {
    figure.names.push_back({scale.text_at({names.at.x + 1, names.at.y}), names.text});  // beside the line
  }
  add_edges(layout, scale, figure);

  int columns = std::max(margin + layout.width + 2, indent + display_width(figure.title));
  for (const std::string& note : figure.notes) {
    columns =
        std::max(columns, std::min(indent + display_width(note), margin + layout.width + label_columns));
  }
  const std::size_t lines = figure.undrawn.size() + figure.notes.size();
  const int note_lines = lines == 0 ? 0 : static_cast<int>(lines) + 1;
  figure.width = (columns + indent) * character_width;
  figure.height = (header_lines + layout.height + note_lines + 1) * line_height;
  return figure;
}

}  // namespace eagle::view
