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
  for (std::uint32_t s = 0; s < stages.size(); ++s) {
    for (std::uint32_t b = 0; b < stages[s].branches.size(); ++b) {
      for (const Node& node : stages[s].branches[b].nodes) {
        Leaf leaf{&node, s, b, {}};
        add(node, leaf.touches);
        if (std::holds_alternative<Conditional>(node.kind)) {
          drop_repeated(leaf.touches.reads);
          drop_repeated(leaf.touches.writes);
        }
        out.push_back(std::move(leaf));
      }
    }
  }
  return out;
}

void LeafMaker::add(const Node& node, Touches& touches) const {
  std::visit([&](const auto& kind) { add_kind(kind, touches); }, node.kind);
}

void LeafMaker::add_kind(const KernelLaunch& launch, Touches& touches) const {
  const std::vector<kernel::Access>& accesses = accesses_[launch.kernel];
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    if (!launch.arguments[i].view) continue;
    const NamedView named{graph_.kernels[launch.kernel]->arguments[i].name, *launch.arguments[i].view};
    if (accesses[i].read) touches.reads.push_back(named);
    if (accesses[i].written) touches.writes.push_back(named);
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
  touches.writes.push_back({std::string(copy_destination_name), copy.destination});
}

void LeafMaker::add_kind(const Conditional& conditional, Touches& touches) const {
  touches.reads.push_back(conditional.guard.count);
  if (conditional.guard.baseline) touches.reads.push_back(*conditional.guard.baseline);
  for (const Stage& stage : conditional.body) {
    for (const Branch& branch : stage.branches) {
      for (const Node& node : branch.nodes) add(node, touches);
    }
  }
}

}  // namespace eagle::graph
