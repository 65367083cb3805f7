// Races: two branches of one group, one of which writes what the other touches.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/given_up.h"
#include "engine/base/status.h"
#include "engine/graph/edges.h"
#include "engine/graph/graph.h"

namespace eagle::graph {

// Ok, or RACING_SIBLINGS for the first racing pair in node order: names both nodes (label and index),
// both planes, the hazard, and the two cures. Looks into conditional bodies too. GRAPH_LIMIT where one
// group's views meet in so many or so intricate ways that comparing them would take more than
// `race_work_limit` steps. CANCELLED where it is given up.
Status check_races(const Graph& graph, const GivenUp& given_up = {});

// A node in the refusal's sentence, with the plane that it races for.
struct RacingNode {
  std::uint32_t index = 0;
  std::string_view label;
  std::string_view plane;
};
// The sentence: who races with whom, for what, and the cures.
std::string race_sentence(const RacingNode& source, const RacingNode& destination, Hazard kind);

// Overlap tests and steps of their searches, for one group (graph_race_steps): a second or so.
constexpr std::int64_t race_work_limit = 5'000'000;

}  // namespace eagle::graph
