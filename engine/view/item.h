// Item: a node as it stands in a row: a box, a box in frames, or a frame around a laid-out body.
#pragma once

#include <vector>

#include "engine/graph/leaf_maker.h"
#include "engine/graph/meetings.h"
#include "engine/view/layout.h"

namespace eagle::view {

// What the scopes of one picture share.
struct Context {
  graph::LeafMaker leaves;
  graph::Work work;  // left for comparing views
  const graph::Graph& graph;
  Detail detail = Detail::lines;
  std::int64_t name_bytes_left = most_name_bytes;
  std::size_t edges_left = most_edges;  // these three: for details
  std::int64_t path_steps_left = most_path_steps;
  graph::Work detail_work{most_work};
};

// A conditional around one plain node is that node's box in a frame, and lines lead through the frame to
// the box. Any other conditional is a frame at which lines end.
struct Item {
  std::vector<Shape> frames;  // outermost first, around `core`
  Shape core;                 // where lines start and end
  Layout body;                // inside `core`, if that is a frame
  int width = 0;
  int height = 0;
  int box_line = 0;  // the line of its first box's upper border; items of a row align there
};

Item make_item(const graph::Node& node, Context& context);

// Makes the core wide enough for `ports` lines side by side.
void make_room(Item& item, int ports);

// Appends the shapes of `item`, and all of its body, to `layout`. Returns the index of the core.
std::uint32_t place(Item&& item, Point at, std::uint32_t stage, std::uint32_t leaf, Layout& layout);

// The layout of one scope: the graph's stages, or the body of a conditional.
Layout lay_out(const std::vector<graph::Stage>& stages, Context& context);

}  // namespace eagle::view
