// Makes leaves: what each node of a list of stages touches.
#pragma once

#include <vector>

#include "engine/graph/edges.h"

namespace eagle::graph {

// For one graph, which must outlive the maker and the leaves. The roles of its kernels are worked out once.
class LeafMaker {
public:
  explicit LeafMaker(const Graph& graph);

  // The leaves of the graph's own stages, or of the body of a conditional (whose nodes are then leaves
  // themselves, numbered from 0).
  [[nodiscard]] std::vector<Leaf> leaves(const std::vector<Stage>& stages) const;

private:
  void add_leaves(const std::vector<Branch>& branches, std::uint32_t stage, std::vector<Leaf>& out) const;
  void add(const Node& node, Touches& touches) const;
  void add_kind(const KernelLaunch& launch, Touches& touches) const;
  void add_kind(const HostNode& host, Touches& touches) const;
  void add_kind(const Copy& copy, Touches& touches) const;
  void add_kind(const Conditional& conditional, Touches& touches) const;
  void add_kind(const Reduce& reduce, Touches& touches) const;
  void add_kind(const Group& group, Touches& touches) const;

  const Graph& graph_;
  std::vector<std::vector<kernel::Access>> accesses_;  // by kernel
};

}  // namespace eagle::graph
