#include "engine/graph/schedule.h"

#include <variant>

namespace eagle::graph {
namespace {

StageFacts facts_of(const Stage& stage) {
  StageFacts facts;
  facts.branches = stage.group ? stage.branches.size() : 1;
  for_each_leaf(stage.branches, [&](const Node& node) {
    const auto* const launch = as<KernelLaunch>(node);
    facts.all_launches = facts.all_launches && launch != nullptr;
    if (launch != nullptr) facts.largest_samples = std::max(facts.largest_samples, launch->samples);
  });
  return facts;
}

}  // namespace

std::string_view name_of(StageSchedule schedule) {
  switch (schedule) {
    case StageSchedule::work_share:
      return "work_share";
    case StageSchedule::branch_tasks:
      return "branch_tasks";
    case StageSchedule::cuda_graph:
      return "cuda_graph";
    case StageSchedule::capture:
      return "capture";
    case StageSchedule::eager_stream:
      return "eager_stream";
    case StageSchedule::eager_host:
      return "eager_host";
    case StageSchedule::host_call:
      return "host_call";
    case StageSchedule::client_replay:
      return "client_replay";
    case StageSchedule::host_loop:
      return "host_loop";
  }
  return "unknown";
}

StageSchedule schedule_named(std::string_view name) {
  using enum StageSchedule;
  for (const StageSchedule one :
       {branch_tasks, cuda_graph, capture, eager_stream, eager_host, host_call, client_replay, host_loop}) {
    if (name == name_of(one)) return one;
  }
  return work_share;
}

ScheduleObstacle::Kind obstacle_of(const StageFacts& stage) {
  using Kind = ScheduleObstacle::Kind;
  if (stage.branches < 2) return Kind::not_a_group;
  if (!stage.all_launches) return Kind::not_a_launch;
  return stage.largest_samples > branch_tasks_max_samples ? Kind::too_many_samples : Kind::none;
}

ScheduleObstacle obstacle_of(const Stage& stage) {
  using Kind = ScheduleObstacle::Kind;
  const Kind kind = obstacle_of(facts_of(stage));
  if (kind != Kind::not_a_launch && kind != Kind::too_many_samples) return {kind, nullptr};
  ScheduleObstacle first{kind, nullptr};
  for_each_leaf(stage.branches, [&](const Node& node) {
    const auto* const launch = as<KernelLaunch>(node);
    const bool too_many = launch != nullptr && launch->samples > branch_tasks_max_samples;
    const bool found = kind == Kind::not_a_launch ? launch == nullptr : too_many;
    if (found && first.node == nullptr) first.node = &node;
  });
  return first;
}

StageSchedule schedule_of(const StageFacts& stage, int team) {
  const bool tasks = team >= 2 && obstacle_of(stage) == ScheduleObstacle::Kind::none;
  return tasks ? StageSchedule::branch_tasks : StageSchedule::work_share;
}

StageSchedule schedule_of(const Stage& stage, int team) { return schedule_of(facts_of(stage), team); }

std::vector<StageSchedule> schedule_of(const Graph& graph, int team) {
  std::vector<StageSchedule> out;
  out.reserve(graph.stages.size());
  for (const Stage& stage : graph.stages) out.push_back(schedule_of(stage, team));
  return out;
}

}  // namespace eagle::graph
