#include "engine/run/execution.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include "eagle/v1/run.pb.h"
#include "engine/kernel/names.h"
#include "engine/run/cpu/bound_group.h"

namespace eagle::run {
namespace {

// By launch, in the order of a walk through the graph.
class LaunchNames {
public:
  explicit LaunchNames(const graph::Graph& graph) {
    for (const graph::Stage& stage : graph.stages) add_leaves(stage.branches);
  }
  [[nodiscard]] const std::vector<ExecutedNode>& names() const { return names_; }
  [[nodiscard]] std::span<const ExecutedNode> of(const graph::Launches& launches) const {
    return std::span(names_).subspan(launches.first, launches.count);
  }

private:
  // The nodes of a group are leaves as if it were a stage.
  void add_leaves(const std::vector<graph::Branch>& branches) {
    for (const graph::Branch& branch : branches) {
      for (const graph::Node& node : branch.nodes) {
        if (const auto* group = graph::as<graph::Group>(node)) {
          add_leaves(group->branches);
        } else {
          add(node);
          ++leaf_;
        }
      }
    }
  }

  void add(const graph::Node& node) {
    if (graph::as<graph::KernelLaunch>(node) != nullptr) names_.push_back({leaf_, node.label});
    if (const auto* group = graph::as<graph::Group>(node)) {
      for (const graph::Branch& branch : group->branches) {
        for (const graph::Node& inner : branch.nodes) add(inner);
      }
    }
    if (const auto* conditional = graph::as<graph::Conditional>(node)) {
      for (const graph::Stage& stage : conditional->body) {
        for (const graph::Branch& branch : stage.branches) {
          for (const graph::Node& inner : branch.nodes) add(inner);
        }
      }
    }
  }

  std::uint32_t leaf_ = 0;
  std::vector<ExecutedNode> names_;
};

// 1234567 -> "1,234,567"
std::string with_commas(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string plural(std::int64_t count, const std::string& what) {
  return with_commas(count) + " " + what + (count == 1 ? "" : "s");
}

std::string shown(const ExecutedNode& node) {
  return std::to_string(node.index) + " " + kernel::quote_name(node.label);
}

// The nodes of a function beside those of a leaf: "1 'b', 2 'c'".
std::string others(const std::vector<ExecutedNode>& nodes, std::uint32_t leaf) {
  constexpr std::size_t most = 8;
  std::string text;
  std::size_t count = 0;
  for (const ExecutedNode& node : nodes) {
    if (node.index == leaf) continue;
    if (++count <= most) text += (text.empty() ? "" : ", ") + shown(node);
  }
  if (count > most) text += " and " + std::to_string(count - most) + " more";
  return text;
}

std::string sentence(const ExecutedGroup& group, const std::vector<ExecutedNode>& function,
                     std::uint32_t leaf) {
  const std::string beside = others(function, leaf);
  std::string text = beside.empty() ? "a function of its own" : "one function with " + beside;
  std::size_t nodes = 0;
  for (const std::vector<ExecutedNode>& one : group.functions) nodes += one.size();
  if (group.functions.size() > 1) {
    text += ", in a group of " + plural(static_cast<std::int64_t>(nodes), "node") + " and " +
            std::to_string(group.functions.size()) + " functions that takes " + with_commas(group.block) +
            " samples at a time";
  }
  return text + "; " + plural(group.samples, "sample") + " on " + plural(group.threads, "thread") + ", " +
         with_commas(group.bytes) + " bytes moved" + (group.functions.size() > 1 ? " by the group" : "");
}

}  // namespace

std::vector<ExecutedNode> launch_names(const graph::Graph& graph) { return LaunchNames(graph).names(); }

std::string_view name_of(graph::Fusion fusion) {
  switch (fusion) {
    case graph::Fusion::off:
      return "off";
    case graph::Fusion::blocks:
      return "blocks";
    case graph::Fusion::full:
      return "full";
  }
  return "?";
}

Execution execution_of(const graph::Graph& graph, const std::vector<std::vector<graph::Launches>>& launches,
                       const std::vector<std::vector<std::uint32_t>>& branches,
                       const std::vector<BoundGroup>& groups, graph::Fusion fusion, int team) {
  const LaunchNames names(graph);
  std::set<std::uint32_t> on_one_thread;
  for (const std::vector<std::uint32_t>& branch : branches)
    on_one_thread.insert(branch.begin(), branch.end());
  Execution made;
  made.fusion = fusion;
  std::vector<std::pair<std::uint32_t, std::size_t>> order;  // first launch, group
  for (std::size_t g = 0; g < groups.size(); ++g) order.emplace_back(launches[g].front().first, g);
  std::sort(order.begin(), order.end());
  std::size_t nodes = 0;
  std::size_t bytes = 0;
  for (const auto& [first, g] : order) {
    const BoundGroup& bound = groups[g];
    made.bytes += bound.bytes();
    for (const graph::Launches& function : launches[g]) {
      nodes += function.count;
      for (const ExecutedNode& one : names.of(function)) bytes += one.label.size();
    }
    if (nodes > most_reported_nodes || bytes > most_reported_bytes) {
      ++made.left_out;
      continue;
    }
    ExecutedGroup group;
    for (const graph::Launches& function : launches[g]) {
      const auto nodes_of = names.of(function);
      group.functions.emplace_back(nodes_of.begin(), nodes_of.end());
    }
    group.samples = bound.samples();
    group.block = bound.block();
    group.threads = on_one_thread.contains(static_cast<std::uint32_t>(g)) ? 1 : bound.threads(team);
    group.bytes = bound.bytes();
    made.groups.push_back(std::move(group));
  }
  return made;
}

std::string execution_of_leaf(const Execution& execution, std::uint32_t leaf) {
  constexpr std::size_t most = 4;
  std::string text;
  std::size_t count = 0;
  for (const ExecutedGroup& group : execution.groups) {
    for (const std::vector<ExecutedNode>& function : group.functions) {
      const bool here = std::any_of(function.begin(), function.end(),
                                    [&](const ExecutedNode& node) { return node.index == leaf; });
      if (here && ++count <= most) text += (text.empty() ? "" : "\n") + sentence(group, function, leaf);
    }
  }
  if (count > most) text += "\nand " + std::to_string(count - most) + " functions more";
  return text;
}

void describe(const Execution& execution, v1::Execution& message) {
  message.set_fusion(std::string(name_of(execution.fusion)));
  for (const ExecutedGroup& group : execution.groups) {
    v1::ExecutedGroup& out = *message.add_groups();
    for (const std::vector<ExecutedNode>& function : group.functions) {
      v1::ExecutedFunction& nodes = *out.add_functions();
      for (const ExecutedNode& node : function) {
        v1::ExecutedNode& one = *nodes.add_nodes();
        one.set_index(node.index);
        one.set_label(node.label);
      }
    }
    out.set_samples(group.samples);
    out.set_block(group.block);
    out.set_threads(group.threads);
    out.set_bytes(group.bytes);
  }
  message.set_left_out(execution.left_out);
  message.set_bytes(execution.bytes);
}

Execution execution_of(const v1::Execution& message) {
  Execution made;
  for (const graph::Fusion fusion : {graph::Fusion::off, graph::Fusion::blocks, graph::Fusion::full}) {
    if (message.fusion() == name_of(fusion)) made.fusion = fusion;
  }
  for (const v1::ExecutedGroup& in : message.groups()) {
    ExecutedGroup& group = made.groups.emplace_back();
    for (const v1::ExecutedFunction& function : in.functions()) {
      std::vector<ExecutedNode>& nodes = group.functions.emplace_back();
      for (const v1::ExecutedNode& node : function.nodes()) nodes.push_back({node.index(), node.label()});
    }
    group.samples = in.samples();
    group.block = in.block();
    group.threads = in.threads();
    group.bytes = in.bytes();
  }
  made.left_out = message.left_out();
  made.bytes = message.bytes();
  return made;
}

}  // namespace eagle::run
