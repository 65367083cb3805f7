#include "engine/graph/leaf_maker.h"

#include <set>
#include <tuple>
#include <utility>
#include <variant>

namespace eagle::graph {
namespace {

auto key_of(const NamedView& named) {
  const plane::View& view = named.view;
  return std::tie(named.name, view.plane, view.offset, view.item_bytes, view.shape, view.strides);
}

// Nodes of one body often share planes; each counts once.
void drop_repeated(std::vector<NamedView>& views) {
  std::set<decltype(key_of(views.front()))> seen;
  std::vector<NamedView> kept;
  kept.reserve(views.size());  // `seen` refers to elements of `kept`, which therefore must not move
  for (NamedView& named : views) {
    if (seen.contains(key_of(named))) continue;
    kept.push_back(std::move(named));
    seen.insert(key_of(kept.back()));
  }
  views = std::move(kept);
}

}  // namespace

LeafMaker::LeafMaker(const Graph& graph) : graph_(graph) {
  accesses_.reserve(graph.kernels.size());
  for (const auto& kernel : graph.kernels) accesses_.push_back(kernel::accesses(*kernel));
}

std::vector<Leaf> LeafMaker::leaves(const std::vector<Stage>& stages) const {
  std::vector<Leaf> out;
  out.reserve(stages.size());
  for (std::uint32_t s = 0; s < stages.size(); ++s) add_leaves(stages[s].branches, s, out);
  return out;
}

// `Leaf::branch` is left to the outermost call, which writes it last.
void LeafMaker::add_leaves(const std::vector<Branch>& branches, std::uint32_t stage,
                           std::vector<Leaf>& out) const {
  const std::size_t begin = out.size();
  std::vector<std::uint32_t> ends;  // of the branches
  for (const Branch& branch : branches) {
    for (const Node& node : branch.nodes) {
      if (const auto* const group = as<Group>(node)) {
        add_leaves(group->branches, stage, out);
        continue;
      }
      Leaf& leaf = out.emplace_back(Leaf{&node, stage, 0, {}});
      add(node, leaf.touches);
      if (as<Conditional>(node) != nullptr) {
        drop_repeated(leaf.touches.reads);
        drop_repeated(leaf.touches.writes);
      }
    }
    ends.push_back(static_cast<std::uint32_t>(out.size()));
  }
  std::size_t leaf = begin;
  for (std::uint32_t b = 0; b < ends.size(); ++b) {
    for (; leaf < ends[b]; ++leaf) {
      out[leaf].branch = b;
      if (ends[b] < ends.back()) out[leaf].beside.push_back({ends[b], ends.back()});
    }
  }
}

void LeafMaker::add(const Node& node, Touches& touches) const {
  visit_kind(node, [&](const auto& kind) { add_kind(kind, touches); });
}

void LeafMaker::add_kind(const KernelLaunch& launch, Touches& touches) const {
  const std::vector<kernel::Access>& accesses = accesses_[launch.kernel];
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    if (!launch.arguments[i].view) continue;
    const std::string& name = graph_.kernels[launch.kernel]->arguments[i].name;
    if (accesses[i].read) touches.reads.push_back({name, *launch.arguments[i].view});
    if (accesses[i].written) touches.writes.push_back({name, *launch.arguments[i].view});
  }
}

void LeafMaker::add_kind(const HostNode& host, Touches& touches) const {
  touches.reads.insert(touches.reads.end(), host.reads.begin(), host.reads.end());
  touches.writes.insert(touches.writes.end(), host.writes.begin(), host.writes.end());
}

void LeafMaker::add_kind(const Reduce& reduce, Touches& touches) const {
  touches.reads.push_back(reduce.x);
  touches.writes.push_back(reduce.out);
}

void LeafMaker::add_kind(const Copy& copy, Touches& touches) const {
  touches.reads.push_back({std::string(copy_source_name), copy.source});
  if (copy.index) touches.reads.push_back(*copy.index);
  // The other rows of the stack keep what they had.
  if (copy.index && copy.into_stack())
    touches.reads.push_back({std::string(copy_destination_name), copy.destination});
  touches.writes.push_back({std::string(copy_destination_name), copy.destination});
}

void LeafMaker::add_kind(const Conditional& conditional, Touches& touches) const {
  touches.reads.push_back(conditional.guard.count);
  if (conditional.guard.baseline) touches.reads.push_back(*conditional.guard.baseline);
  if (conditional.iterations) touches.writes.push_back(*conditional.iterations);
  for (const Stage& stage : conditional.body) {
    for_each_leaf(stage.branches, [&](const Node& node) { add(node, touches); });
  }
}

void LeafMaker::add_kind(const Group& group, Touches& touches) const {
  for_each_leaf(group.branches, [&](const Node& node) { add(node, touches); });
}

}  // namespace eagle::graph
