// Figure: everything that a picture shows, with coordinates, in no format yet.
//
// Made from the layout alone, by scaling character cells, so that it shows what the text picture shows.
// Mermaid, DOT and SVG are written from it, and programs that draw themselves (matplotlib) get it as it is.
// Lengths are CSS pixels, x to the right, y down. All texts are safe to print; none is longer than a bound.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/edges.h"
#include "engine/graph/graph.h"
#include "engine/view/options.h"

namespace eagle::view {

constexpr double character_width = 8;  // of a cell
constexpr double line_height = 18;
constexpr double title_offset = 2.5 * character_width;  // of a frame, from its left side
constexpr int edge_text_columns = 48;                   // longer ones are cut

struct FigurePoint {
  double x = 0;
  double y = 0;
};

struct FigureShape {
  double x = 0;  // of the upper left corner
  double y = 0;
  double width = 0;
  double height = 0;
  bool frame = false;   // a conditional around what it holds; else a node
  bool dashed = false;  // an opaque node
  std::string text;     // cut, with its tag; of a frame: "skip if guard", "repeat ≤ N"
  std::string title;    // whole, with the index
  std::int32_t parent = -1;
  std::uint32_t leaf = 0;             // in its scope: the graph, or the frame's body
  std::uint32_t stage = 0;            // there too
  const graph::Node* node = nullptr;  // of the graph that the figure was made of
};

struct FigureEdge {
  std::uint32_t source = 0;  // shapes
  std::uint32_t destination = 0;
  graph::Hazard kind = graph::Hazard::raw;  // that it is drawn as
  std::string text;                         // its planes: "x,y:WAR"
  std::string title;                        // kinds, planes by both names, bytes: a line each
  std::vector<FigurePoint> points;          // empty: no room for a line, so that `undrawn` tells of it
};

struct FigureText {
  FigurePoint at;  // the left end, half way up
  std::string text;
};

struct Figure {
  double width = 0;
  double height = 0;
  double margin = 0;  // where the graph begins; the stages stand left of it
  std::string title;
  std::vector<FigureText> stages;
  std::vector<FigureShape> shapes;  // a frame before what it holds
  std::vector<FigureEdge> edges;
  std::vector<FigureText> names;
  // Lines of text below: first what has no line here, which formats with a layout of their own draw all the
  // same, then what is true of every picture.
  std::vector<std::string> undrawn;
  std::vector<std::string> notes;
};

Figure make_figure(const graph::Graph& graph, const PictureOptions& options = {});

// A serialized v1.Figure.
std::string to_message(const Figure& figure);

}  // namespace eagle::view
