// A graph as a reverse pass looks at it: every node with what it touches, in the order in which a launch runs
// them, and which bytes still hold after a launch what a node has read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/graph/edges.h"
#include "engine/graph/graph.h"
#include "engine/plane/view.h"

namespace eagle::diff {

// A node, and the nodes of its body where it is a conditional. Groups are gone: their branches stand one
// after the other, which is an order that they may run in.
struct Step {
  const graph::Node* node = nullptr;
  std::uint32_t number = 0;  // in the order of a walk through the graph, each before its body
  std::uint32_t since = 0;   // the number of the outermost loop around it (or that it is), else its own
  std::uint32_t leaf = 0;    // of the graph: that it is, or lies in
  std::uint32_t launch = 0;  // of a kernel launch: index into RunPlan::launches
  std::uint32_t loop = 0;    // of a repeat_while, as reports count them
  std::uint32_t host = 0;    // of a host node, in the order of the walk
  // What it touches itself; of a conditional its guard's cells and its counter. A host node also reads and
  // writes its cursor (Program::cursors).
  std::vector<graph::NamedView> reads;
  std::vector<graph::NamedView> writes;
  std::vector<Step> body;

  template <typename Kind>
  [[nodiscard]] const Kind* as() const {
    return graph::as<Kind>(*node);
  }
  [[nodiscard]] bool is_loop() const {
    const auto* const conditional = as<graph::Conditional>();
    return conditional != nullptr && conditional->max_iterations > 0;
  }
};

// Bytes [first, last) of a plane: what views that meet, directly or through others, reach over together.
struct Block {
  std::uint32_t plane = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
  [[nodiscard]] std::int64_t bytes() const { return last - first; }
};

class Program {
public:
  // Refers to `graph`, which must outlive it.
  explicit Program(const graph::Graph& graph);

  [[nodiscard]] const graph::Graph& graph() const { return graph_; }
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  [[nodiscard]] std::uint32_t count() const { return count_; }  // of steps, bodies included
  [[nodiscard]] std::uint32_t loops() const { return loops_; }
  [[nodiscard]] std::uint32_t hosts() const { return hosts_; }
  [[nodiscard]] std::uint32_t leaves() const { return leaves_; }

  // A plane that the graph does not have: int64 element h of it counts the calls of host node h.
  [[nodiscard]] std::uint32_t cursors() const { return static_cast<std::uint32_t>(graph_.planes.size()); }

  // Views without elements are in no block.
  static constexpr std::size_t no_block = ~std::size_t{0};
  [[nodiscard]] std::size_t block_of(const plane::View& view) const;
  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  // Where nothing holds between launches.
  [[nodiscard]] bool is_scratch(std::size_t block) const;
  [[nodiscard]] bool is_cursor(std::size_t block) const { return blocks_[block].plane == cursors(); }

  // Whether the bytes of `view` hold after a launch what `step` has read there: neither it nor anything after
  // it, nor, in a loop, anything of the loop, writes one of them.
  [[nodiscard]] bool intact(const plane::View& view, const Step& step) const;

  // Each step, bodies included, in the order of the walk.
  void for_each(const std::function<void(const Step&)>& visit) const;
  static void for_each(std::span<const Step> steps, const std::function<void(const Step&)>& visit);

private:
  struct Writing {
    std::uint32_t number = 0;
    plane::View view;
  };
  void walk(const std::vector<graph::Branch>& branches, bool outermost, std::uint32_t since,
            std::vector<Step>& out);
  Step step(const graph::Node& node, bool outermost, std::uint32_t since);
  void touch(Step& step, const std::vector<kernel::Access>& accesses) const;
  void find_blocks();

  const graph::Graph& graph_;
  std::vector<std::vector<kernel::Access>> accesses_;  // by kernel
  std::vector<Step> steps_;
  std::vector<Block> blocks_;                   // by plane and first byte
  std::vector<std::vector<Writing>> writings_;  // by block
  std::uint32_t count_ = 0;
  std::uint32_t launches_ = 0;
  std::uint32_t loops_ = 0;
  std::uint32_t hosts_ = 0;
  std::uint32_t leaves_ = 0;
};

bool is_real(const plane::View& view);

}  // namespace eagle::diff
