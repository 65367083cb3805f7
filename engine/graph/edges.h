// Edges: what must come before what, derived from the bytes that nodes touch.
//
// Leaves are numbered in add order, branch by branch; a conditional is one leaf, whatever its body
// holds, and a group inside a branch is none: its nodes are. For every pair i < j that are not siblings (in
// different branches of one group): for each plane that i writes, RAW if it shares a byte with any plane that
// j reads, then WAW if with any that j writes; then for each plane that i reads, WAR if with any that j
// writes. One edge per pair, source plane name and kind; no edge for reads with reads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/graph.h"

namespace eagle::graph {

enum class Hazard : std::uint8_t { raw = 1, war = 2, waw = 3 };
std::string_view name_of(Hazard hazard);     // "RAW"
std::string_view meaning_of(Hazard hazard);  // "data flows", "must wait to overwrite", "same output"

struct Edge {
  std::uint32_t source = 0;  // leaf indices
  std::uint32_t destination = 0;
  std::string plane;  // the source's name for it
  Hazard kind = Hazard::raw;
  friend bool operator==(const Edge&, const Edge&) = default;
};

// What a leaf touches, by its own names. A conditional: its guard's cells (read), its body's planes and, of a
// loop, the counter (written).
struct Touches {
  std::vector<NamedView> reads;
  std::vector<NamedView> writes;
};

struct Leaf {
  const Node* node = nullptr;  // in the graph it was made from
  std::uint32_t stage = 0;     // index into Graph::stages
  std::uint32_t branch = 0;    // of the stage
  Touches touches;
  // Leaves [first, last) after it that are in other branches of a group around it: one range a group that has
  // such, innermost first, so the numbers ascend.
  struct Range {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  std::vector<Range> beside = {};
};

// Whether two leaves of one list are in different branches of one group, in either order.
bool siblings(const std::vector<Leaf>& leaves, std::uint32_t a, std::uint32_t b);

// All leaves in add order. They point into `graph`, which must outlive them.
std::vector<Leaf> leaves(const Graph& graph);

// The leaves of one list of stages of `graph`: its own, or the body of a conditional (whose nodes are then
// leaves themselves, numbered from 0). For many lists of one graph, `LeafMaker` (leaf_maker.h) looks at the
// kernels once.
std::vector<Leaf> leaves(const Graph& graph, const std::vector<Stage>& stages);

// Every edge, nothing reduced, ordered by (source, destination) and then as found. Only when asked for: the
// list can be quadratic in the number of leaves (four in-place nodes on one plane have 18 edges), so a
// process that serves others bounds the graphs that it does this for.
std::vector<Edge> edges(const Graph& graph);

}  // namespace eagle::graph
