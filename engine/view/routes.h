// Routes: which edges share a line, and which rows a line passes on its way.
//
// Between two rows, everything that still has to reach the same set of nodes runs as one net: k sources of
// the same d nodes make one bus line, not k*d lines. A net is always *all its tops before all its
// bottoms*, so no line can be read as an edge that is not there. A net whose nodes are further down passes
// the rows between in a lane of its own. No coordinates yet.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/view/ordering.h"

namespace eagle::view {

// The rows of one scope (a graph, or the body of a conditional). A stage has as many rows as its longest
// branch has nodes, and one column a branch; a group in a branch has its own branches' columns. They are
// numbered through all stages.
struct Grid {
  struct Leaf {
    std::uint32_t row = 0;
    std::uint32_t column = 0;
  };
  struct Row {
    std::uint32_t stage = 0;
    std::vector<std::uint32_t> leaves;  // left to right
  };
  std::vector<Leaf> leaves;
  std::vector<Row> rows;
  std::vector<std::uint32_t> last_row;  // by column
  std::vector<bool> impassable;         // by stage: too wide to lead a line around it
};

constexpr std::uint32_t outside = std::numeric_limits<std::uint32_t>::max();

// A vertical line that passes rows [first_row, last_row].
struct Lane {
  std::uint32_t first_row = 0;
  std::uint32_t last_row = 0;
  std::uint32_t column = outside;  // it passes beside the boxes of this column, or outside the whole stage
  bool falls = false;              // straight down below the last box of its column
};

// One end of a net: a node or a lane.
struct End {
  bool is_lane = false;
  std::uint32_t index = 0;  // of the leaf or lane
  std::uint32_t port = 0;   // bottoms that are leaves: which of its ports
};

struct Net {
  std::vector<End> tops;
  std::vector<End> bottoms;
};

struct Routes {
  std::vector<std::vector<Net>> gaps;  // by row: below it
  std::vector<Lane> lanes;
  std::vector<std::uint32_t> ports;  // by leaf: how many lines enter it
  std::vector<Order> left_out;       // no room for a line
};

Routes route(const Grid& grid, std::span<const Order> orders);

}  // namespace eagle::view
