#include "engine/run/cpu/program.h"

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "engine/base/clock.h"
#include "engine/kernel/float_environment.h"
#include "engine/run/cpu/branches.h"
#include "engine/run/cpu/share.h"

namespace eagle::run {
namespace {

// The guard that an instruction looks at, or null.
const graph::Guard* guard_of(const graph::Instruction& instruction) {
  if (const auto* skip = std::get_if<graph::SkipUnless>(&instruction)) return &skip->guard;
  if (const auto* test = std::get_if<graph::LoopTest>(&instruction)) return &test->guard;
  return nullptr;
}

// A function as one launch: its planes and numbers are those of the launches that they came from.
graph::KernelLaunch whole(const graph::RunPlan& plan, const graph::SampleFunction& function,
                          const kernel::Fused& fused) {
  graph::KernelLaunch launch;
  launch.samples = plan.launches[function.launches.front()].samples;
  for (const kernel::Fused::Origin& origin : fused.origins)
    launch.arguments.push_back(plan.launches[function.launches[origin.part]].arguments[origin.argument]);
  return launch;
}

}  // namespace

StatusOr<std::unique_ptr<CpuProgram>> CpuProgram::bind(
    graph::RunPlan plan, FusedPlan fused, std::span<const std::shared_ptr<const codegen::Code>> code,
    std::span<const PlaneMemory> planes, int team, double inline_work, std::shared_ptr<Counters> counters) {
  std::unique_ptr<CpuProgram> program(new CpuProgram);
  EAGLE_RETURN_IF_ERROR(program->bind_groups(plan, fused, code, planes, inline_work));
  for (const graph::Copy& copy : plan.copies) {
    EAGLE_ASSIGN_OR_RETURN(BoundCopy bound, BoundCopy::bind(copy, planes));
    program->copies_.push_back(std::move(bound));
  }
  for (const graph::Reduce& reduce : plan.reductions) {
    EAGLE_ASSIGN_OR_RETURN(BoundReduce bound, BoundReduce::bind(reduce, planes, team));
    program->reductions_.push_back(std::move(bound));
  }
  program->grouped_ = std::move(fused.grouped);
  program->loops_ = plan.loops;
  program->team_ = team;
  program->counters_ = std::move(counters);
  ThreadSpace::Needs needs;
  for (const BoundGroup& group : program->groups_) {
    if (group.shared()) needs.cover(group.shared()->needs(team));
  }
  program->spaces_ = ThreadSpace::for_team(team, needs);
  EAGLE_RETURN_IF_ERROR(program->bind_guards(planes));
  EAGLE_RETURN_IF_ERROR(program->bind_counters(plan.counters, planes));
  return program;
}

Status CpuProgram::bind_guards(std::span<const PlaneMemory> planes) {
  guards_.resize(instructions().size());
  for (std::size_t i = 0; i < instructions().size(); ++i) {
    if (const graph::Guard* guard = guard_of(instructions()[i])) {
      EAGLE_ASSIGN_OR_RETURN(guards_[i], BoundGuard::bind(*guard, planes));
    }
  }
  return {};
}

Status CpuProgram::bind_counters(std::span<const std::optional<plane::View>> counters,
                                 std::span<const PlaneMemory> planes) {
  for (const std::optional<plane::View>& counter : counters) {
    std::optional<BoundCounter>& bound = loop_counters_.emplace_back();
    if (!counter) continue;
    EAGLE_ASSIGN_OR_RETURN(bound, BoundCounter::bind(*counter, planes));
  }
  return {};
}

Status CpuProgram::bind_groups(const graph::RunPlan& plan, const FusedPlan& fused,
                               std::span<const std::shared_ptr<const codegen::Code>> code,
                               std::span<const PlaneMemory> planes, double inline_work) {
  for (const graph::KernelLaunch& launch : plan.launches) kernels_.push_back(launch.kernel);
  homes_.resize(plan.launches.size());
  groups_.reserve(fused.grouped.groups.size());
  for (std::uint32_t g = 0; g < fused.grouped.groups.size(); ++g) {
    const graph::SampleGroup& group = fused.grouped.groups[g];
    std::vector<BoundGroup::Function> functions;
    std::optional<SharedLaunch> shared;
    for (std::uint32_t f = 0; f < group.functions.size(); ++f) {
      const graph::SampleFunction& function = group.functions[f];
      if (const auto& made = fused.code[g][f]) {
        EAGLE_ASSIGN_OR_RETURN(BoundLaunch bound, BoundLaunch::bind(whole(plan, function, made->fused),
                                                                    made->fused.kernel, made->code, planes));
        functions.push_back({std::move(bound), &made->fused.kernel});
        for (std::size_t p = 0; p < function.launches.size(); ++p)
          homes_[function.launches[p]] = {g, f, made->fused.arguments[p]};
        continue;
      }
      const std::uint32_t number = function.launches.front();
      const graph::KernelLaunch& launch = plan.launches[number];
      const auto& kernel = plan.kernels[launch.kernel];
      EAGLE_ASSIGN_OR_RETURN(BoundLaunch bound,
                             BoundLaunch::bind(launch, *kernel, code[launch.kernel], planes));
      shared = SharedLaunch::of(launch, kernel, bound);
      functions.push_back({std::move(bound), kernel.get()});
      homes_[number] = {g, f, {}};
    }
    groups_.emplace_back(std::move(functions), std::move(shared), inline_work);
  }
  return {};
}

KernelCounts CpuProgram::run(const graph::RunKernel& instruction, const Control* control,
                             Progress& progress) const {
  return groups_[instruction.launch].run(team_, spaces_, control, progress);
}

KernelCounts CpuProgram::run(const graph::RunBranches& instruction, const Control* control) const {
  const std::span branches = std::span(grouped_.branches).subspan(instruction.first, instruction.count);
  KernelCounts counts;
  std::mutex mutex;
  run_branches(branches.size(), team_, [&](std::size_t branch) {
    const kernel::FloatEnvironment environment;
    KernelCounts own;
    for (const std::uint32_t group : branches[branch]) {
      const auto thread = static_cast<std::size_t>(omp_get_thread_num());
      own += groups_[group].run_in_place(
          spaces_.empty() ? std::span(spaces_) : std::span(spaces_).subspan(thread, 1), control);
      if (own.cut_short > 0) break;
    }
    const std::scoped_lock lock(mutex);
    counts += own;
  });
  return counts;
}

}  // namespace eagle::run
