// The run plan: a graph lowered to a flat program that any backend can execute.
//
// Instructions run from 0 to the end; `Branches` names ranges that may run at the same time, conditionals
// jump. A flat program can stop at a host call and go on later, which is how a launch leaves the executor
// while the client's callable runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/schedule.h"

namespace eagle::graph {

struct RunKernel {
  std::uint32_t launch = 0;  // index into RunPlan::launches
};
struct RunReduce {
  std::uint32_t reduce = 0;  // index into RunPlan::reductions
};
struct RunHostCall {
  std::uint32_t call = 0;  // the client's number
};
struct RunCopy {
  std::uint32_t copy = 0;  // index into RunPlan::copies
};
// Launches [first, first + count) of RunPlan::launches, one after the other.
struct Launches {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
// Branches [first, first + count) of RunPlan::branches run at the same time, each one's launches in order.
struct RunBranches {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
// Goes on at `target` unless the guard of the conditional holds.
struct SkipUnless {
  std::shared_ptr<const Conditional> conditional;
  std::uint32_t target = 0;
};
// Head of a loop whose body follows: sets counter `loop` to 0 when entered from above (`LoopEnter` runs
// once), and `LoopTest` goes on at `target` unless the guard holds and fewer than `max_iterations` bodies
// ran, counting one where it does; `LoopBack` ends the body.
// Where the loop has a counter (RunPlan::counters), `LoopEnter` writes 0 to it and `LoopBack` how many bodies
// have run by then.
struct LoopEnter {
  std::uint32_t loop = 0;
};
struct LoopTest {
  std::shared_ptr<const Conditional> conditional;
  std::uint32_t loop = 0;
  std::uint32_t target = 0;
};
struct LoopBack {
  std::uint32_t target = 0;  // its LoopTest
  std::uint32_t loop = 0;
};

using Instruction = std::variant<RunKernel, RunHostCall, RunBranches, SkipUnless, LoopEnter, LoopTest,
                                 LoopBack, RunReduce, RunCopy>;

struct RunPlan {
  std::vector<std::shared_ptr<const kernel::Kernel>> kernels;
  // Of the graph, in the order of a walk through it, bodies included.
  std::vector<const KernelLaunch*> launches;
  std::vector<std::shared_ptr<const Reduce>> reductions;
  std::vector<std::shared_ptr<const Copy>> copies;
  std::vector<Launches> branches;
  std::vector<Instruction> program;
  std::uint32_t loops = 0;                           // number of loops
  std::vector<std::optional<plane::View>> counters;  // by loop: one i64 or i32 element
};

// `schedule` has one entry a stage of `graph`, which outlives the plan; branch_tasks stages become
// RunBranches.
RunPlan lower(const Graph& graph, const std::vector<StageSchedule>& schedule);

}  // namespace eagle::graph
