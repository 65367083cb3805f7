#include "engine/view/mermaid.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/view/style.h"

namespace eagle::view {
namespace {

// Mermaid's own, unless whoever shows the picture raises them.
constexpr std::size_t mermaid_edges = 500;
constexpr std::size_t mermaid_characters = 50'000;

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

std::string number_of(char c) { return "#" + std::to_string(static_cast<unsigned char>(c)) + ";"; }

// Words that end a block, or that its first pass takes for a statement, wherever they stand.
bool starts_keyword(std::string_view rest) {
  constexpr std::string_view words[] = {"end", "style", "classdef", "linkstyle"};
  return std::ranges::any_of(words, [&](std::string_view word) {
    if (rest.size() < word.size()) return false;
    const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b; };
    const bool found = std::equal(word.begin(), word.end(), rest.begin(), same);
    return found && (word != "end" || rest.size() == 3 || !is_word(rest[3]));
  });
}

std::string mermaid_id_of(const Figure& figure, std::uint32_t shape) {
  return (figure.shapes[shape].frame ? "f" : "n") + std::to_string(shape);
}

class MermaidWriter {
public:
  explicit MermaidWriter(const Figure& figure) : figure_(figure) {}

  std::string run() {
    text_ = "flowchart TD\n  accTitle: " + figure_.title + "\n";
    write_shapes();
    for (const FigureEdge& edge : figure_.edges) write_edge(edge);
    write_classes();
    write_link_styles();
    for (const std::string& note : figure_.notes) text_ += "  %% " + mermaid_escaped(note) + "\n";
    if (figure_.edges.size() > mermaid_edges || text_.size() > mermaid_characters) {
      text_ += "  %% More than Mermaid draws unasked: raise maxEdges and maxTextSize where this is shown.\n";
    }
    return std::move(text_);
  }

private:
  [[nodiscard]] std::string indent() const { return std::string(2 * (open_.size() + 1), ' '); }

  void close_until(std::int32_t parent) {
    while (!open_.empty() && open_.back() != parent) {
      open_.pop_back();
      text_ += indent() + "end\n";
    }
  }

  // A frame stands before what it holds, so the frames around a shape are those still open.
  void write_shapes() {
    std::size_t stage = 0;
    for (std::uint32_t i = 0; i < figure_.shapes.size(); ++i) {
      const FigureShape& shape = figure_.shapes[i];
      close_until(shape.parent);
      if (shape.parent < 0 && stage < figure_.stages.size() && shape.stage == stage) {
        text_ += "  %% " + figure_.stages[stage++].text + "\n";
      }
      const std::string label = "[\"" + mermaid_escaped(shape.text) + "\"]";
      text_ += indent() + (shape.frame ? "subgraph " : "") + mermaid_id_of(figure_, i) + label + "\n";
      if (shape.frame) open_.push_back(static_cast<std::int32_t>(i));
    }
    close_until(-1);
  }

  void write_edge(const FigureEdge& edge) {
    text_ +=
        "  " + mermaid_id_of(figure_, edge.source) + " " + std::string(style_of(edge.kind).mermaid_arrow);
    if (!edge.text.empty()) text_ += "|\"" + mermaid_escaped(edge.text) + "\"|";
    text_ += " " + mermaid_id_of(figure_, edge.destination) + "\n";
  }

  void write_classes() {
    std::string opaque;
    std::string frames;
    for (std::uint32_t i = 0; i < figure_.shapes.size(); ++i) {
      std::string* const list = figure_.shapes[i].frame    ? &frames
                                : figure_.shapes[i].dashed ? &opaque
                                                           : nullptr;
      if (list != nullptr) *list += (list->empty() ? "" : ",") + mermaid_id_of(figure_, i);
    }
    if (!opaque.empty()) text_ += "  classDef opaque stroke-dasharray:5 3\n  class " + opaque + " opaque\n";
    if (!frames.empty()) text_ += "  classDef frame fill:none\n  class " + frames + " frame\n";
  }

  void write_link_styles() {
    if (figure_.edges.empty()) return;
    text_ += "  linkStyle default stroke:" + std::string(style_of(graph::Hazard::raw).colour) + "\n";
    for (const graph::Hazard kind : {graph::Hazard::war, graph::Hazard::waw}) {
      std::string links;
      for (std::size_t i = 0; i < figure_.edges.size(); ++i) {
        if (figure_.edges[i].kind == kind) links += (links.empty() ? "" : ",") + std::to_string(i);
      }
      if (links.empty()) continue;
      text_ += "  linkStyle " + links + " stroke:" + std::string(style_of(kind).colour) +
               ",stroke-dasharray:" + std::string(style_of(kind).dashes) + "\n";
    }
  }

  const Figure& figure_;
  std::string text_;
  std::vector<std::int32_t> open_;  // frames, outermost first
};

}  // namespace

std::string mermaid_escaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool after_word = i > 0 && is_word(text[i - 1]);
    const bool before_word = i + 1 < text.size() && is_word(text[i + 1]);
    const bool joins = (c == '_' || c == '.' || c == '-') && after_word && before_word;
    const bool plain = static_cast<unsigned char>(c) >= 0x80 || c == ' ' || c == ',' || c == ':' || joins;
    const bool word = is_word(c) && (after_word || !starts_keyword(text.substr(i)));
    out += plain || word ? std::string(1, c) : number_of(c);
  }
  return out;
}

std::string to_mermaid(const Figure& figure) { return MermaidWriter(figure).run(); }

}  // namespace eagle::view
