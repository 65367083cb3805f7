// The schedule: how each stage of a CPU graph runs. A public fact, by a fixed rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/graph.h"

namespace eagle::graph {

// On a GPU a stage is part of a CUDA graph, with what callables of this process were captured to (`capture`)
// or without; or it is the host's: a callable of the client, given values (`eager_host` where it asks for
// that); one that enqueues work of its own there, of this process (`eager_stream`) or another one, which may
// also replay a graph (`client_replay`); or a conditional that the device cannot decide.
enum class StageSchedule : std::uint8_t {
  work_share,
  branch_tasks,
  cuda_graph,
  capture,
  eager_stream,
  eager_host,
  host_call,
  client_replay,
  host_loop
};
std::string_view name_of(StageSchedule schedule);  // "work_share"
// `work_share` for a name that is none.
StageSchedule schedule_named(std::string_view name);

// eagle._core.BRANCH_TASKS_MAX_SAMPLES
constexpr std::int64_t branch_tasks_max_samples = 4096;

// What the rule looks at.
struct StageFacts {
  std::size_t branches = 1;
  std::int64_t largest_samples = 0;  // of any node
  bool all_launches = true;          // every node is a kernel launch
};

// branch_tasks iff there are at least two branches, the team has at least two threads, no node has more than
// `branch_tasks_max_samples` samples, and every node is a kernel launch.
StageSchedule schedule_of(const StageFacts& stage, int team);
// The same for a stage of a graph; one that is no group has one branch.
StageSchedule schedule_of(const Stage& stage, int team);
// What keeps a stage from branch_tasks, first of all; `node` where it is a node's doing.
struct ScheduleObstacle {
  enum class Kind : std::uint8_t { none, not_a_group, not_a_launch, too_many_samples };
  Kind kind = Kind::none;  // none: only a team of one thread could
  const Node* node = nullptr;
};
ScheduleObstacle obstacle_of(const Stage& stage);
ScheduleObstacle::Kind obstacle_of(const StageFacts& stage);
// One a stage.
std::vector<StageSchedule> schedule_of(const Graph& graph, int team);

}  // namespace eagle::graph
