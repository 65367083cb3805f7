#include "engine/graph/torn_reads.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "engine/graph/leaf_maker.h"
#include "engine/plane/overlap.h"
#include "engine/plane/torn_views.h"

namespace eagle::graph {
namespace {

// Views of one node under test; past it "they share a byte" is the safe answer.
constexpr std::int64_t search_steps = 1000;

using Marks = std::vector<TornMark>;

class ReadsWalk {
public:
  explicit ReadsWalk(const Graph& graph) : leaves_(graph) {}

  // Takes from `marks` what the stages surely write.
  void through(const std::vector<Stage>& stages, Marks& marks) {
    for (const Leaf& leaf : leaves_.leaves(stages)) {
      if (marks.empty() || read) return;
      if (const auto* conditional = as<Conditional>(*leaf.node)) {
        through(*conditional, *leaf.node, marks);
        continue;
      }
      look(leaf.node->label, leaf.touches.reads, marks);
      if (as<HostNode>(*leaf.node) == nullptr) write(leaf, marks);
    }
  }

  std::optional<TornRead> read;

private:
  void through(const Conditional& conditional, const Node& node, const Marks& marks) {
    std::vector<NamedView> guard{conditional.guard.count};
    if (conditional.guard.baseline) guard.push_back(*conditional.guard.baseline);
    look(node.label, guard, marks);
    Marks within = marks;
    through(conditional.body, within);
  }

  void look(const std::string& node, const std::vector<NamedView>& reads, const Marks& marks) {
    for (const NamedView& named : reads) {
      for (const TornMark& mark : marks) {
        if (read || !plane::overlap(named.view, mark.view, search_steps).overlaps) continue;
        read = TornRead{node, named.name, mark.number};
      }
    }
  }

  static bool same(const NamedView& a, const NamedView& b) { return a.name == b.name && a.view == b.view; }

  // An argument that is read as well may keep what it had.
  static void write(const Leaf& leaf, Marks& marks) {
    for (const NamedView& written : leaf.touches.writes) {
      const bool kept = std::any_of(leaf.touches.reads.begin(), leaf.touches.reads.end(),
                                    [&](const NamedView& other) { return same(written, other); });
      if (kept) continue;
      std::erase_if(marks, [&](const TornMark& mark) {
        return mark.view.plane == written.view.plane && plane::covers(written.view, mark.view);
      });
    }
  }

  const LeafMaker leaves_;
};

}  // namespace

TornOutlook torn_outlook(const Graph& graph, std::vector<TornMark> marks) {
  TornOutlook outlook;
  Marks left = marks;
  ReadsWalk walk(graph);
  walk.through(graph.stages, left);
  outlook.read = std::move(walk.read);
  if (outlook.read) return outlook;
  for (const TornMark& mark : marks) {
    const bool stays = std::any_of(left.begin(), left.end(),
                                   [&](const TornMark& other) { return other.number == mark.number; });
    if (!stays) outlook.rewritten.push_back(mark.number);
  }
  return outlook;
}

}  // namespace eagle::graph
