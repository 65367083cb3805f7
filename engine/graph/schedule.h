// The schedule: how each stage of a CPU graph runs. A public fact, by a fixed rule.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/graph.h"

namespace eagle::graph {

enum class StageSchedule : std::uint8_t { work_share, branch_tasks };
std::string_view name_of(StageSchedule schedule);  // "work_share"

// eagle._core.BRANCH_TASKS_MAX_SAMPLES
constexpr std::int64_t branch_tasks_max_samples = 4096;

// branch_tasks iff the stage is a group of at least two branches, the team has at least two threads, no
// node has more than `branch_tasks_max_samples` samples, and every node is a kernel launch.
StageSchedule schedule_of(const Stage& stage, int team);
// One a stage.
std::vector<StageSchedule> schedule_of(const Graph& graph, int team);

}  // namespace eagle::graph
