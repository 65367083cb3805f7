// HostBranches: the rule by which a stage of branches runs on the CPU, and the runner, for programs of their
// own.
//
//   const auto how = eagle::exec::resolve({.branches = 8, .largestSamples = 1024}, team);
//   if (how == eagle::exec::Schedule::branchTasks) eagle::exec::runHostBranches(branches, team);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace eagle::exec {

enum class Schedule { workShare, branchTasks };
std::string_view nameOf(Schedule schedule);  // "work_share", "branch_tasks", as graphs say it

struct HostStage {
  std::size_t branches = 1;
  std::int64_t largestSamples = 0;  // of any node: each counts by itself, not their sum
  bool allPlans = true;             // every node is a plan launch
};

// The rule of every graph: branchTasks for at least two branches of plans of at most 4,096 samples, on a team
// of at least two threads.
Schedule resolve(const HostStage& stage, int team);

// The steps of one branch, in order.
using HostBranch = std::vector<std::function<void()>>;

// Runs the branches at the same time, each branch's steps in order on one thread, and returns when all have
// ended. One OpenMP region of up to `team` threads; called inside somebody's `omp parallel` it runs in place
// on the calling thread. What a step throws ends its branch, and is thrown here (the first branch's, where
// several do).
void runHostBranches(std::span<const HostBranch> branches, int team);

}  // namespace eagle::exec
