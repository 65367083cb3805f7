#include "engine/graph/races.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "engine/graph/edges.h"
#include "engine/graph/leaf_maker.h"
#include "engine/graph/meetings.h"
#include "engine/kernel/names.h"

namespace eagle::graph {
namespace {

using kernel::quote_name;

// The leaves of one group: positions in `leaves` are those of the group, `first` numbers its first leaf.
struct Siblings {
  std::vector<Leaf> leaves;
  std::uint32_t first = 0;
};

struct Race {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint32_t rank = 0;
  std::uint32_t destination_index = 0;
  std::uint32_t source_index = 0;
  Hazard kind = Hazard::raw;

  friend bool operator<(const Race& a, const Race& b) {
    return std::tie(a.source, a.destination, a.rank, a.destination_index) <
           std::tie(b.source, b.destination, b.rank, b.destination_index);
  }
};

// The first of these touches that is by a leaf beside the source: its groups' other branches, which may lie
// further out the later they come.
const Touch* first_beside(const Siblings& siblings, std::uint32_t source, const std::vector<Touch>& touches) {
  for (const Leaf::Range& beside : siblings.leaves[source].beside) {
    const auto found =
        std::lower_bound(touches.begin(), touches.end(), beside.first - siblings.first,
                         [](const Touch& touch, std::uint32_t first) { return touch.leaf < first; });
    if (found != touches.end() && found->leaf < beside.last - siblings.first) return &*found;
  }
  return nullptr;
}

// Keeps the first race in node order. Sources ascend, so the first of them that races with anything ends
// the look at this side.
void keep_first(const Siblings& siblings, const Side& side, std::optional<Race>& best) {
  for (const Touch& source : *side.sources) {
    if (best && source.leaf > best->source) return;
    const Touch* const other = first_beside(siblings, source.leaf, *side.destinations);
    if (other == nullptr) continue;
    const Race race{source.leaf,  other->leaf,  rank(siblings.leaves[source.leaf], side.kind, source.index),
                    other->index, source.index, side.kind};
    if (!best || race < *best) best = race;
  }
}

std::string node_name(std::uint32_t index, std::string_view label) {
  return "node " + std::to_string(index) + " " + quote_name(label);
}

std::string node_name(const Siblings& siblings, std::uint32_t leaf) {
  return node_name(siblings.first + leaf, siblings.leaves[leaf].node->label);
}

Status describe(const Siblings& siblings, const Race& race, const std::string& where) {
  const Leaf& source = siblings.leaves[race.source];
  const Leaf& destination = siblings.leaves[race.destination];
  const Touches& before = source.touches;
  const Touches& after = destination.touches;
  const auto& source_views = race.kind == Hazard::war ? before.reads : before.writes;
  const auto& destination_views = race.kind == Hazard::raw ? after.reads : after.writes;
  return {Reason::racing_siblings,
          where + race_sentence({siblings.first + race.source, source.node->label,
                                 source_views[race.source_index].name},
                                {siblings.first + race.destination, destination.node->label,
                                 destination_views[race.destination_index].name},
                                race.kind)};
}

Status check_group(const Siblings& siblings, const std::string& where, const GivenUp& given_up) {
  EAGLE_RETURN_IF_ERROR(still_wanted(given_up));
  std::optional<Race> first;
  Work work{race_work_limit};
  const std::vector<Place> places = places_of(siblings.leaves);
  const bool compared = for_each_meeting(places, work, [&](const Place& a, const Place& b) {
    for (const Side& side : sides_of(a, b)) {
      keep_first(siblings, side, first);
      work.left -= static_cast<std::int64_t>(side.sources->size());
    }
  });
  if (!compared) {
    return {Reason::graph_limit,
            where + "the group of " + node_name(siblings, 0) + " has planes that meet in more ways than " +
                std::to_string(race_work_limit) +
                " steps can compare (graph_race_steps); use fewer branches, or plainer views"};
  }
  return first ? describe(siblings, *first, where) : Status();
}

class RaceCheck {
public:
  RaceCheck(const Graph& graph, const GivenUp& given_up) : maker_(graph), given_up_(given_up) {}

  [[nodiscard]] Status check(const std::vector<Stage>& stages, const std::string& where) const {
    // Most lists of stages hold no group, and need no leaves.
    const bool groups = std::any_of(stages.begin(), stages.end(), [](const Stage& one) { return one.group; });
    std::vector<Leaf> all = groups ? maker_.leaves(stages) : std::vector<Leaf>();
    std::uint32_t first = 0;
    for (const Stage& stage : stages) {
      const std::uint32_t count = nodes_in(stage);
      if (stage.group) {
        const auto begin = std::make_move_iterator(all.begin() + first);
        EAGLE_RETURN_IF_ERROR(check_group({{begin, begin + count}, first}, where, given_up_));
      }
      EAGLE_RETURN_IF_ERROR(check_bodies(stage, first, where));
      first += count;
    }
    return {};
  }

private:
  static std::uint32_t nodes_in(const Stage& stage) {
    std::uint32_t count = 0;
    for_each_leaf(stage.branches, [&](const Node&) { ++count; });
    return count;
  }

  [[nodiscard]] Status check_bodies(const Stage& stage, std::uint32_t index, const std::string& where) const {
    Status status;
    for_each_leaf(stage.branches, [&](const Node& node) {
      const auto* const conditional = as<Conditional>(node);
      if (conditional != nullptr && status.ok()) {
        status = check(conditional->body, where + "in the body of " + node_name(index, node.label) + ": ");
      }
      ++index;
    });
    return status;
  }

  LeafMaker maker_;
  const GivenUp& given_up_;
};

}  // namespace

std::string race_sentence(const RacingNode& source, const RacingNode& destination, Hazard kind) {
  return node_name(source.index, source.label) + " and " + node_name(destination.index, destination.label) +
         " are in different branches of one group and race (" + std::string(name_of(kind)) + ", " +
         std::string(meaning_of(kind)) + "): the first " + (kind == Hazard::war ? "reads " : "writes ") +
         quote_name(source.plane) + ", the second " + (kind == Hazard::raw ? "reads " : "writes ") +
         quote_name(destination.plane) +
         ", and these share bytes; give each branch a plane of its own, or put both nodes in one branch";
}

Status check_races(const Graph& graph, const GivenUp& given_up) {
  return RaceCheck(graph, given_up).check(graph.stages, "");
}

}  // namespace eagle::graph
