#include "engine/view/dot.h"

#include <cstddef>
#include <vector>

#include "engine/view/style.h"

namespace eagle::view {
namespace {

std::string dot_id_of(const Figure& figure, std::uint32_t shape) {
  return (figure.shapes[shape].frame ? "f" : "n") + std::to_string(shape);
}

class DotWriter {
public:
  explicit DotWriter(const Figure& figure) : figure_(figure), ends_(figure.shapes.size(), false) {
    for (const FigureEdge& edge : figure.edges) ends_[edge.source] = ends_[edge.destination] = true;
  }

  std::string run() {
    std::string caption = figure_.title;
    for (const std::string& note : figure_.notes) caption += "\n" + note;
    text_ = "digraph eagle {\n  graph [label=" + dot_quoted(caption) +
            ", labelloc=t, compound=true, fontname=\"monospace\"]\n"
            "  node [shape=box, fontname=\"monospace\", fontsize=12]\n"
            "  edge [fontname=\"monospace\", fontsize=10]\n";
    write_shapes();
    for (const FigureEdge& edge : figure_.edges) write_edge(edge);
    return std::move(text_) + "}\n";
  }

private:
  [[nodiscard]] std::string indent() const { return std::string(2 * (open_.size() + 1), ' '); }

  void close_until(std::int32_t parent) {
    while (!open_.empty() && open_.back() != parent) {
      open_.pop_back();
      text_ += indent() + "}\n";
    }
  }

  // A frame stands before what it holds, so the frames around a shape are those still open.
  void write_shapes() {
    std::size_t stage = 0;
    for (std::uint32_t i = 0; i < figure_.shapes.size(); ++i) {
      const FigureShape& shape = figure_.shapes[i];
      close_until(shape.parent);
      if (shape.parent < 0 && stage < figure_.stages.size() && shape.stage == stage) {
        text_ += "  // " + figure_.stages[stage++].text + "\n";
      }
      shape.frame ? open_frame(i) : write_node(i);
    }
    close_until(-1);
  }

  void write_node(std::uint32_t index) {
    const FigureShape& shape = figure_.shapes[index];
    text_ += indent() + dot_id_of(figure_, index) + " [label=" + dot_quoted(shape.text) +
             ", tooltip=" + dot_quoted(shape.title) + (shape.dashed ? ", style=dashed" : "") + "]\n";
  }

  void open_frame(std::uint32_t index) {
    const FigureShape& shape = figure_.shapes[index];
    text_ += indent() + "subgraph cluster_" + dot_id_of(figure_, index) + " {\n";
    open_.push_back(static_cast<std::int32_t>(index));
    text_ += indent() + "graph [label=" + dot_quoted(shape.text) + ", tooltip=" + dot_quoted(shape.title) +
             ", style=rounded]\n";
    if (ends_[index]) text_ += indent() + dot_id_of(figure_, index) + " [shape=point, style=invis]\n";
  }

  void write_edge(const FigureEdge& edge) {
    const bool from_frame = figure_.shapes[edge.source].frame;
    const bool to_frame = figure_.shapes[edge.destination].frame;
    const std::string source = dot_id_of(figure_, edge.source);
    const std::string destination = dot_id_of(figure_, edge.destination);
    text_ += "  " + source + " -> " + destination + " [label=" + dot_quoted(edge.text) +
             ", style=" + std::string(style_of(edge.kind).dot_style) + ", color=\"" +
             std::string(style_of(edge.kind).colour) + "\"" + ", tooltip=" + dot_quoted(edge.title) +
             (from_frame ? ", ltail=cluster_" + source : "") +
             (to_frame ? ", lhead=cluster_" + destination : "") + "]\n";
  }

  const Figure& figure_;
  std::vector<bool> ends_;  // by shape: whether an edge ends there
  std::string text_;
  std::vector<std::int32_t> open_;  // frames, outermost first
};

}  // namespace

std::string dot_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
      case '\\':
        out += '\\';
        out += c;
        break;
      case '\n':
        out += "\\n";
        break;
      case '&':  // else "&lt;" would show as "<"
        out += "&amp;";
        break;
      default:
        out += c;
    }
  }
  return out + "\"";
}

std::string to_dot(const Figure& figure) { return DotWriter(figure).run(); }

}  // namespace eagle::view
