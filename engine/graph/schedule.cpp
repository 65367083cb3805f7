#include "engine/graph/schedule.h"

#include <algorithm>
#include <variant>

namespace eagle::graph {
namespace {

bool is_small_launch(const Node& node) {
  const auto* const launch = std::get_if<KernelLaunch>(&node.kind);
  return launch != nullptr && launch->samples <= branch_tasks_max_samples;
}

}  // namespace

std::string_view name_of(StageSchedule schedule) {
  switch (schedule) {
    case StageSchedule::work_share:
      return "work_share";
    case StageSchedule::branch_tasks:
      return "branch_tasks";
  }
  return "unknown";
}

StageSchedule schedule_of(const Stage& stage, int team) {
  const bool tasks = stage.group && stage.branches.size() >= 2 && team >= 2 &&
                     std::all_of(stage.branches.begin(), stage.branches.end(), [](const Branch& branch) {
                       return std::all_of(branch.nodes.begin(), branch.nodes.end(), is_small_launch);
                     });
  return tasks ? StageSchedule::branch_tasks : StageSchedule::work_share;
}

std::vector<StageSchedule> schedule_of(const Graph& graph, int team) {
  std::vector<StageSchedule> out;
  out.reserve(graph.stages.size());
  for (const Stage& stage : graph.stages) out.push_back(schedule_of(stage, team));
  return out;
}

}  // namespace eagle::graph
