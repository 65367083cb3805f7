// Execution: what the executor made of a graph. A report, for people; nothing is decided by it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/run_plan.h"
#include "engine/graph/sample_groups.h"

namespace eagle::v1 {
class Execution;
}

namespace eagle::codegen {
class Code;
}

namespace eagle::run {

class BoundGroup;  // engine/run/cpu/bound_group.h

std::string_view name_of(graph::Fusion fusion);  // "off", "blocks", "full"

struct ExecutedNode {
  std::uint32_t index = 0;  // of the leaf; nodes of a conditional's body have the conditional's
  std::string label;
  friend bool operator==(const ExecutedNode&, const ExecutedNode&) = default;
};

// Launches that run block of samples by block of samples.
struct ExecutedGroup {
  std::vector<std::vector<ExecutedNode>> functions;  // by compiled function, in order: its nodes
  std::int64_t samples = 0;
  std::int64_t block = 0;  // samples; all of them where there is one function
  int threads = 1;         // that run it at the same time
  std::int64_t bytes = 0;  // loaded from and stored to planes of samples by one run
  friend bool operator==(const ExecutedGroup&, const ExecutedGroup&) = default;
};

struct Execution {
  graph::Fusion fusion = graph::Fusion::full;
  std::vector<ExecutedGroup> groups;  // in the order of the graph; at most `most_reported_nodes` nodes in all
  std::uint64_t left_out = 0;         // groups beyond
  std::int64_t bytes = 0;             // of a launch in which every node runs once, groups left out included
  friend bool operator==(const Execution&, const Execution&) = default;
};
constexpr std::size_t most_reported_nodes = 10'000;
constexpr std::size_t most_reported_bytes = 1 << 20;  // of the labels of nodes that are listed

// A function that was compiled for a graph: which nodes it is, and of what.
struct CompiledFunction {
  std::vector<ExecutedNode> nodes;
  std::shared_ptr<const kernel::Kernel> kernel;  // of one node its own; of several what they were fused to
  std::shared_ptr<const codegen::Code> code;
};

// By launch, in the order of a walk through the graph.
std::vector<ExecutedNode> launch_names(const graph::Graph& graph);

// `launches`, by group and function, are those of `groups`; each of `branches`, groups in order, runs on one
// thread.
Execution execution_of(const graph::Graph& graph, const std::vector<std::vector<graph::Launches>>& launches,
                       const std::vector<std::vector<std::uint32_t>>& branches,
                       const std::vector<BoundGroup>& groups, graph::Fusion fusion, int team);

// How the leaf runs, in a few words; empty where no launch of it was reported.
std::string execution_of_leaf(const Execution& execution, std::uint32_t leaf);

void describe(const Execution& execution, v1::Execution& message);
Execution execution_of(const v1::Execution& message);

}  // namespace eagle::run
