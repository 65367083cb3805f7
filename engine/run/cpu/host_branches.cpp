#include "engine/run/cpu/host_branches.h"

#include <exception>
#include <vector>

#include "engine/graph/schedule.h"
#include "engine/run/cpu/branches.h"

namespace eagle::exec {

std::string_view nameOf(Schedule schedule) {
  return graph::name_of(schedule == Schedule::branchTasks ? graph::StageSchedule::branch_tasks
                                                          : graph::StageSchedule::work_share);
}

Schedule resolve(const HostStage& stage, int team) {
  const graph::StageFacts facts{stage.branches, stage.largestSamples, stage.allPlans};
  return graph::schedule_of(facts, team) == graph::StageSchedule::branch_tasks ? Schedule::branchTasks
                                                                               : Schedule::workShare;
}

void runHostBranches(std::span<const HostBranch> branches, int team) {
  std::vector<std::exception_ptr> thrown(branches.size());
  run::run_branches(branches.size(), team, [&](std::size_t branch) {
    try {
      for (const std::function<void()>& step : branches[branch]) step();
    } catch (...) {
      thrown[branch] = std::current_exception();
    }
  });
  for (const std::exception_ptr& exception : thrown) {
    if (exception) std::rethrow_exception(exception);
  }
}

}  // namespace eagle::exec
