// Layout: where everything in the picture of a graph goes.
//
// The one layout engine; every format draws what it says, so they agree. Coordinates are character cells
// (a box is three lines high), which the text picture uses as they are and others scale. Rows are stages,
// top to bottom; lines only ever lead down. The rules are in docs/design/pictures.md. Pure; time is near
// linear in the nodes, their drawn edges and the size of the picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/edges.h"
#include "engine/graph/explain.h"
#include "engine/graph/graph.h"

namespace eagle::view {

struct Point {
  int x = 0;  // columns from the left
  int y = 0;  // lines from the top
  friend bool operator==(const Point&, const Point&) = default;
};

constexpr std::uint32_t no_shape = 0xFFFFFFFF;

// A box: one node. A frame: a conditional, around the shapes of its body (their `parent`).
struct Shape {
  enum class Kind : std::uint8_t { box, frame };
  Kind kind = Kind::box;
  Point at;        // of the upper left corner
  int width = 0;   // border included; odd
  int height = 0;  // a box: 3
  // A box: the label, cut, with its tag. A frame: "skip if guard", "repeat ≤ N". Safe to print.
  std::string text;
  std::string label;                // whole, safe to print
  bool opaque = false;              // a host node: dashed border
  std::uint32_t parent = no_shape;  // the frame around it
  std::uint32_t stage = 0;          // in its scope: the graph, or the frame's body
  std::uint32_t leaf = 0;           // in its scope
  const graph::Node* node = nullptr;
};

// A piece of a line, downwards or from left to right. Where two of one net meet they are joined; lines of
// different nets only ever cross.
struct Wire {
  Point from;
  Point to;
  std::uint32_t net = 0;
};

// Where a line leaves or enters the border of a shape.
struct Port {
  Point at;
  bool enters = false;
  std::uint32_t shape = 0;
};

// The planes that a node's lines carry: "x,y:WAR", under the node, from where its line leaves.
struct PlaneNames {
  Point at;
  std::string text;  // cut to fit; not empty
};

// One edge of the transitive reduction.
struct Connection {
  std::uint32_t source = 0;  // shapes
  std::uint32_t destination = 0;
  std::vector<graph::Edge> hazards;  // leaf indices of the scope
  bool drawn = true;                 // false: no room for its line, so the picture lists it
  // With `Detail::edges`, for the first `most_edges` of a picture; empty where its bounds are reached.
  std::vector<Point> path;               // of its line, from border to border; it turns at each point
  std::vector<graph::Meeting> meetings;  // the bytes behind it
};

struct StageMark {
  std::uint32_t stage = 0;
  int y = 0;  // the upper border of its boxes
};

struct Layout {
  int width = 0;
  int height = 0;
  std::uint32_t leaves = 0;  // of the outermost scope
  std::uint32_t nets = 0;
  bool ordered = true;            // false: too many views to compare, so some or all edges are missing
  bool named = true;              // false: names of planes are missing, because they were too long together
  std::vector<StageMark> stages;  // of the outermost scope, in order
  std::vector<Shape> shapes;      // a frame before what it holds
  std::vector<Wire> wires;
  std::vector<Port> ports;
  std::vector<PlaneNames> names;
  std::vector<Connection> connections;
};

constexpr int label_columns = 24;               // longer labels are cut
constexpr int box_gap = 3;                      // columns between neighbours in a row
constexpr int widest_centred = 400;             // wider rows start at the left, and no line leads around them
constexpr std::size_t most_lanes = 32;          // lines that pass one row
constexpr int most_tracks = 32;                 // bus lines between two rows
constexpr std::int64_t most_work = 20'000'000;  // comparisons of views, in one picture
constexpr std::size_t most_edges = 100'000;     // edges with their own path, in one picture
constexpr std::int64_t most_path_steps = 50'000'000;
constexpr std::int64_t most_name_bytes = std::int64_t{32} << 20;  // of planes, over all edges of one picture

// The text picture draws lines that edges share; other formats follow each edge.
enum class Detail : std::uint8_t { lines, edges };

// The shapes point into `graph`, which must outlive them. Any graph of fewer than 2^20 nodes.
Layout lay_out(const graph::Graph& graph, Detail detail = Detail::lines);

// What is written at a line that carries these hazards: each plane once a kind, "x,y:WAR". Safe to print.
std::string plane_names(const std::vector<graph::Edge>& hazards);

}  // namespace eagle::view
